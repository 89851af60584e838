// SPDX-License-Identifier: Apache-2.0
// DawnPiper (Peng et al., A Memory-scalable Pipeline Parallel Training
// Framework, 2025): stages are halved again and again; a group of stages is cut
// in two somewhere between the cut that balances its computation and the one
// that balances its memory, and a stage that does not fit recomputes or swaps,
// whichever costs less. T of a stage is its forward and backward; the slowest
// counts.
//
// Our reading, where the paper's abstract leaves it open: a stage recomputes or
// swaps as a whole; recomputing adds its forward; swapping adds what two ways
// over the host link take longer than the stage's own passes. Memory of a group
// is that of its layers at the mean number of kept microbatches and versions of
// its stages.
//
// Heuristic: exact within the brackets. Sub-problems are remembered, so that it
// takes O(layers^2 stages) of them with at most `layers` cuts each.
#ifndef WEIR_PLAN_PAPERS_DAWNPIPER_H_
#define WEIR_PLAN_PAPERS_DAWNPIPER_H_

#include <utility>

#include "absl/status/statusor.h"
#include "plan/planner_work.h"

namespace weir {

struct DawnPiperOptions {
  int num_stages = 0;         // 0: one per device; else replicas share it
  bool asynchronous = false;  // PipeDream's 1F1B: stage s keeps p-s versions
  // kNone and kAll make all stages alike, which is what weir simulates.
  enum class Recompute { kByStage, kNone, kAll };
  Recompute recompute = Recompute::kByStage;
  double host_bytes_per_second = 0;  // of swapping, each way; 0: never swaps
};

// One stage of p at its cheapest: plain, recomputing or swapping. Infinite
// seconds when it does not fit in any way.
struct DawnPiperStage {
  double seconds = 0, memory_bytes = 0;
  bool recompute = false, swap = false;
};
DawnPiperStage CheapestStage(const PlannerWork& work, int first, int end,
                             int stage, int num_stages,
                             const DawnPiperOptions& options);

// The two cuts of layers [first, end) into stages [first_stage, end_stage):
// balancing computation, balancing memory, in ascending order. The first half
// gets half of the stages, rounded up.
std::pair<int, int> DawnPiperBracket(const PlannerWork& work, int first,
                                     int end, int first_stage, int end_stage,
                                     int num_stages,
                                     const DawnPiperOptions& options);

// objective_seconds: the slowest stage. InvalidArgument for what is malformed,
// NotFound when nothing fits.
absl::StatusOr<PlannedPipeline> PlanDawnPiper(
    const PlannerWork& work, const DawnPiperOptions& options = {});

// The largest microbatch for which it finds a plan. Seconds and bytes of
// activations grow in proportion from work.microbatch_size on.
absl::StatusOr<PlannedPipeline> LargestDawnPiperMicrobatch(
    const PlannerWork& work, const DawnPiperOptions& options = {});

// The work at another microbatch size, the batch being the same, rounded down.
PlannerWork WithMicrobatchSize(const PlannerWork& work, int microbatch_size);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_DAWNPIPER_H_
