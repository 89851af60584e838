// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/sequential.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <utility>

#include "base/status_macros.h"
#include "calibrate/execute/host_device.h"
#include "calibrate/execute/stage_chain.h"
#include "calibrate/execute/stage_history.h"
#include "calibrate/execute/training.h"
#include "calibrate/execute/update_formula.h"

namespace weir::calibrate {
namespace {

// Returns the plan with all stages on one rank.
ExecutionPlan OneRank(const ExecutionPlan& plan) {
  ExecutionPlan one = plan;
  one.schedule = schedules::Schedule();
  one.schedule.num_ranks = 1;
  one.schedule.num_stages = plan.schedule.num_stages;
  one.links.assign(1, LinkSpec());
  one.predicted_peak_bytes.clear();
  return one;
}

// Returns the plan with all layers in one stage.
ExecutionPlan OneStage(const ExecutionPlan& plan) {
  ExecutionPlan one = OneRank(plan);
  StageSpec spec = plan.spec;
  spec.first_layer = 0;
  spec.last_layer = plan.num_layers();
  one.schedule.num_stages = 1;
  one.first_layer = {0, plan.num_layers()};
  // Succeeds because MakeExecutionPlan has built the parts.
  one.programs = {std::make_shared<const StageProgram>(
      BuildStageProgram(plan.model, spec).value())};
  one.optimizers.resize(1);
  one.tied = TiedTable();
  return one;
}

// Trains a plan's stages microbatch by microbatch. If a formula reads version v
// for microbatch k, all gradients that v contains are of microbatches before k.
// Therefore v is available when k is trained.
class Training {
 public:
  Training(const ExecutionPlan& plan, RankDevice* device, bool trains, int bits)
      : plan_(plan),
        device_(device),
        trains_(trains),
        chain_(plan, device, bits) {}

  absl::StatusOr<SequentialRecord> Run(const UpdateFormula& formula,
                                       int num_microbatches) {
    const int num_stages = plan_.schedule.num_stages;
    std::vector<void*> gradients;
    for (int stage = 0; stage < num_stages; ++stage) {
      histories_.emplace_back(plan_, stage, device_, trains_);
      RETURN_IF_ERROR(histories_.back().Begin(formula, num_microbatches));
      gradients.push_back(histories_.back().gradients());
    }
    SequentialRecord record;
    record.formula = formula.text;
    for (int k = 0; k < num_microbatches; ++k) {
      ASSIGN_OR_RETURN(const std::vector<void*> ahead,
                       Read(formula.forward, k));
      ASSIGN_OR_RETURN(const double loss, chain_.Forward(k, ahead));
      record.losses.push_back(loss);
      if (!trains_) continue;
      ASSIGN_OR_RETURN(const std::vector<void*> back,
                       Read(formula.backward, k));
      RETURN_IF_ERROR(chain_.Backward(back, gradients));
      RETURN_IF_ERROR(Update(formula.microbatches_per_update, k));
    }
    for (const StageHistory& history : histories_) {
      ASSIGN_OR_RETURN(std::vector<double> weights, history.Download());
      record.weights.push_back(std::move(weights));
    }
    return record;
  }

 private:
  absl::StatusOr<std::vector<void*>> Read(
      const std::function<WeightsRead(int stage, int microbatch)>& of, int k) {
    std::vector<void*> weights;
    for (int stage = 0; stage < std::ssize(histories_); ++stage) {
      ASSIGN_OR_RETURN(void* memory, histories_[stage].At(of(stage, k)));
      weights.push_back(memory);
    }
    return weights;
  }

  absl::Status Update(const std::vector<int>& group, int k) {
    // Tied tables occur only if first and last stage update together
    // (MakeExecutionPlan).
    if ((k + 1) % group.front() == 0) {
      RETURN_IF_ERROR(AddTiedGradients());
    }
    for (int stage = 0; stage < std::ssize(histories_); ++stage) {
      RETURN_IF_ERROR(histories_[stage].Release(k));
      if ((k + 1) % group[stage] != 0) continue;
      RETURN_IF_ERROR(histories_[stage].Update());
    }
    return absl::OkStatus();
  }

  // A table in two stages has one gradient.
  absl::Status AddTiedGradients() {
    const TiedTable& tied = plan_.tied;
    if (tied.num_elements == 0) return absl::OkStatus();
    constexpr ElementFormat kFormat = ElementFormat::kFp32;
    void* const first = device_->ElementAt(histories_.front().gradients(),
                                           tied.first_offset, kFormat);
    void* const last = device_->ElementAt(histories_.back().gradients(),
                                          tied.last_offset, kFormat);
    RETURN_IF_ERROR(device_->Add(tied.num_elements, last, first));
    RETURN_IF_ERROR(device_->Clear(tied.num_elements, kFormat, last));
    return device_->Add(tied.num_elements, first, last);
  }

