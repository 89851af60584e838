// SPDX-License-Identifier: Apache-2.0
#include "calibrate/replay/sequential.h"

#include <cmath>
#include <limits>
#include <utility>

#include "base/status_macros.h"
#include "calibrate/replay/optimizer_math.h"
#include "calibrate/replay/stage_chain.h"
#include "calibrate/replay/training.h"
#include "calibrate/replay/update_formula.h"

namespace weir {
namespace {

// What a stage was and is: every version with what its optimizer then kept.
class StageHistory {
 public:
  StageHistory(const StageOptimizer& optimizer, std::vector<double> weights)
      : optimizer_(optimizer) {
    const std::vector<double> zeros(weights.size(), 0);
    versions_.push_back({std::move(weights), zeros, zeros, zeros});
  }

  const std::vector<double>& newest() const { return versions_.back().weights; }

  std::vector<double> At(const WeightsRead& read, bool by_average) const {
    Version version = versions_[read.version];
    std::vector<double> weights = version.weights;
    if (by_average) {
      EstimateByAverage(read.distance, version.weights, version.average,
                        absl::MakeSpan(weights));
    } else {
      EstimateWeights(optimizer_, read.version, read.distance, version.weights,
                      version.moments(), absl::MakeSpan(weights));
    }
    return weights;
  }

  // Clears the gradients.
  void Update(std::vector<double>* gradients) {
    const int step = static_cast<int>(versions_.size());
    Version next = versions_.back();
    StepWeights(optimizer_, step, versions_.back().weights, next.moments(),
                absl::MakeSpan(*gradients), absl::MakeSpan(next.weights));
    MoveAverage(optimizer_.average_decay, versions_.back().weights,
                next.weights, absl::MakeSpan(next.average));
    versions_.push_back(std::move(next));
  }

 private:
  struct Version {
    std::vector<double> weights, first, second, average;
    Moments moments() {
      return {absl::MakeSpan(first), absl::MakeSpan(second)};
    }
  };

