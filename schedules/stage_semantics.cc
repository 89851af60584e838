// SPDX-License-Identifier: Apache-2.0
#include "schedules/stage_semantics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace weir::schedules {
namespace {

double DistanceOf(const std::vector<double>& distances, int stage) {
  return distances.empty() ? 0 : distances[stage];
}

// A range of microbatches.
struct Range {
  int begin = 0;
  int end = 0;
};

// Returns the microbatches of the updates after the start. Versions only
// increase, so these are the last ones.
Range SteadyRange(const std::vector<VersionUse>& uses, int per_update) {
  const int total = static_cast<int>(uses.size());
  const int whole = total / per_update * per_update;
  int begin = whole;
  while (begin > 0 && uses[begin - 1].forward_version >= 1) --begin;
  begin = (begin + per_update - 1) / per_update * per_update;
  if (begin < whole) return {begin, whole};
  return whole > 0 ? Range{whole - per_update, whole} : Range{0, total};
}

}  // namespace

double PredictedForward(const Schedule& schedule, int stage,
                        const VersionUse& use) {
  return use.forward_version +
         DistanceOf(schedule.weights.forward_distance, stage);
}

double PredictedBackward(const Schedule& schedule, int stage,
                         const VersionUse& use) {
  return use.backward_version +
         DistanceOf(schedule.weights.backward_distance, stage);
}

std::vector<StageSemantics> SummarizeStages(const Schedule& schedule,
                                            const Semantics& semantics) {
  std::vector<StageSemantics> stages(schedule.num_stages);
  for (int s = 0; s < schedule.num_stages; ++s) {
    const std::vector<VersionUse>& uses = semantics.uses[s];
    StageSemantics& stage = stages[s];
    stage.stage = s;
    stage.ranks = schedule.RanksOf(s);
    stage.microbatches_per_update = schedule.microbatches_per_update(s);
    stage.max_live_versions = semantics.max_live_versions[s];
    stage.max_staleness = semantics.max_staleness[s];
    stage.forward_distance = DistanceOf(schedule.weights.forward_distance, s);
    stage.backward_distance = DistanceOf(schedule.weights.backward_distance, s);
    if (schedule.forward_only) continue;  // no staleness, no disagreement
    for (const VersionUse& use : uses) {
      stage.max_disagreement =
          std::max(stage.max_disagreement, std::abs(use.disagreement()));
    }
    const Range steady = SteadyRange(uses, stage.microbatches_per_update);
    stage.is_start_only = uses[steady.begin].forward_version == 0;
    double staleness = 0;
    double disagreement = 0;
    double predicted = 0;
    for (int k = steady.begin; k < steady.end; ++k) {
      const VersionUse& use = uses[k];
      const double left = PredictedBackward(schedule, s, use) -
                          PredictedForward(schedule, s, use);
      staleness += use.staleness();
      disagreement += use.disagreement();
      predicted += left;
      stage.max_predicted_disagreement =
          std::max(stage.max_predicted_disagreement, std::abs(left));
    }
    const int count = steady.end - steady.begin;
    stage.mean_staleness = staleness / count;
    stage.mean_disagreement = disagreement / count;
    stage.mean_predicted_disagreement = predicted / count;
  }
  return stages;
}

}  // namespace weir::schedules
