// SPDX-License-Identifier: Apache-2.0
// The model parameters that a prediction depends on.
#ifndef WEIR_RESULTS_VIEWS_EXPLANATION_H_
#define WEIR_RESULTS_VIEWS_EXPLANATION_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir::results {

struct FigureInfluence {
  std::string owner, path;  // "H100-SXM5-80GB", "gemm.matrix_rate"
  double value = 0;
  std::string kind, source;
  // d ln(batch_seconds) / d ln(value). -0.6 for a rate means that 60 % of the
  // time shrinks as the rate grows.
  double elasticity = 0;
  std::string format;  // of a rate in matrix_rates, "bf16"; else empty
};

// A value of one parameter with which the prediction equals the measurement.
struct FigureCause {
  std::string owner;
  std::string path;  // as in --set: "runtime.exchange_seconds"
  std::string kind;
  double value = 0;  // of the profile, runtime or cluster
  double explaining_value = 0;
  double relative_error = 0;  // one standard deviation of its logarithm
  // ln(explaining_value / value) / relative_error, without sign; absent if the
  // parameter has no uncertainty.
  std::optional<double> deviations;

  double factor() const { return explaining_value / value; }
};

// The predicted batch time with another setting of the run.
struct SettingCause {
  std::string setting;  // as options: "--recompute full"
  double seconds = 0;
};

// How a measured batch time could be explained.
struct MeasuredExplanation {
  double measured_seconds = 0;
  // Settings that bring the prediction nearer to it, nearest first.
  std::vector<SettingCause> settings = {};
  // Fewest standard deviations first; those without uncertainty last, by their
  // factors.
  std::vector<FigureCause> causes;
  // Parameters that change the time but cannot explain the measurement alone.
  std::vector<std::string> insufficient;
};

struct Explanation {
  Result result;
  std::vector<FigureInfluence> figures;  // that change the time
  int num_without_influence = 0;
  std::optional<MeasuredExplanation> measured = {};
};

// Returns the time of the busiest GPU part by part; the parameters by their
// fraction of the time, largest first, with those below 0.05 % in one line; and
// the sums by kind. With a measurement also a line that compares it with the
// interval, settings that could explain it, the factors by which single parts
// would have to change, and the parameters that could explain it; then lists at
// most ten parameters and causes unless `all`.
std::string ExplanationTable(const Explanation& explanation, bool all = false);

// Returns the JSON envelope of all commands, with every parameter that has an
// influence.
std::string ExplanationJson(absl::string_view command,
                            const Explanation& explanation);

}  // namespace weir::results

#endif  // WEIR_RESULTS_VIEWS_EXPLANATION_H_
