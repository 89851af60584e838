// SPDX-License-Identifier: Apache-2.0
// BaPipe (Zhao et al., Exploration of Balanced Pipeline Parallelism for DNN
// Training, 2020): which order, and which cuts for it. With m microbatches, n
// accelerators, F + B of the slowest stage and SR of the slowest transfer:
//
//   1F1B-AS   (m+n-1)(F+B)                                   keeps n-i
//   FBP-AS    (m+n-1)(F+B)                                   keeps 2(n-i)
//   1F1B-SNO  (m+n-1)(F+B) + (n+m-2-ceil((m-1)/n)) 2 SR      keeps n-i
//   1F1B-SO   (m+n-1)(F+B) + (n-1) 2 SR                      keeps 2(n-i)
//
// i from 0. AS needs hardware that computes and transfers asynchronously, SO
// transfers that hide behind the passes: 2 SR <= F + B. FBP-AS is for hardware
// that also runs F and B at once: it is as fast as 1F1B-AS and keeps more, but
// has F + B for what 1F1B-AS has to send during F. So 1F1B-AS is taken where SR
// <= F (the longest forward), else FBP-AS where 2 SR <= F + B, else 1F1B-AS all
// the same, with a note.
//
// Heuristic, as in the paper: a partition balanced between layers, boundaries
// then moved layer by layer while the time falls, then tuned to the memory.
// Ours: the last is an exact dynamic program, so that "does not fit" is proven;
// layers are not split (weir cannot run half a layer); where there are more
// devices than stages, replicas of the pipeline share the microbatches and
// all-reduce in a ring. O(divisors of the devices x (layers^2 stages + moves)).
#ifndef WEIR_PLAN_PAPERS_BAPIPE_H_
#define WEIR_PLAN_PAPERS_BAPIPE_H_

#include "absl/status/statusor.h"
#include "plan/planner_work.h"

namespace weir {

enum class BaPipeOrder { kAsynchronous, kParallel, kNoOverlap, kOverlap };

// Registry name of its schedule.
const char* Name(BaPipeOrder order);

// The table above.
double BaPipeSeconds(BaPipeOrder order, int num_microbatches, int num_stages,
                     double forward_backward_seconds, double transfer_seconds);

// Microbatches that a stage keeps, at most m.
int BaPipeKept(BaPipeOrder order, int num_microbatches, int num_stages,
               int stage);

struct BaPipeOptions {
  // Explores AS instead of SNO and SO, and FBP-AS where both passes run at
  // once.
  bool asynchronous_hardware = false;
  bool parallel_passes = false;
  // Ranks wait for what they send: SO, whose transfers run beside the passes,
  // is not explored.
  bool blocking_transfers = false;
};

// Of these stages by the table, all-reduce included; infinite where SO's or
// FBP-AS's transfers do not hide. REQUIRES: equal replication, which divides
// the microbatches.
double BaPipeSeconds(BaPipeOrder order, const PlannerWork& work,
                     const std::vector<PlannedStage>& stages);

// InvalidArgument where the work is malformed, NotFound when nothing fits.
absl::StatusOr<PlannedPipeline> PlanBaPipe(const PlannerWork& work,
                                           const BaPipeOptions& options = {});

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_BAPIPE_H_
