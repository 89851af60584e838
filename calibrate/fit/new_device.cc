// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/new_device.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/values.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/profile_base.h"

namespace weir::calibrate {
namespace {

constexpr double kSpread = 0.2;

void SetDatasheet(double value, Figure* figure) {
  figure->set_value(value);
  figure->set_kind(Figure::DATASHEET);
  figure->set_source("given to weir profile import");
}

absl::Status CheckGiven(const NewDevice& device) {
  Problems problems("new device");
  const auto check = [&](const char* flag, double value) {
    if (value == 0) problems.Add(flag, "is missing, expected it with --device");
  };
  check("--bandwidth", device.memory_bytes_per_second);
  check("--memory", device.memory_bytes);
  check("--multiprocessors", device.num_multiprocessors);
  if (device.peaks.empty()) {
    problems.Add("--peak", "is missing, expected FORMAT=FLOPS with --device");
  }
  return problems.ToStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::pair<std::string, double>>> ParsePeaks(
    absl::string_view text) {
  std::vector<std::pair<std::string, double>> peaks;
  for (absl::string_view one : absl::StrSplit(text, ',')) {
    const std::vector<std::string> sides = absl::StrSplit(one, '=');
    if (sides.size() != 2 || sides[0].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", EscapeLine(one),
                       ", expected FORMAT=FLOPS, for example bf16=989e12"));
    }
    ASSIGN_OR_RETURN(const double flops, ParsePositive(sides[1]));
    peaks.emplace_back(sides[0], flops);
  }
  return peaks;
}

void ScaleRates(double ratio, GemmModel* gemm) {
  for (Figure* rate : {gemm->mutable_cache_bytes_per_second(),
                       gemm->mutable_output_bytes_per_second()}) {
    rate->set_value(rate->value() * ratio);
  }
}

absl::StatusOr<DeviceProfile> ProfileOf(const NewDevice& device,
                                        const DeviceProfile& similar) {
  RETURN_IF_ERROR(CheckGiven(device));
  DeviceProfile variant;
  variant.set_name(device.name);
  variant.set_inherited_spread(kSpread);
  variant.set_num_step_sources(0);
  for (const auto& [format, flops] : device.peaks) {
    MatrixRate* rate = variant.add_matrix_rates();
    rate->set_format(format);
    SetDatasheet(flops, rate->mutable_peak_flops());
  }
  SetDatasheet(device.num_multiprocessors,
               variant.mutable_num_multiprocessors());
  SetDatasheet(device.memory_bytes_per_second,
               variant.mutable_memory_bytes_per_second());
  SetDatasheet(device.memory_bytes, variant.mutable_memory_bytes());
  if (device.link_bytes_per_second > 0) {
    SetDatasheet(
        device.link_bytes_per_second,
        variant.mutable_collectives()->mutable_link_bytes_per_second());
  }
  DeviceProfile profile = Inherit(similar, variant);
  profile.clear_coverage();
  for (const auto& [format, flops] : device.peaks) {
    const absl::StatusOr<double> peak = PeakFlops(similar, format);
    if (!peak.ok()) continue;
    ScaleRates(flops / *peak, profile.mutable_gemm());
    break;
  }
  RETURN_IF_ERROR(ValidateDeviceProfile("new device", profile));
  return profile;
}

}  // namespace weir::calibrate