  const StageOptimizer& optimizer_;
  std::vector<Version> versions_;
};

std::shared_ptr<const StageProgram> WholeProgram(const ReplayPlan& plan) {
  StageSpec spec = plan.spec;
  spec.first_layer = 0;
  spec.last_layer = plan.num_layers();
  // MakeReplayPlan has built its parts.
  return std::make_shared<const StageProgram>(
      BuildStageProgram(plan.model, spec).value());
}

int64_t NumMicrobatches(const ReplayPlan& plan) {
  return int64_t{plan.schedule.total_microbatches()} * plan.num_steps;
}

// Every step the mean gradient of its microbatches, at the newest weights.
SequentialRecord TrainWhole(const ReplayPlan& plan) {
  StageChain chain(plan, {WholeProgram(plan)});
  StageHistory history(plan.optimizers[0],
                       InitialWeights(plan, 0, plan.num_layers()));
  SequentialRecord record;
  for (int64_t k = 0; k < NumMicrobatches(plan);) {
    const StageVectors weights = {history.newest()};
    for (int i = 0; i < plan.schedule.num_microbatches; ++i, ++k) {
      record.losses.push_back(chain.Forward(k, weights));
      if (!plan.schedule.forward_only) chain.Backward(weights);
    }
    if (!plan.schedule.forward_only) history.Update(&chain.gradients()[0]);
  }
  record.weights = CutWeights(plan, history.newest());
  record.formula =
      plan.schedule.forward_only
          ? "f(W(0)), inference"
          : "W(t+1) = W(t) - v grad f(W(t)), one stage, minibatch SGD";
  return record;
}

// One table in two stages has one gradient.
void AddTiedGradients(const TiedTable& tied, StageVectors* gradients) {
  for (int64_t i = 0; i < tied.num_elements; ++i) {
    double& first = gradients->front()[tied.first_offset + i];
    double& last = gradients->back()[tied.last_offset + i];
    first = last = first + last;
  }
}

StageVectors Read(const std::vector<StageHistory>& histories,
                  const UpdateFormula& formula, bool forward, int k) {
  StageVectors weights;
  for (int stage = 0; stage < std::ssize(histories); ++stage) {
    const WeightsRead read =
        forward ? formula.forward(stage, k) : formula.backward(stage, k);
    weights.push_back(histories[stage].At(read, formula.by_average));
  }
  return weights;
}

// Microbatch by microbatch. Where a formula reads version v for microbatch k,
// v's gradients are of microbatches before k: it is always known.
SequentialRecord TrainStages(const ReplayPlan& plan,
                             const UpdateFormula& formula, int bits) {
  StageChain chain(plan, plan.programs, bits);
  const int num_stages = plan.schedule.num_stages;
  std::vector<StageHistory> histories;
  for (int stage = 0; stage < num_stages; ++stage) {
    histories.emplace_back(plan.optimizers[stage],
                           InitialWeights(plan, plan.first_layer[stage],
                                          plan.first_layer[stage + 1]));
  }
  const std::vector<int>& group = formula.microbatches_per_update;
  SequentialRecord record;
  record.formula = formula.text;
  for (int k = 0; k < NumMicrobatches(plan); ++k) {
    record.losses.push_back(
        chain.Forward(k, Read(histories, formula, true, k)));
    chain.Backward(Read(histories, formula, false, k));
    // Tied tables only where first and last update together (MakeReplayPlan).
    if ((k + 1) % group.front() == 0) {
      AddTiedGradients(plan.tied, &chain.gradients());
    }
    for (int stage = 0; stage < num_stages; ++stage) {
      if ((k + 1) % group[stage] != 0) continue;
      histories[stage].Update(&chain.gradients()[stage]);
    }
  }
  for (const StageHistory& history : histories) {
    record.weights.push_back(history.newest());
  }
  return record;
}

double RelativeDifference(absl::Span<const double> a,
                          absl::Span<const double> b) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return kNone;
  double error = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  if (error == 0) return 0;
  const double difference = std::sqrt(error / size);
  return std::isfinite(difference) ? difference : kNone;
}

}  // namespace

absl::StatusOr<SequentialRecord> TrainSequentially(const ReplayPlan& plan) {
  const Schedule& schedule = plan.schedule;
  const FormulaShape shape{schedule.num_stages, schedule.num_microbatches};
  if (schedule.flush || schedule.forward_only) {
    // Rounding is of what crosses the cuts: there must be cuts.
    if (plan.compressed_bits == 0 || !schedule.compressed_transfers) {
      return TrainWhole(plan);
    }
    return TrainStages(plan, SynchronousFormula(shape), plan.compressed_bits);
  }
  ASSIGN_OR_RETURN(const UpdateFormula formula,
                   FormulaOf(schedule.name, shape));
  return TrainStages(plan, formula, 0);
}

TrainingDifference DifferenceOf(
    const ReplayRecord& replay, const std::vector<double>& losses,
    const std::vector<absl::Span<const double>>& weights) {
  std::vector<double> replayed;
  for (const StepRecord& step : replay.steps) {
    replayed.insert(replayed.end(), step.losses.begin(), step.losses.end());
  }
  TrainingDifference difference;
  difference.losses = RelativeDifference(replayed, losses);
  if (replay.weights.size() != weights.size()) {
    difference.weights = std::numeric_limits<double>::infinity();
    return difference;
  }
  for (size_t stage = 0; stage < weights.size(); ++stage) {
    const double of_stage =
        RelativeDifference(replay.weights[stage], weights[stage]);
    if (of_stage <= difference.weights) continue;
    difference.weights = of_stage;
    difference.worst_stage = static_cast<int>(stage);
  }
  return difference;
}

TrainingDifference DifferenceOf(const ReplayRecord& replay,
                                const SequentialRecord& formula) {
  return DifferenceOf(replay, formula.losses,
                      {formula.weights.begin(), formula.weights.end()});
}

}  // namespace weir
