// SPDX-License-Identifier: Apache-2.0
// What staleness costs and what the bubble costs: the same small model trained
// under several schedules, each batch as long as a simulated one.
#ifndef WEIR_RESULTS_TRAIN_STUDY_H_
#define WEIR_RESULTS_TRAIN_STUDY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir {

struct StudyCurve {
  uint64_t seed = 1;
  // [batch]: mean over its microbatches, before the batch was learned from.
  // Shorter than the others': interrupted.
  std::vector<double> losses;
};

struct StudySchedule {
  std::string schedule;
  std::string semantics;  // Result.semantics
  int updates_per_batch = 1;
  int weight_versions = 1, staleness_updates = 0;
  // Simulated, of the scenario.
  double batch_seconds = 0, bubble_ratio = 0;
  bool fits_memory = true;
  std::vector<StudyCurve> curves;
};

struct TrainStudy {
  std::string scenario;       // that the seconds are of
  std::string model;          // of the scenario
  std::string train_model;    // that was trained
  int samples_per_batch = 0;  // of the training
  int num_batches = 0;
  std::vector<StudySchedule> schedules;
};

// Over all seeds of a schedule.
struct StudySummary {
  double final_loss = 0;    // mean of the last tenth of the batches
  double final_spread = 0;  // largest minus smallest over the seeds
  // Batches until the smoothed loss is at most the target; absent: never.
  std::optional<int> batches_to_target;
};

// The mean over seeds of the losses of each batch, smoothed: the mean of so
// many batches as a twentieth of the run has, up to this one.
std::vector<double> SmoothedLosses(const TrainStudy& study,
                                   const StudySchedule& schedule);

// The lowest loss that every schedule reaches, of those that learn: whose last
// smoothed loss is a number below their first. NaN: none does.
double TargetLoss(const TrainStudy& study);

StudySummary SummaryOf(const TrainStudy& study, const StudySchedule& schedule,
                       double target_loss);

std::string TrainStudyTable(const TrainStudy& study);
// A JSON object.
std::string TrainStudyJson(const TrainStudy& study);
// schedule,seed,batch,samples,updates,seconds,loss: a line per batch.
std::string TrainStudyCsv(const TrainStudy& study);
// Whether a file with this first line is such a table.
bool IsTrainStudyHeader(absl::string_view line);

// A picture for gnuplot. gnuplot executes parts of strings as programs, so that
// the script holds placeholders, which the finished SVG document has, too.
struct StudyPlot {
  std::string script;  // draws an SVG to standard output, data included
  std::vector<std::pair<std::string, std::string>> names;  // placeholder, text
};

StudyPlot TrainStudyPlot(const TrainStudy& study);

// Returns the document with the names, escaped, in place of the placeholders.
std::string WithNames(absl::string_view svg, const StudyPlot& plot);

}  // namespace weir

#endif  // WEIR_RESULTS_TRAIN_STUDY_H_
