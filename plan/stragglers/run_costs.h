// SPDX-License-Identifier: Apache-2.0
// A recorded run as a cost model: times per stage and pass, with which other
// schedules are simulated.
#ifndef WEIR_PLAN_STRAGGLERS_RUN_COSTS_H_
#define WEIR_PLAN_STRAGGLERS_RUN_COSTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "results/import/recorded_run.h"
#include "scenarios/scenario.pb.h"

namespace weir::plan {

struct RunCosts {
  // [stage]: medians over all replicas, microbatches and steps, so that few
  // stragglers do not count; of passes in parts, of the sums of their parts.
  // The hop is the median transfer between stages. With several replicas,
  // `replicas` has the medians of each. Factors are times of passes over the
  // median of their replica, stage and kind, of all replicas together; they are
  // left out if all are 1.
  GivenCosts costs;
  // Standard deviation of the logarithm of a pass's time over the median of its
  // kind and stage, from the middle 68 % of passes: the parameter of
  // --jitter pass=lognormal. Not set if no stage has two passes of a kind.
  std::optional<double> deviation;
  // What the costs do not contain, in a sentence, or empty.
  std::string left_out;
};

// More factors than this are replaced by the means of this many groups of equal
// probability, which have the same mean.
inline constexpr int kMostRecordedFactors = 256;

// Returns the means over `size` parts of equal probability of the distribution
// in which all `values`, ascending, are equally probable. Requires: values are
// not empty.
std::vector<double> MeansOfParts(const std::vector<double>& values, int size);

// Returns InvalidArgument if a stage has no forward or no backward, or some
// stages split their backwards and others do not.
absl::StatusOr<RunCosts> CostsOfRun(const results::RecordedRun& run);

}  // namespace weir::plan

#endif  // WEIR_PLAN_STRAGGLERS_RUN_COSTS_H_
