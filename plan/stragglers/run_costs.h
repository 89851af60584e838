// SPDX-License-Identifier: Apache-2.0
// A recorded run as a cost model: times per stage and pass, with which other
// schedules are simulated.
#ifndef WEIR_PLAN_STRAGGLERS_RUN_COSTS_H_
#define WEIR_PLAN_STRAGGLERS_RUN_COSTS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "results/import/recorded_run.h"
#include "scenarios/scenario.pb.h"

namespace weir::plan {

struct RunCosts {
  // [stage]: medians over all replicas, microbatches and steps, so that few
  // stragglers do not count; of passes in parts, of the sums of their parts.
  // The hop is the median transfer between stages.
  GivenCosts costs;
  // Standard deviation of the logarithm of a pass's time over the median of its
  // kind and stage, from the middle 68 % of passes: the parameter of
  // --jitter pass=lognormal. Not set if no stage has two passes of a kind.
  std::optional<double> deviation;
  // What the costs do not contain, in a sentence, or empty.
  std::string left_out;
};

// Returns InvalidArgument if a stage has no forward or no backward, or some
// stages split their backwards and others do not.
absl::StatusOr<RunCosts> CostsOfRun(const results::RecordedRun& run);

}  // namespace weir::plan

#endif  // WEIR_PLAN_STRAGGLERS_RUN_COSTS_H_
