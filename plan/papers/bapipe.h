// SPDX-License-Identifier: Apache-2.0
// BaPipe (Zhao et al., Exploration of Balanced Pipeline Parallelism for DNN
// Training, 2020): chooses an order of passes and cuts for it. With m
// microbatches, n accelerators, F + B of the slowest stage and SR of the
// slowest transfer:
//
//   1F1B-AS   (m+n-1)(F+B)                                   saves n-i
//   FBP-AS    (m+n-1)(F+B)                                   saves 2(n-i)
//   1F1B-SNO  (m+n-1)(F+B) + (n+m-2-ceil((m-1)/n)) 2 SR      saves n-i
//   1F1B-SO   (m+n-1)(F+B) + (n-1) 2 SR                      saves 2(n-i)
//
// Stage i, from 0, saves the activations of that many microbatches. AS needs
// hardware that computes and transfers asynchronously, SO transfers that are
// hidden by the passes: 2 SR <= F + B. FBP-AS is for hardware that also runs F
// and B concurrently: it is as fast as 1F1B-AS and saves more, but has F + B to
// send what 1F1B-AS has to send during F. So 1F1B-AS is chosen if SR <= F (the
// longest forward), else FBP-AS if 2 SR <= F + B, else 1F1B-AS anyway, with a
// note.
//
// Heuristic, as in the paper: a balanced partition between layers, whose
// boundaries are then shifted by a layer while the time falls and tuned to the
// memory. Ours: the last step is an exact dynamic program, so "does not fit" is
// proven; layers are not split (weir cannot run half a layer); if there are
// more devices than stages, replicas of the pipeline split the microbatches and
// all-reduce in a ring. O(divisors of the devices x (layers^2 stages + moves)).
#ifndef WEIR_PLAN_PAPERS_BAPIPE_H_
#define WEIR_PLAN_PAPERS_BAPIPE_H_

#include "absl/status/statusor.h"
#include "plan/papers/planner_work.h"

namespace weir::plan {

enum class BaPipeOrder { kAsynchronous, kParallel, kNoOverlap, kOverlap };

// Returns the registry name of the order's schedule.
const char* Name(BaPipeOrder order);

// Returns the time of a batch by the table above.
double BaPipeSeconds(BaPipeOrder order, int num_microbatches, int num_stages,
                     double forward_backward_seconds, double transfer_seconds);

// Returns the number of microbatches whose activations a stage saves, at most
// m.
int BaPipeKept(BaPipeOrder order, int num_microbatches, int num_stages,
               int stage);

struct BaPipeOptions {
  // Explores AS instead of SNO and SO, and FBP-AS if both passes can run
  // concurrently.
  bool asynchronous_hardware = false;
  bool parallel_passes = false;
  // Ranks wait for what they send: SO, which overlaps transfers with passes, is
  // not explored.
  bool blocking_transfers = false;
};

// Returns the time of the stages by the table, with the all-reduce; infinite if
// the transfers of SO or FBP-AS are not hidden. Requires: all stages have the
// same replication, which divides the microbatches.
double BaPipeSeconds(BaPipeOrder order, const PlannerWork& work,
                     const std::vector<PlannedStage>& stages);

// Returns InvalidArgument for malformed work, NotFound if nothing fits.
absl::StatusOr<PlannedPipeline> PlanBaPipe(const PlannerWork& work,
                                           const BaPipeOptions& options = {});

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_BAPIPE_H_
