// SPDX-License-Identifier: Apache-2.0
// The version table of a stage in a few figures, as papers compare systems.
#ifndef WEIR_SCHEDULES_STAGE_SEMANTICS_H_
#define WEIR_SCHEDULES_STAGE_SEMANTICS_H_

#include <vector>

#include "schedules/semantics.h"

namespace weir {

// In updates. A mean is over the whole updates that the start no longer
// shortens, those whose microbatches all read version 1 or later; over the last
// whole update where there is none.
struct StageSemantics {
  int stage = 0;
  std::vector<int> ranks;
  int microbatches_per_update = 1;
  int max_live_versions = 1;
  int max_staleness = 0;
  double mean_staleness = 0;   // PipeMare's tau is no whole number
  bool is_start_only = false;  // there is none
  // Of the weights that F and B read: largest, and mean of B's less F's.
  int max_disagreement = 0;
  double mean_disagreement = 0;
  // How far from those each computes, see WeightPolicy.
  double forward_distance = 0;
  double backward_distance = 0;
  // Of the weights that F and B compute with, where the mean is taken.
  double max_predicted_disagreement = 0;
  double mean_predicted_disagreement = 0;
};

// One for each stage. REQUIRES: semantics is that of the schedule.
std::vector<StageSemantics> SummarizeStages(const Schedule& schedule,
                                            const Semantics& semantics);

// The weights that a pass computes with: the version it reads, moved by the
// stage's distance.
double PredictedForward(const Schedule& schedule, int stage,
                        const VersionUse& use);
double PredictedBackward(const Schedule& schedule, int stage,
                         const VersionUse& use);

}  // namespace weir

#endif  // WEIR_SCHEDULES_STAGE_SEMANTICS_H_
