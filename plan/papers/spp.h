// SPDX-License-Identifier: Apache-2.0
// SPP (Luo et al., Efficient Pipeline Planning for Expedited Distributed DNN
// Training, INFOCOM 2022), synchronous:
//
//   RDO  orders the devices: the minimum cut of the bandwidths splits them,
//        each side is ordered in turn, the sides stand side by side.
//   PRM  cuts the layers into S stages on consecutive devices of that order,
//        r each, so that the largest workload W of an iteration is least:
//          stage      m (F + B) / r
//          transfer   m 2 bytes / (r r' slowest bandwidth between both)
//          all-reduce 2 (r-1)/r gradient bytes / slowest bandwidth inside
//   PE   list scheduling: stages and links are resources, an idle one takes
//        what is ready, backwards first, then the earliest microbatch.
//
// PRM is exact for its order (dynamic programming over layers, stages, devices
// used, replicas of the last stage). With C the largest workload of a stage or
// link, PE takes at most (1 + (4S-4)/m) C + the longest all-reduce. Our reading
// of the paper for r r' pairs that send at once, for a link that carries both
// directions one after the other, and for the bound's C.
//
// RDO O(devices^4), but O(devices^2) while a device alone provably is a minimum
// cut; PRM O(layers^2 devices stages replicas^2), where beyond 16 devices
// replicas are powers of two and stages at most 16, of equal replicas
// O(layers^2 stages) for each number of them; PE O(S^2 m) for each S,
// where m is at most 2,048.
#ifndef WEIR_PLAN_PAPERS_SPP_H_
#define WEIR_PLAN_PAPERS_SPP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "plan/planner_work.h"

namespace weir {

// RDO. All devices, each once.
std::vector<int> SppDeviceOrder(const PlannerWork& work);

// What cuts the devices in two at the least bandwidth (Stoer and Wagner, 1997):
// the side without the first device. REQUIRES: at least two devices, ascending.
std::vector<int> MinimumCut(const std::vector<std::vector<double>>& bandwidth,
                            const std::vector<int>& devices);

struct SppWorkload {
  std::vector<double> stage_seconds, transfer_seconds,
      all_reduce_seconds;  // of an iteration; a transfer fewer than stages
  double largest() const;
  double largest_of_pipeline() const;  // without all-reduces: the bound's C
  double longest_all_reduce() const;
};
SppWorkload SppWorkloadOf(const PlannerWork& work,
                          const std::vector<PlannedStage>& stages);

// PRM: the stages with least largest() on consecutive devices of `order`, all
// used. Empty when nothing fits, which asks for one kept microbatch.
std::vector<PlannedStage> SppStages(const PlannerWork& work,
                                    const std::vector<int>& order,
                                    int num_stages);

// PE, from the layers' forward and backward seconds: the schedule "spp" is the
// same order by what its scenario costs. Of more than kMostExecuted
// microbatches so many are executed, and the rest is extrapolated.
inline constexpr int kMostExecuted = 2048;
struct SppExecution {
  double seconds = 0;          // of an iteration, all-reduces included
  std::vector<int> most_kept;  // microbatches between F and B, per stage
};
SppExecution ExecuteSpp(const PlannerWork& work,
                        const std::vector<PlannedStage>& stages);

struct SppOptions {
  // Stages of one number of devices: what weir simulates synchronously.
  bool equal_replicas = false;
  std::vector<int> order;  // RDO's, where it is known; empty: asked for
};

// The number of stages whose execution is shortest and fits the memory.
// schedule: spp, which is PE.
absl::StatusOr<PlannedPipeline> PlanSpp(const PlannerWork& work,
                                        const SppOptions& options = {});

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_SPP_H_
