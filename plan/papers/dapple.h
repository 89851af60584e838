// SPDX-License-Identifier: Apache-2.0
// DAPPLE (Fan et al., A Pipelined Data Parallel Approach for Training Large
// Models, PPoPP 2021): synchronous pipelines with any number of devices per
// stage, each microbatch of a stage being split over its devices. Formulas of
// the public planner, AlibabaPAI/DAPPLE, planner/src/parallelism
// (sync_pipeline, split_concat, data_parallel); the paper's length is an
// option.
//
// With m microbatches in groups of `spread` (replicas of the whole pipeline),
// in M = m / spread steps, T_s = F + B of a stage and g_s its devices per
// replica:
//
//   transfer   over a cut of b bytes: within a server b / inside; into one
//              server from others b (fraction of the senders elsewhere) /
//              between; else b / all-reduce bandwidth between servers
//   all-reduce 2 (g-1)/g bytes / bandwidth, inside a server times floor(g/2)
//   block      the maximum of T_s / g_s and 2 transfers of all replicas' bytes
//   length     block (M-1) + sum of T_s + transfers of one microbatch + the
//              maximum of all-reduce_s - s block, at least 0
//
// The paper's length is L = Tw + Ts + Te, with transfers of all replicas as
// stages: Tw the forwards up to a pivot Q, Ts = (M-1)(F_Q + B_Q), Te = the
// maximum of all-reduce_s plus the rest of stage s when Q begins its last
// backward. Our reading: Q maximizes the length without all-reduces (the
// printed rule scans from the last stage), so the length is never below a lower
// bound of a pipeline; the rest is the sum of B from s to Q for s <= Q, and
// minus the sum of B between Q and s for later s.
//
// Search, a heuristic: dynamic programming over (layers, devices used, occupied
// set), with the remaining layers as the last stage on all other devices; a
// stage takes devices from untouched servers first, from touched ones first, or
// evenly from the touched ones. A search with one unit per stage precedes it.
// An occupied set is a number of devices per server. O(layers^2 devices^2
// sets), pruned by the best length found. Beyond 16 devices, a stage takes them
// in groups, of which there are at most 8, and a state keeps 4 occupied sets.
// At most 16 stages.
#ifndef WEIR_PLAN_PAPERS_DAPPLE_H_
#define WEIR_PLAN_PAPERS_DAPPLE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "plan/papers/planner_work.h"

namespace weir::plan {

struct DappleOptions {
  // 0: the bandwidth of the work. The public planner has 1e9, 3e9 and 25e9.
  double between_bytes_per_second = 0;
  double between_all_reduce_bytes_per_second = 0;
  double inside_bytes_per_second = 0;
  bool paper_length = false;
  // All stages have the same number of devices, as weir's simulator requires
  // for synchronous schedules.
  bool equal_replicas = false;
  // Policy B is chosen if 2 transfers take at least this fraction of the
  // slowest stage's F + B (the ACR). The value is ours, as the paper gives
  // none.
  double policy_b_ratio = 0.1;
};

// Replaces rates of 0 by those of the work.
DappleOptions WithRates(const PlannerWork& work, DappleOptions options);

// Return the time of a whole microbatch over a cut, and of an all-reduce.
// Requires: rates are set in `options`.
double DappleTransferSeconds(const PlannerWork& work,
                             const std::vector<int>& from,
                             const std::vector<int>& to, double bytes,
                             const DappleOptions& options);
double DappleAllReduceSeconds(const PlannerWork& work,
                              const std::vector<int>& devices, double bytes,
                              const DappleOptions& options);

// Returns the time of a batch by the chosen length. Requires: `spread` divides
// the microbatches and the devices of every stage; rates are set in `options`.
double DappleSeconds(const PlannerWork& work,
                     const std::vector<PlannedStage>& stages, int spread,
                     const DappleOptions& options);

// Returns the distinct ones of the three placements of `count` more devices on
// servers with `sizes` devices, of which `used` are taken, as
// [placement][server]. Returns none if too few are free.
std::vector<std::vector<int>> DapplePlacements(const std::vector<int>& sizes,
                                               const std::vector<int>& used,
                                               int count);

// Returns L = Tw + Ts + Te for the given seconds, by stage; transfers are
// stages.
double DapplePivotSeconds(const std::vector<double>& forward,
                          const std::vector<double>& backward,
                          const std::vector<double>& all_reduce,
                          int num_microbatches);

// Returns a plan with the schedule dapple-pa or dapple-pb, which has a limit if
// memory binds. Devices count with the lowest speed and the smallest memory of
// all. The notes state `spread`. Returns NotFound if nothing fits.
absl::StatusOr<PlannedPipeline> PlanDapple(const PlannerWork& work,
                                           const DappleOptions& options = {});

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_DAPPLE_H_
