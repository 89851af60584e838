// SPDX-License-Identifier: Apache-2.0
// The cost of staleness and of the bubble: the same small model trained under
// several schedules, with the batch times of a simulation.
#ifndef WEIR_RESULTS_VIEWS_TRAIN_STUDY_H_
#define WEIR_RESULTS_VIEWS_TRAIN_STUDY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir::results {

struct StudyCurve {
  uint64_t seed = 1;
  // [batch]: mean loss over its microbatches, before the model was trained on
  // them. Shorter than the others' if interrupted.
  std::vector<double> losses;
};

struct StudySchedule {
  std::string schedule;
  std::string semantics;  // Result.semantics
  int updates_per_batch = 1;
  int weight_versions = 1, staleness_updates = 0;
  // Simulated for the scenario.
  double batch_seconds = 0, idle_ratio = 0;
  bool fits_memory = true;
  std::vector<StudyCurve> curves;
};

struct TrainStudy {
  std::string scenario;       // whose batch times are used
  std::string model;          // the scenario's
  std::string train_model;    // the model that was trained
  int samples_per_batch = 0;  // in training
  int num_batches = 0;
  std::vector<StudySchedule> schedules;
};

// Summary over all seeds of a schedule.
struct StudySummary {
  double final_loss = 0;    // mean of the last tenth of the batches
  double final_spread = 0;  // largest minus smallest over the seeds
  // Batches until the smoothed loss reaches the target; absent: never.
  std::optional<int> batches_to_target;
};

// Returns the mean loss over all seeds for each batch, smoothed: averaged over
// the last batches up to this one, as many as a twentieth of the run has.
std::vector<double> SmoothedLosses(const TrainStudy& study,
                                   const StudySchedule& schedule);

// Returns the lowest loss that every schedule that learns reaches. A schedule
// learns if its last smoothed loss is a number below its first. NaN: none does.
double TargetLoss(const TrainStudy& study);

StudySummary SummaryOf(const TrainStudy& study, const StudySchedule& schedule,
                       double target_loss);

std::string TrainStudyTable(const TrainStudy& study);
// Returns a JSON object.
std::string TrainStudyJson(const TrainStudy& study);
// Returns a line per batch: schedule,seed,batch,samples,updates,seconds,loss.
std::string TrainStudyCsv(const TrainStudy& study);
// Returns true if a file with this first line is such a table.
bool IsTrainStudyHeader(absl::string_view line);

}  // namespace weir::results

#endif  // WEIR_RESULTS_VIEWS_TRAIN_STUDY_H_
