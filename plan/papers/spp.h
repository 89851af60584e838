// SPDX-License-Identifier: Apache-2.0
// SPP (Luo et al., Efficient Pipeline Planning for Expedited Distributed DNN
// Training, INFOCOM 2022), synchronous:
//
//   RDO  orders the devices: a minimum cut of the bandwidths splits them, each
//        side is ordered recursively, and the sides are concatenated.
//   PRM  cuts the layers into S stages on consecutive devices of that order,
//        r each, to minimize the largest workload W of an iteration:
//          stage      m (F + B) / r
//          transfer   m 2 bytes / (r r' slowest bandwidth between both)
//          all-reduce 2 (r-1)/r gradient bytes / slowest bandwidth inside
//   PE   is list scheduling: stages and links are resources; an idle one takes
//        what is ready, backwards first, then the earliest microbatch.
//
// PRM is exact for its order (dynamic programming over layers, stages, devices
// used, replicas of the last stage). With C the largest workload of a stage or
// link, PE takes at most (1 + (4S-4)/m) C + the longest all-reduce. Our reading
// of the paper: r r' pairs send concurrently, a link carries one direction
// after the other, and the bound has this C.
//
// RDO is O(devices^4), but O(devices^2) while a single device provably is a
// minimum cut; PRM is O(layers^2 devices stages replicas^2), where beyond 16
// devices replicas are powers of two and stages at most 16, and with equal
// replicas O(layers^2 stages) for each number of them; PE is O(S^2 m) for each
// S, where m is at most 2,048.
#ifndef WEIR_PLAN_PAPERS_SPP_H_
#define WEIR_PLAN_PAPERS_SPP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "plan/papers/planner_work.h"

namespace weir::plan {

// RDO. Returns all devices, each once.
std::vector<int> SppDeviceOrder(const PlannerWork& work);

// Returns the side without the first device of a cut of the devices with the
// least bandwidth (Stoer and Wagner, 1997). Requires: at least two devices,
// ascending.
std::vector<int> MinimumCut(const std::vector<std::vector<double>>& bandwidth,
                            const std::vector<int>& devices);

// Seconds per iteration of each stage, transfer and all-reduce.
struct SppWorkload {
  std::vector<double> stage_seconds, transfer_seconds,
      all_reduce_seconds;  // per iteration; one transfer fewer than stages
  double largest() const;
  double largest_of_pipeline() const;  // without all-reduces: C
  double longest_all_reduce() const;
};
SppWorkload SppWorkloadOf(const PlannerWork& work,
                          const std::vector<PlannedStage>& stages);

// PRM. Returns the stages with the smallest largest() that use all devices, in
// the given order. Empty if one saved microbatch per stage does not fit.
std::vector<PlannedStage> SppStages(const PlannerWork& work,
                                    const std::vector<int>& order,
                                    int num_stages);

// The result of PE on the layers' forward and backward seconds. The schedule
// "spp" is PE on the costs of its scenario. At most kMostExecuted microbatches
// are executed; for more, the result is extrapolated.
inline constexpr int kMostExecuted = 2048;
struct SppExecution {
  double seconds = 0;          // per iteration, with all-reduces
  std::vector<int> most_kept;  // microbatches between F and B, by stage
};
SppExecution ExecuteSpp(const PlannerWork& work,
                        const std::vector<PlannedStage>& stages);

struct SppOptions {
  // All stages have the same number of devices, as weir's simulator requires
  // for synchronous schedules.
  bool equal_replicas = false;
  std::vector<int> order;  // result of SppDeviceOrder; empty: computed
};

// Returns the plan with the shortest execution that fits the memory, over all
// numbers of stages. Its schedule is "spp", which is PE. Returns
// InvalidArgument for malformed input, NotFound if nothing fits.
absl::StatusOr<PlannedPipeline> PlanSpp(const PlannerWork& work,
                                        const SppOptions& options = {});

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_SPP_H_
