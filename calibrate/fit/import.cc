// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/import.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "calibrate/fit/import_attention.h"
#include "calibrate/fit/import_gemms.h"
#include "calibrate/fit/import_streams.h"
#include "calibrate/fit/nccl_tests.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate {

const std::vector<MeasurementFormat>& MeasurementFormats() {
  static const auto& formats = *new std::vector<MeasurementFormat>{
      {"GEMMs",
       "a CSV with the columns m, n, k and one of latency_ms, latency_us, "
       "seconds",
       LooksLikeGemms, ImportGemms},
      {"attention",
       "a CSV with the columns pass, batch, heads, sequence_length, head_size, "
       "causal and one of latency_ms, latency_us, seconds",
       LooksLikeAttention, ImportAttention},
      {"memory-bound kernels",
       "a CSV with the columns kernel, bytes and one of latency_ms, "
       "latency_us, seconds",
       LooksLikeStreams, ImportStreams},
      {"collectives",
       "the output of nccl-tests, or the file written by its option -J",
       LooksLikeNcclTests, ImportNcclTests},
  };
  return formats;
}

namespace {

// Larger errors mean that the device or the unit is a different one.
constexpr double kMaxResidual = 3;

absl::Status CheckFit(absl::string_view label, const Import& import) {
  for (const Figure& residual :
       {import.profile.gemm_residual(), import.profile.collective_residual()}) {
    if (residual.value() <= kMaxResidual) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": no parameters can explain these times: ",
                     import.report.substr(0, import.report.find('\n')), "\n",
                     label, ": was not measured on ", import.profile.name(),
                     ", expected measurements of the profile's device"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Import> ImportMeasurements(absl::string_view label,
                                          absl::string_view text,
                                          const DeviceProfile& start,
                                          absl::string_view source) {
  if (!IsUtf8(source)) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": the name of its source is not UTF-8"));
  }
  for (const MeasurementFormat& format : MeasurementFormats()) {
    if (!format.recognizes(text)) continue;
    ASSIGN_OR_RETURN(Import import, format.import(label, text, start, source));
    RETURN_IF_ERROR(CheckFit(label, import));
    RETURN_IF_ERROR(ValidateDeviceProfile(label, import.profile));
    return import;
  }
  std::string message =
      absl::StrCat(label, ":1: is in an unknown format, expected one of:");
  for (const MeasurementFormat& format : MeasurementFormats()) {
    absl::StrAppend(&message, "\n  ", format.name, ": ", format.expected);
  }
  return absl::InvalidArgumentError(message);
}

}  // namespace weir::calibrate
