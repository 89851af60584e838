// SPDX-License-Identifier: Apache-2.0
// DAPPLE (Fan et al., A Pipelined Data Parallel Approach for Training Large
// Models, PPoPP 2021): stages on any number of devices, a microbatch of a stage
// being split over its devices, synchronous. Formulas of the public planner,
// AlibabaPAI/DAPPLE, planner/src/parallelism (sync_pipeline, split_concat,
// data_parallel); the paper's length is an option.
//
// With m microbatches in groups of `spread` (replicas of the whole pipeline,
// M = m / spread steps), T_s = F + B of a stage, g_s its devices of a replica:
//
//   transfer   over a cut of b bytes: within a server b / inside; into one
//              server from others b (part of the senders that is elsewhere) /
//              between; else b / all-reduce bandwidth between servers
//   all-reduce 2 (g-1)/g bytes / bandwidth, inside a server times floor(g/2)
//   block      the largest T_s / g_s and 2 transfers of all replicas' bytes
//   length     block (M-1) + sum of T_s + transfers of one microbatch + the
//              largest of all-reduce_s - s block, at least 0
//
// The paper's length, L = Tw + Ts + Te with transfers of all replicas as
// stages: Tw the forwards up to a pivot Q, Ts = (M-1)(F_Q + B_Q), Te = the
// largest of all-reduce_s plus what is left of stage s when Q begins its last
// backward. Our reading: Q is where length without all-reduces is largest (the
// printed rule scans from the last stage), so that no lower bound of a pipeline
// is undercut; what is left is the sum of B from s to Q for s <= Q, minus the B
// between Q and s behind.
//
// Search, a heuristic: dynamic programming over (layers, devices used, occupied
// set), the rest of the layers being the last stage on all other devices; a
// stage takes devices from untouched servers first, from touched ones first, or
// evenly from all. Then the same with one unit a stage. An occupied set is a
// number of devices per server. O(layers^2 devices^2 sets), pruned by the best
// length found. Beyond 16 devices a stage takes them in groups, so that there
// are at most 8, and 4 occupied sets of a state are kept. At most 16 stages.
#ifndef WEIR_PLAN_PAPERS_DAPPLE_H_
#define WEIR_PLAN_PAPERS_DAPPLE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "plan/planner_work.h"

namespace weir {

struct DappleOptions {
  // 0: as the work says. The public planner has 1e9, 3e9 and 25e9.
  double between_bytes_per_second = 0;
  double between_all_reduce_bytes_per_second = 0;
  double inside_bytes_per_second = 0;
  bool paper_length = false;
  // Stages of one number of devices: what weir simulates synchronously.
  bool equal_replicas = false;
  // Policy B where 2 transfers take at least this part of the slowest stage's
  // F + B, their ratio (ACR); the paper gives no number, ours.
  double policy_b_ratio = 0.1;
};

// The option, or what the work says.
DappleOptions WithRates(const PlannerWork& work, DappleOptions options);

// Over a cut, of a whole microbatch. REQUIRES: rates in `options`.
double DappleTransferSeconds(const PlannerWork& work,
                             const std::vector<int>& from,
                             const std::vector<int>& to, double bytes,
                             const DappleOptions& options);
double DappleAllReduceSeconds(const PlannerWork& work,
                              const std::vector<int>& devices, double bytes,
                              const DappleOptions& options);

// Seconds of a batch by the chosen length. REQUIRES: `spread` divides the
// microbatches and the devices of every stage; rates in `options`.
double DappleSeconds(const PlannerWork& work,
                     const std::vector<PlannedStage>& stages, int spread,
                     const DappleOptions& options);

// The three placements of `count` devices beside `used` ones per server of
// `free + used`; equal ones once, none where too few are free. [][server]
std::vector<std::vector<int>> DapplePlacements(const std::vector<int>& sizes,
                                               const std::vector<int>& used,
                                               int count);

// L = Tw + Ts + Te of pass times and all-reduces, transfers among the stages.
double DapplePivotSeconds(const std::vector<double>& forward,
                          const std::vector<double>& backward,
                          const std::vector<double>& all_reduce,
                          int num_microbatches);

// schedule: dapple-pa or dapple-pb, with a limit where memory binds. Devices
// count as the slowest, memory as the least of a stage's. The notes say
// `spread`. NotFound when nothing fits.
absl::StatusOr<PlannedPipeline> PlanDapple(const PlannerWork& work,
                                           const DappleOptions& options = {});

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_DAPPLE_H_
