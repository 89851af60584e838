// SPDX-License-Identifier: Apache-2.0
#include "results/views/train_study.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/csv.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"

namespace weir::results {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kCsvHeader =
    "schedule,seed,batch,samples,updates,seconds,loss";

// Returns the number of batches that every seed has.
size_t CommonBatches(const StudySchedule& schedule) {
  size_t common = std::numeric_limits<size_t>::max();
  for (const StudyCurve& curve : schedule.curves) {
    common = std::min(common, curve.losses.size());
  }
  return schedule.curves.empty() ? 0 : common;
}

double MeanOfLast(const std::vector<double>& values, size_t end, size_t count) {
  count = std::clamp<size_t>(count, 1, end);
  double sum = 0;
  for (size_t i = end - count; i < end; ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

bool Learns(const std::vector<double>& smoothed) {
  return !smoothed.empty() && smoothed.back() < smoothed.front();
}

// Returns true if the loss is far above that of an untrained model.
bool Diverges(double loss, const std::vector<double>& smoothed) {
  return smoothed.empty() || !(loss < 1.5 * smoothed.front());
}

Json NumberOrNull(double number) {
  return std::isfinite(number) ? Json(number) : Json();
}

}  // namespace

std::vector<double> SmoothedLosses(const TrainStudy& study,
                                   const StudySchedule& schedule) {
  const size_t num_batches = CommonBatches(schedule);
  std::vector<double> mean(num_batches, 0);
  for (const StudyCurve& curve : schedule.curves) {
    for (size_t b = 0; b < num_batches; ++b) {
      mean[b] += curve.losses[b] / static_cast<double>(schedule.curves.size());
    }
  }
  std::vector<double> smoothed;
  for (size_t b = 0; b < num_batches; ++b) {
    smoothed.push_back(MeanOfLast(mean, b + 1, study.num_batches / 20));
  }
  return smoothed;
}

double TargetLoss(const TrainStudy& study) {
  double target = std::numeric_limits<double>::quiet_NaN();
  for (const StudySchedule& schedule : study.schedules) {
    const std::vector<double> smoothed = SmoothedLosses(study, schedule);
    if (!Learns(smoothed)) continue;
    const double best = *std::min_element(smoothed.begin(), smoothed.end());
    if (!(target >= best)) target = best;
  }
  return target;
}

StudySummary SummaryOf(const TrainStudy& study, const StudySchedule& schedule,
                       double target_loss) {
  StudySummary summary;
  double low = std::numeric_limits<double>::infinity(), high = -low, sum = 0;
  const size_t num_batches = CommonBatches(schedule);
  if (num_batches == 0) {
    summary.final_loss = std::numeric_limits<double>::quiet_NaN();
    return summary;
  }
  for (const StudyCurve& curve : schedule.curves) {
    const double last =
        MeanOfLast(curve.losses, num_batches, study.num_batches / 10);
    low = std::min(low, last);
    high = std::max(high, last);
    sum += last;
  }
  summary.final_loss = sum / static_cast<double>(schedule.curves.size());
  summary.final_spread = high - low;
  const std::vector<double> smoothed = SmoothedLosses(study, schedule);
  const auto reached =
      std::find_if(smoothed.begin(), smoothed.end(),
                   [&](double loss) { return loss <= target_loss; });
  if (reached != smoothed.end()) {
    summary.batches_to_target =
        static_cast<int>(reached - smoothed.begin()) + 1;
  }
  return summary;
}

std::string TrainStudyTable(const TrainStudy& study) {
  const double target = TargetLoss(study);
  TextTable table;
  table.header = {"schedule",
                  "final loss",
                  std::isnan(target)
                      ? "samples to target"
                      : absl::StrFormat("samples to %.3f", target),
                  "seconds to target",
                  "step time",
                  "idle",
                  "updates per batch",
                  "staleness",
                  "versions"};
  table.optional = {0, 0, 1, 0, 0, 3, 5, 2, 4};
  for (const StudySchedule& schedule : study.schedules) {
    const StudySummary summary = SummaryOf(study, schedule, target);
    const bool reached = summary.batches_to_target.has_value();
    const double batches = reached ? *summary.batches_to_target : 0;
    std::string loss = absl::StrFormat("%.3f", summary.final_loss);
    if (Diverges(summary.final_loss, SmoothedLosses(study, schedule))) {
      loss = "diverges";
    } else if (schedule.curves.size() > 1) {
      absl::StrAppendFormat(&loss, " +-%.3f", summary.final_spread / 2);
    }
    table.rows.push_back(
        {schedule.schedule, loss,
         reached ? absl::StrCat(batches * study.samples_per_batch) : "never",
         reached ? FormatSeconds(batches * schedule.batch_seconds) : "never",
         FormatSeconds(schedule.batch_seconds),
         FormatPercent(schedule.idle_ratio),
         absl::StrCat(schedule.updates_per_batch),
         absl::StrCat(schedule.staleness_updates),
         absl::StrCat(schedule.weight_versions)});
  }
  std::string text = absl::StrCat(
      WrapText(absl::StrCat(
          "model: ", Ascii(study.train_model), ", ", study.num_batches,
          " batches of ", study.samples_per_batch,
          " samples; times are those of a batch of ", Ascii(study.scenario),
          " (", Ascii(study.model), ")\n\n")),
      PrintTable(table));
  for (const StudySchedule& schedule : study.schedules) {
    if (schedule.fits_memory) continue;
    absl::StrAppend(&text, Ascii(schedule.schedule),
                    " does not fit in memory in the scenario\n");
  }
  return text;
}

std::string TrainStudyJson(const TrainStudy& study) {
  const double target = TargetLoss(study);
  Json json = {{"scenario", study.scenario},
               {"model", study.model},
               {"train_model", study.train_model},
               {"samples_per_batch", study.samples_per_batch},
               {"num_batches", study.num_batches},
               {"target_loss", NumberOrNull(target)},
               {"schedules", Json::array()}};
  for (const StudySchedule& schedule : study.schedules) {
    const StudySummary summary = SummaryOf(study, schedule, target);
    Json entry = {{"schedule", schedule.schedule},
                  {"semantics", schedule.semantics},
                  {"final_loss", NumberOrNull(summary.final_loss)},
                  {"final_spread", NumberOrNull(summary.final_spread)},
                  {"batch_seconds", schedule.batch_seconds},
                  {"idle_ratio", schedule.idle_ratio},
                  {"updates_per_batch", schedule.updates_per_batch},
                  {"staleness_updates", schedule.staleness_updates},
                  {"weight_versions", schedule.weight_versions},
                  {"fits_memory", schedule.fits_memory}};
    if (summary.batches_to_target) {
      const double batches = *summary.batches_to_target;
      entry["samples_to_target"] = batches * study.samples_per_batch;
      entry["seconds_to_target"] = batches * schedule.batch_seconds;
    }
    for (const StudyCurve& curve : schedule.curves) {
      Json losses = Json::array();
      for (double loss : curve.losses) losses.push_back(NumberOrNull(loss));
      entry["curves"].push_back({{"seed", curve.seed}, {"losses", losses}});
    }
    json["schedules"].push_back(std::move(entry));
  }
  return DumpJson(json, 2);
}

bool IsTrainStudyHeader(absl::string_view line) { return line == kCsvHeader; }

std::string TrainStudyCsv(const TrainStudy& study) {
  std::string csv = absl::StrCat(kCsvHeader, "\n");
  for (const StudySchedule& schedule : study.schedules) {
    for (const StudyCurve& curve : schedule.curves) {
      for (size_t b = 0; b < curve.losses.size(); ++b) {
        absl::StrAppendFormat(
            &csv, "%s,%d,%d,%d,%d,%.6g,%.6f\n", CsvField(schedule.schedule),
            curve.seed, b + 1, (b + 1) * study.samples_per_batch,
            (b + 1) * schedule.updates_per_batch,
            static_cast<double>(b + 1) * schedule.batch_seconds,
            curve.losses[b]);
      }
    }
  }
  return csv;
}

}  // namespace weir::results
