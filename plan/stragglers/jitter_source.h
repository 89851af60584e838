// SPDX-License-Identifier: Apache-2.0
// What makes passes take longer or shorter than predicted.
#ifndef WEIR_PLAN_STRAGGLERS_JITTER_SOURCE_H_
#define WEIR_PLAN_STRAGGLERS_JITTER_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::plan {

// Multiplies the time of passes by a factor.
struct JitterSource {
  // A factor is drawn for each pass, each GPU, or each stage of the model (on
  // all its GPUs).
  enum class Target { kPass, kGpu, kStage };
  enum class Kind {
    kConstant,     // `parameter`
    kPeriodic,     // `parameter` for every `period`-th pass of a GPU, else 1
    kNormal,       // 1 + parameter x a standard normal number, at least 0
    kLognormal,    // exp(parameter x normal - parameter^2 / 2), of mean 1
    kExponential,  // 1 + parameter x an exponential number of mean 1
  };
  Target target = Target::kPass;
  Kind kind = Kind::kConstant;
  double parameter = 1;
  uint32_t period = 1;
  // Only of this GPU or stage; -1: of all.
  int32_t only = -1;
  std::string text;  // as it was given
};

// Parses "pass=lognormal:0.05", "gpu=normal:0.02", "stage3=constant:1.2",
// "gpu17=constant:1.25", "pass=periodic:16:1.5" or "gpu=exponential:0.1".
// Returns InvalidArgument "is x, expected y".
absl::StatusOr<JitterSource> ParseJitterSource(absl::string_view text);

// The factor at equally probable quantiles (i + 1/2) / size of a distribution.
// Requires: the kind is normal, lognormal or exponential.
std::vector<double> FactorQuantiles(const JitterSource& source, size_t size);

// Returns the standard normal quantile.
double NormalQuantile(double probability);

}  // namespace weir::plan

#endif  // WEIR_PLAN_STRAGGLERS_JITTER_SOURCE_H_
