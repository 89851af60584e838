// SPDX-License-Identifier: Apache-2.0
#include "base/size_limits.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/machine_memory.h"
#include "base/status_macros.h"
#include "base/units.h"

namespace weir {
namespace {

std::optional<SizeLimits>& OfTest() {
  static std::optional<SizeLimits> limits;
  return limits;
}

// Returns std::nullopt if the variable is not set.
absl::StatusOr<std::optional<double>> NumberOf(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::optional<double>();
  double number = 0;
  if (absl::SimpleAtod(text, &number) && number > 0 && !std::isinf(number)) {
    return std::optional<double>(number);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("environment: ", variable, " is \"", absl::CHexEscape(text),
                   "\", expected a number above 0"));
}

// FormatSeconds would print hours as seconds.
std::string Duration(double seconds) {
  if (seconds < 600) return FormatSeconds(seconds);
  if (seconds < 2 * 3600) return absl::StrFormat("%.3g minutes", seconds / 60);
  if (seconds < 48 * 3600) return absl::StrFormat("%.3g hours", seconds / 3600);
  return absl::StrFormat("%.3g days", seconds / 86400);
}

// Returns the limits that apply to the estimate. Does not read the machine's
// available memory for small requests, because planners check thousands of
// them.
absl::StatusOr<SizeLimits> LimitsFor(const SizeEstimate& estimate) {
  if (OfTest().has_value()) return *OfTest();
  ASSIGN_OR_RETURN(const auto bytes, NumberOf(kMaxBytesVariable));
  ASSIGN_OR_RETURN(const auto seconds, NumberOf(kMaxSecondsVariable));
  SizeLimits limits;
  limits.seconds = seconds.value_or(kMaxRequestSeconds);
  limits.bytes = bytes.value_or(kAlwaysFitsBytes);
  if (!bytes.has_value() && !(estimate.bytes <= kAlwaysFitsBytes &&
                              estimate.seconds <= limits.seconds)) {
    limits.bytes =
        std::clamp(AvailableMemoryBytes(), kAlwaysFitsBytes, kMaxRequestBytes);
  }
  return limits;
}

}  // namespace

absl::StatusOr<SizeLimits> CurrentSizeLimits() {
  return LimitsFor({kMaxRequestBytes, kMaxRequestSeconds});
}

std::string SizeProblem(absl::string_view counted, const SizeEstimate& estimate,
                        absl::string_view advice) {
  const absl::StatusOr<SizeLimits> limits = LimitsFor(estimate);
  if (!limits.ok()) return std::string(limits.status().message());
  // Treats NaN, which results from infinite counts, as too large.
  if (estimate.bytes <= limits->bytes && estimate.seconds <= limits->seconds) {
    return "";
  }
  return absl::StrCat(
      "is too large: ", counted, " need about ", FormatBytes(estimate.bytes),
      " and ", Duration(estimate.seconds), ", expected at most ",
      FormatBytes(limits->bytes), " and ", Duration(limits->seconds), ": ",
      advice, ", or raise ", kMaxBytesVariable, " or ", kMaxSecondsVariable);
}

absl::Status CheckSize(absl::string_view label, absl::string_view counted,
                       const SizeEstimate& estimate, absl::string_view advice) {
  const std::string problem = SizeProblem(counted, estimate, advice);
  if (problem.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(label, ": ", problem));
}

ScopedSizeLimits::ScopedSizeLimits(const SizeLimits& limits) {
  OfTest() = limits;
}

ScopedSizeLimits::~ScopedSizeLimits() { OfTest().reset(); }

}  // namespace weir
