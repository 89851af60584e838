// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/new_device.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/values.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/profile_base.h"
#include "models/quantization.h"

namespace weir::calibrate {
namespace {

constexpr double kSpread = 0.2;
// Peaks of GPUs, with a wide margin. The rates of the cache are scaled with
// them and remain in their ranges.
constexpr double kLeastPeak = 1e12;
constexpr double kMostPeak = 1e17;
constexpr size_t kMostNameBytes = 100;

std::vector<std::string> PeakFormats() {
  std::vector<std::string> formats = {"bf16", "fp16", "fp32"};
  for (int i = OPERAND_16_BIT + 1; i < OperandFormat_ARRAYSIZE; ++i) {
    formats.emplace_back(models::Name(static_cast<OperandFormat>(i)));
  }
  return formats;
}

bool HasPeak(const std::vector<std::pair<std::string, double>>& peaks,
             absl::string_view format) {
  return std::any_of(peaks.begin(), peaks.end(),
                     [&](const auto& peak) { return peak.first == format; });
}

void SetDatasheet(double value, Figure* figure) {
  figure->set_value(value);
  figure->set_kind(Figure::DATASHEET);
  figure->set_source("given to weir profile import");
}

absl::Status CheckGiven(const NewDevice& device) {
  Problems problems("new device");
  if (device.name.size() > kMostNameBytes) {
    problems.Add("--device",
                 absl::StrCat("has ", device.name.size(),
                              " bytes, expected at most ", kMostNameBytes));
  }
  const auto check = [&](const char* flag, double value, double low,
                         double high) {
    if (value == 0) {
      problems.Add(flag, "is missing, required with --device");
    } else {
      problems.CheckRange(flag, value, low, high);
    }
  };
  check("--bandwidth", device.memory_bytes_per_second, 1e3, 1e16);
  check("--memory", device.memory_bytes, 1e6, 1e15);
  check("--multiprocessors", device.num_multiprocessors, 1, 1e5);
  if (device.link_bytes_per_second > 0) {
    problems.CheckRange("--links", device.link_bytes_per_second, 1e6, 1e16);
  }
  if (device.peaks.empty()) {
    problems.Add("--peak",
                 "is missing, required with --device as FORMAT=FLOPS");
  } else if (!HasPeak(device.peaks, "bf16") && !HasPeak(device.peaks, "fp16")) {
    problems.Add("--peak",
                 "has neither bf16 nor fp16, expected the rate of at least one "
                 "of them");
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
    const std::vector<std::string> formats = PeakFormats();
    if (std::find(formats.begin(), formats.end(), sides[0]) == formats.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", EscapeLine(one), ", expected one of ",
                       absl::StrJoin(formats, ", ")));
    }
    if (HasPeak(peaks, sides[0])) {
      return absl::InvalidArgumentError(absl::StrCat(
          "is ", EscapeLine(text), ", expected ", sides[0], " once"));
    }
    ASSIGN_OR_RETURN(const double flops, ParsePositive(sides[1]));
    if (flops < kLeastPeak || flops > kMostPeak) {
      return absl::InvalidArgumentError(
          absl::StrFormat("is %s, expected %g to %g FLOP/s", EscapeLine(one),
                          kLeastPeak, kMostPeak));
    }
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
