// SPDX-License-Identifier: Apache-2.0
#include "calibrate/program/training_check.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "calibrate/replay/replay.h"
#include "calibrate/replay/sequential.h"
#include "schedules/registry.h"

namespace weir {
namespace {

// Of a number near 1 that is rounded to the format.
double UnitRoundoff(ElementFormat format) {
  switch (format) {
    case ElementFormat::kBf16:
      return std::exp2(-9);
    case ElementFormat::kFp16:
      return std::exp2(-12);
    default:
      return std::exp2(-24);
  }
}

TrainingCheck CheckOf(const TrainingDifference& difference,
                      const std::string& formula, double tolerance) {
  TrainingCheck check;
  check.formula = formula;
  check.weights_difference = difference.weights;
  check.losses_difference = difference.losses;
  check.worst_stage = difference.worst_stage;
  check.tolerance = tolerance;
  return check;
}

// The same model, data and steps with all layers in one stage.
absl::StatusOr<ReplayPlan> SingleStagePlan(const ReplayPlan& plan) {
  ReplayRequest request;
  ScheduleSpec spec;
  spec.num_microbatches = plan.schedule.num_microbatches;
  ASSIGN_OR_RETURN(request.schedule, GenerateSchedule("1f1b", spec));
  request.model = plan.model;
  request.spec = plan.spec;
  request.first_layer = {0, plan.num_layers()};
  request.optimizer = plan.optimizers.front();
  request.num_steps = plan.num_steps;
  request.seed = plan.seed;
  ASSIGN_OR_RETURN(ReplayPlan single, MakeReplayPlan(request));
  single.timeout_seconds = plan.timeout_seconds;
  return single;
}

// Cuts the weights of a single stage as the plan's stages are cut. False where
// stages have copies of an embedding, which the single one has once.
bool CutAs(const ReplayRecord& record, absl::Span<const double> whole,
           std::vector<absl::Span<const double>>* stages) {
  for (const std::vector<double>& stage : record.weights) {
    if (stage.size() > whole.size()) return false;
    stages->push_back(whole.first(stage.size()));
    whole.remove_prefix(stage.size());
  }
  return whole.empty();
}

}  // namespace

double GpuTolerance(ElementFormat format) { return 4 * UnitRoundoff(format); }

absl::StatusOr<TrainingCheck> CheckOnHost(const ReplayPlan& plan,
                                          const ReplayRecord& record) {
  const absl::StatusOr<SequentialRecord> reference = TrainSequentially(plan);
  if (absl::IsNotFound(reference.status())) {
    TrainingCheck unchecked;
    unchecked.why_not = std::string(reference.status().message());
    return unchecked;
  }
  RETURN_IF_ERROR(reference.status());
  return CheckOf(DifferenceOf(record, *reference), reference->formula,
                 kHostTolerance);
}

absl::StatusOr<TrainingCheck> CheckOnDevice(const ReplayPlan& plan,
                                            const ReplayRecord& record,
                                            const OpenDevice& open) {
  TrainingCheck unchecked;
  if (!plan.schedule.flush) {
    unchecked.why_not = absl::StrCat(
        plan.schedule.name,
        " has no flush: no single stage trains like it on the device; the "
        "versions that were read are checked, its sums are with --cpu");
    return unchecked;
  }
  ASSIGN_OR_RETURN(const ReplayPlan single, SingleStagePlan(plan));
  ASSIGN_OR_RETURN(const std::unique_ptr<ReplayDevice> device, open(single));
  ASSIGN_OR_RETURN(const ReplayRecord trained, RunReplay(single, device.get()));
  std::string formula = "one stage with the whole model, on the same device";
  std::vector<double> losses;
  for (const StepRecord& step : trained.steps) {
    losses.insert(losses.end(), step.losses.begin(), step.losses.end());
  }
  std::vector<absl::Span<const double>> weights;
  if (!CutAs(record, trained.weights.front(), &weights)) {
    formula += " (losses alone: embeddings are tied over stages)";
    weights.assign(record.weights.begin(), record.weights.end());
  }
  return CheckOf(DifferenceOf(record, losses, weights), formula,
                 GpuTolerance(plan.spec.format));
}

}  // namespace weir