  const ExecutionPlan& plan_;
  RankDevice* const device_;
  const bool trains_;
  StageChain chain_;
  std::deque<StageHistory> histories_;  // [stage]
};

absl::StatusOr<SequentialRecord> Train(const ExecutionPlan& plan,
                                       const ExecutionPlan& one,
                                       const UpdateFormula& formula, int bits,
                                       const OpenDevice& open) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ExecutionDevice> device, open(one));
  RETURN_IF_ERROR(device->Start());
  return Training(one, device->rank(0), !plan.schedule.forward_only, bits)
      .Run(formula, plan.schedule.total_microbatches() * plan.num_steps);
}

// Trains with the mean gradient of each step's microbatches at the newest
// weights.
absl::StatusOr<SequentialRecord> TrainWhole(const ExecutionPlan& plan,
                                            const OpenDevice& open) {
  UpdateFormula formula =
      SynchronousFormula({1, plan.schedule.num_microbatches});
  formula.text = plan.schedule.forward_only
                     ? "f(w(0)), inference"
                     : "w(t+1) = w(t) - eta grad f(w(t)), one stage, minibatch "
                       "SGD";
  if (plan.schedule.forward_only) {
    formula.forward = [](int, int) { return WeightsRead(); };
  }
  ASSIGN_OR_RETURN(SequentialRecord record,
                   Train(plan, OneStage(plan), formula, 0, open));
  record.weights = CutWeights(plan, record.weights[0]);
  return record;
}

constexpr double kNoNumber = std::numeric_limits<double>::infinity();

double Quotient(double error, double size) {
  if (error == 0) return 0;
  const double difference = std::sqrt(error / size);
  return std::isfinite(difference) ? difference : kNoNumber;
}

// Requires: equal lengths.
double SquaredDistance(absl::Span<const double> a, absl::Span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

double SquaredNorm(absl::Span<const double> a) {
  return std::inner_product(a.begin(), a.end(), a.begin(), 0.0);
}

void AddStage(const ExecutionPlan& plan, int stage, absl::Span<const double> a,
              absl::Span<const double> b, TrainingDifference* difference) {
  double weights = kNoNumber, change = kNoNumber;
  if (a.size() == b.size()) {
    const double error = SquaredDistance(a, b);
    weights = Quotient(error, SquaredNorm(b));
    change = Quotient(
        error, SquaredDistance(InitialWeights(plan, plan.first_layer[stage],
                                              plan.first_layer[stage + 1]),
                               b));
  }
  difference->weights = std::max(difference->weights, weights);
  if (change <= difference->change) return;
  difference->change = change;
  difference->worst_stage = stage;
}

}  // namespace

absl::StatusOr<SequentialRecord> TrainSequentially(const ExecutionPlan& plan,
                                                   const OpenDevice& open) {
  const schedules::Schedule& schedule = plan.schedule;
  const FormulaShape shape{schedule.num_stages, schedule.num_microbatches};
  if (schedule.flush || schedule.forward_only) {
    // Compression rounds what crosses stage boundaries, so the stages must be
    // kept.
    if (plan.compressed_bits == 0 || !schedule.compressed_transfers) {
      return TrainWhole(plan, open);
    }
    return Train(plan, OneRank(plan), SynchronousFormula(shape),
                 plan.compressed_bits, open);
  }
  ASSIGN_OR_RETURN(const UpdateFormula formula,
                   FormulaOf(schedule.name, shape));
  return Train(plan, OneRank(plan), formula, 0, open);
}

absl::StatusOr<SequentialRecord> TrainSequentially(const ExecutionPlan& plan) {
  return TrainSequentially(plan, [](const ExecutionPlan& one) {
    return MakeHostDevice(one, {.concurrent = false});
  });
}

TrainingDifference DifferenceOf(const ExecutionPlan& plan,
                                const ExecutionRecord& replay,
                                const SequentialRecord& formula) {
  std::vector<double> losses;
  for (const StepRecord& step : replay.steps) {
    losses.insert(losses.end(), step.losses.begin(), step.losses.end());
  }
  TrainingDifference difference;
  const bool comparable = losses.size() == formula.losses.size();
  difference.losses = comparable
                          ? Quotient(SquaredDistance(losses, formula.losses),
                                     SquaredNorm(formula.losses))
                          : kNoNumber;
  if (replay.weights.size() != formula.weights.size()) {
    difference.weights = difference.change = kNoNumber;
    return difference;
  }
  for (int stage = 0; stage < std::ssize(formula.weights); ++stage) {
    AddStage(plan, stage, replay.weights[stage], formula.weights[stage],
             &difference);
  }
  return difference;
}

}  // namespace weir::calibrate
