// SPDX-License-Identifier: Apache-2.0
#include "plan/stragglers/jitter_source.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text.h"

namespace weir::plan {
namespace {

using Kind = JitterSource::Kind;
using Target = JitterSource::Target;

constexpr double kMaxFactor = 1000;
// Larger deviations of a time are no jitter.
constexpr double kMaxDeviation = 3;

absl::Status Bad(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", EscapeLine(text),
      ", expected pass, gpu, gpuN, stage or stageN, then =constant:FACTOR, "
      "=periodic:PASSES:FACTOR, =normal:DEVIATION, =lognormal:DEVIATION or "
      "=exponential:MEAN, with factors from 0 to 1000 and deviations from 0 to "
      "3"));
}

bool ParseTarget(absl::string_view text, JitterSource* source) {
  const std::pair<absl::string_view, Target> kNames[] = {
      {"pass", Target::kPass},
      {"gpu", Target::kGpu},
      {"stage", Target::kStage}};
  for (const auto& [name, target] : kNames) {
    absl::string_view number = text;
    if (!absl::ConsumePrefix(&number, name)) continue;
    source->target = target;
    if (number.empty()) return true;
    return target != Target::kPass && absl::SimpleAtoi(number, &source->only) &&
           source->only >= 0;
  }
  return false;
}

bool ParseNumber(absl::string_view text, double high, double* number) {
  return absl::SimpleAtod(text, number) && *number >= 0 && *number <= high;
}

bool ParseDistribution(absl::string_view text, JitterSource* source) {
  if (text.empty()) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  const std::pair<absl::string_view, Kind> kNames[] = {
      {"constant", Kind::kConstant},
      {"periodic", Kind::kPeriodic},
      {"normal", Kind::kNormal},
      {"lognormal", Kind::kLognormal},
      {"exponential", Kind::kExponential}};
  for (const auto& [name, kind] : kNames) {
    if (parts[0] != name) continue;
    source->kind = kind;
    if (kind == Kind::kPeriodic) {
      return parts.size() == 3 && absl::SimpleAtoi(parts[1], &source->period) &&
             source->period > 0 &&
             ParseNumber(parts[2], kMaxFactor, &source->parameter);
    }
    const double high = kind == Kind::kConstant ? kMaxFactor : kMaxDeviation;
    return parts.size() == 2 && ParseNumber(parts[1], high, &source->parameter);
  }
  return false;
}

}  // namespace

absl::StatusOr<JitterSource> ParseJitterSource(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  JitterSource source;
  source.text = std::string(text);
  if (!ParseTarget(parts.first, &source) ||
      !ParseDistribution(parts.second, &source)) {
    return Bad(text);
  }
  return source;
}

double NormalQuantile(double probability) {
  return boost::math::quantile(boost::math::normal(), probability);
}

std::vector<double> FactorQuantiles(const JitterSource& source, size_t size) {
  std::vector<double> factors(size);
  for (size_t i = 0; i < size; ++i) {
    const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(size);
    const double deviation = source.parameter;
    switch (source.kind) {
      case Kind::kNormal:
        factors[i] = std::max(1 + deviation * NormalQuantile(p), 0.0);
        break;
      case Kind::kLognormal:
        factors[i] =
            std::exp(deviation * NormalQuantile(p) - deviation * deviation / 2);
        break;
      case Kind::kExponential:
        factors[i] = 1 - deviation * std::log1p(-p);
        break;
      default:
        factors[i] = 1;
    }
  }
  return factors;
}

}  // namespace weir::plan
