// SPDX-License-Identifier: Apache-2.0
// The model parameters that a prediction depends on.
#ifndef WEIR_RESULTS_VIEWS_EXPLANATION_H_
#define WEIR_RESULTS_VIEWS_EXPLANATION_H_

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
};

struct Explanation {
  Result result;
  std::vector<FigureInfluence> figures;  // that change the time
  int num_without_influence = 0;
};

// Returns the time of the busiest GPU part by part; the parameters by their
// fraction of the time, largest first, with those below 0.05 % in one line; and
// the sums by kind.
std::string ExplanationTable(const Explanation& explanation);

// Returns the JSON envelope of all commands, with every parameter that has an
// influence.
std::string ExplanationJson(absl::string_view command,
                            const Explanation& explanation);

}  // namespace weir::results

#endif  // WEIR_RESULTS_VIEWS_EXPLANATION_H_
