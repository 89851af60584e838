// SPDX-License-Identifier: Apache-2.0
// Summarizes the version table of a stage in a few values, which papers use to
// compare systems.
#ifndef WEIR_SCHEDULES_STAGE_SEMANTICS_H_
#define WEIR_SCHEDULES_STAGE_SEMANTICS_H_

#include <vector>

#include "schedules/semantics.h"

namespace weir::schedules {

// Values in updates. Means are over the complete updates after the start, whose
// microbatches all read version 1 or later, or over the last complete update if
// there is none.
struct StageSemantics {
  int stage = 0;
  std::vector<int> ranks;
  int microbatches_per_update = 1;
  int max_live_versions = 1;
  int max_staleness = 0;
  double mean_staleness = 0;   // PipeMare's tau, not an integer
  bool is_start_only = false;  // there is no update after the start
  // Difference between the versions that B and F read: maximum magnitude, and
  // mean with sign.
  int max_disagreement = 0;
  double mean_disagreement = 0;
  // Distances of the predictions from those versions; see WeightPolicy.
  double forward_distance = 0;
  double backward_distance = 0;
  // The same difference between predictions, over the updates of the means.
  double max_predicted_disagreement = 0;
  double mean_predicted_disagreement = 0;
};

// Returns one entry per stage. Requires: `semantics` is that of the schedule.
std::vector<StageSemantics> SummarizeStages(const Schedule& schedule,
                                            const Semantics& semantics);

// Return the version with which a pass computes: the version that it reads plus
// the stage's distance.
double PredictedForward(const Schedule& schedule, int stage,
                        const VersionUse& use);
double PredictedBackward(const Schedule& schedule, int stage,
                         const VersionUse& use);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_STAGE_SEMANTICS_H_
