// SPDX-License-Identifier: Apache-2.0
// DawnPiper (Peng et al., A Memory-scalable Pipeline Parallel Training
// Framework, 2025): recursive bisection of the stages. A group of stages is cut
// in two between the cut that balances its computation and the cut that
// balances its memory. A stage that does not fit recomputes or swaps, whichever
// costs less. T of a stage is its forward and backward; the slowest stage is
// minimized.
//
// Our reading where the paper's abstract is unspecific: a stage recomputes or
// swaps as a whole; recomputing adds its forward; swapping adds the excess of
// two transfers over the host link above the stage's own passes. The memory of
// a group is that of its layers at the mean number of saved microbatches and
// versions of its stages.
//
// Heuristic: exact within the brackets. Subproblems are memoized: there are
// O(layers^2 stages) of them with at most `layers` cuts each.
#ifndef WEIR_PLAN_PAPERS_DAWNPIPER_H_
#define WEIR_PLAN_PAPERS_DAWNPIPER_H_

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "models/training.pb.h"
#include "plan/papers/planner_work.h"

namespace weir::plan {

struct DawnPiperOptions {
  int num_stages = 0;  // 0: one per device; else replicas share the batch
  bool asynchronous = false;  // PipeDream's 1F1B: stage s has p-s versions
  // RECOMPUTE_NONE or RECOMPUTE_FULL in all stages, as weir's simulator
  // requires; absent: chosen for each stage.
  std::optional<RecomputeMode> recompute = {};
  double host_bytes_per_second = 0;  // each way; 0: never swaps
};

// The cheapest variant of one of p stages: plain, recomputing or swapping.
// Seconds are infinite if none fits.
struct DawnPiperStage {
  double seconds = 0, memory_bytes = 0;
  bool recompute = false, swap = false;
};
DawnPiperStage CheapestStage(const PlannerWork& work, int first, int end,
                             int stage, int num_stages,
                             const DawnPiperOptions& options);

// Returns the two cuts of layers [first, end) into stages [first_stage,
// end_stage) that balance computation and memory, in ascending order. The first
// half gets half of the stages, rounded up.
std::pair<int, int> DawnPiperBracket(const PlannerWork& work, int first,
                                     int end, int first_stage, int end_stage,
                                     int num_stages,
                                     const DawnPiperOptions& options);

// Returns a plan whose objective_seconds are those of the slowest stage.
// Returns InvalidArgument for malformed input, NotFound if nothing fits.
absl::StatusOr<PlannedPipeline> PlanDawnPiper(
    const PlannerWork& work, const DawnPiperOptions& options = {});

// Returns the plan with the largest feasible microbatch. Seconds and activation
// bytes are scaled in proportion from work.microbatch_size. Returns the errors
// of PlanDawnPiper, NotFound also if nothing fits with microbatches of one
// sequence.
absl::StatusOr<PlannedPipeline> LargestDawnPiperMicrobatch(
    const PlannerWork& work, const DawnPiperOptions& options = {});

// Returns the work at another microbatch size. The number of microbatches of
// the same batch is rounded down.
PlannerWork WithMicrobatchSize(const PlannerWork& work, int microbatch_size);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_DAWNPIPER_H_
