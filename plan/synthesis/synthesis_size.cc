// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/synthesis_size.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace weir::plan {
namespace {

// Cost per pass of all named orders, the bounds and the state of a search.
constexpr double kBytesPerPass = 1000, kSecondsPerPass = 4e-5;
// Per pass and move. A move retimes the passes after it, in the worst case all.
constexpr double kSecondsPerTimedPass = 1e-8;
// Starting orders per placement, and the best of their results.
constexpr double kStarts = 5;

}  // namespace

double NumPasses(const OrderProblem& problem) {
  return 3.0 * problem.num_ranks * problem.num_chunks *
         problem.num_microbatches;
}

int64_t NumMoves(const OrderProblem& problem, const SynthesisOptions& options) {
  if (options.num_moves > 0) return options.num_moves;
  return static_cast<int64_t>(std::clamp(8e7 / NumPasses(problem), 3e3, 2e5));
}

SizeEstimate EstimateSynthesis(const OrderProblem& problem,
                               const SynthesisOptions& options) {
  const double passes = NumPasses(problem);
  SizeEstimate estimate{passes * kBytesPerPass, passes * kSecondsPerPass};
  if (options.method != SynthesisMethod::kMip) {
    const double placements = problem.num_chunks > 1 ? 2 : 1;
    const double moves = static_cast<double>(NumMoves(problem, options));
    estimate.seconds += placements * kStarts * kRunsOfStart * moves * passes *
                        kSecondsPerTimedPass;
  }
  return estimate;
}

absl::Status CheckSynthesisSize(absl::string_view label,
                                const OrderProblem& problem,
                                const SynthesisOptions& options) {
  return CheckSize(
      label,
      absl::StrFormat("%.3g passes and %d moves per run, which",
                      NumPasses(problem), NumMoves(problem, options)),
      EstimateSynthesis(problem, options),
      "fewer microbatches, ranks, chunks or --moves, or a smaller "
      "--seconds");
}

}  // namespace weir::plan
