// SPDX-License-Identifier: Apache-2.0
// What a prediction rests on.
#ifndef WEIR_RESULTS_EXPLANATION_H_
#define WEIR_RESULTS_EXPLANATION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir {

struct FigureInfluence {
  std::string owner, path;  // "H100-SXM5-80GB", "product.matrix_rate"
  double value = 0;
  std::string kind, source;
  // d ln(batch_seconds) / d ln(value): -0.6 of a rate says that 60 % of the
  // time shrinks as it grows.
  double elasticity = 0;
};

struct Explanation {
  Result result;
  std::vector<FigureInfluence> figures;  // that change the time
  int num_without_influence = 0;
};

// Seconds of the busiest GPU part by part; figures by their part of the time,
// largest first, those below 0.05 % in one line; the sums by kind.
std::string ExplanationTable(const Explanation& explanation);

// The envelope of all answers; every figure that has an influence.
std::string ExplanationJson(absl::string_view command,
                            const Explanation& explanation);

}  // namespace weir

#endif  // WEIR_RESULTS_EXPLANATION_H_
