// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/execution_plan.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "calibrate/execute/stage/stage_limits.h"
#include "models/layer_work.h"
#include "models/partition.h"
#include "schedules/options.h"
#include "schedules/registry.h"

namespace weir::calibrate {
namespace {

constexpr absl::string_view kPipeMare = "pipemare";
constexpr absl::string_view kPipelinedBackprop = "pipelined-backprop";

// Optimizer rules that only the schedule's name determines.
struct OptimizerRules {
  int annealing = 0;  // K of PipeMare's T1
  bool compensates_spikes = false;
};

OptimizerRules RulesOf(const schedules::Schedule& schedule) {
  OptimizerRules rules;
  const auto kind = schedules::FindScheduleKind(schedule.name);
  if (!kind.ok()) return rules;  // a file
  const auto spec = schedules::WithOptionsOf(schedule.name, **kind,
                                             schedules::ScheduleSpec());
  if (!spec.ok()) return rules;
  Problems none("");
  if ((*kind)->name == kPipeMare) {
    rules.annealing =
        schedules::IntOption(*spec, "annealing", 0, 0, INT_MAX, &none);
  } else if ((*kind)->name == kPipelinedBackprop) {
    const auto mitigation = spec->options.find("mitigation");
    rules.compensates_spikes = mitigation != spec->options.end() &&
                               mitigation->second == "spike-compensation";
  }
  return rules;
}

int NumLayers(const Model& model) {
  return static_cast<int>(model.transformer().num_layers()) + 2;
}

// Returns the spec of the whole model, for checks independent of the partition.
StageSpec WholeSpec(const ExecutionRequest& request) {
  StageSpec spec = request.spec;
  spec.first_layer = 0;
  spec.last_layer = NumLayers(request.model);
  return spec;
}

void CheckCut(const ExecutionRequest& request, Problems* problems) {
  const std::vector<int>& first = request.first_layer;
  if (first.empty()) return;
  const bool ascends =
      std::adjacent_find(first.begin(), first.end(), std::greater_equal<>()) ==
      first.end();
  if (std::ssize(first) == request.schedule.num_stages + 1 && ascends &&
      first.front() == 0 && first.back() == NumLayers(request.model)) {
    return;
  }
  problems->Add(
      "first_layer",
      absl::StrCat("is ", absl::StrJoin(first, " "), ", expected ",
                   request.schedule.num_stages + 1,
                   " ascending numbers from 0 to ", NumLayers(request.model)));
}

void CheckOptimizer(const ExecutionRequest& request, Problems* problems) {
  const StageOptimizer& optimizer = request.optimizer;
  const schedules::Schedule& schedule = request.schedule;
  problems->CheckPositive("learning_rate", optimizer.learning_rate);
  problems->CheckRange("momentum", optimizer.momentum, 0, std::nextafter(1, 0));
  problems->CheckRange("average_decay", optimizer.average_decay, 0,
                       std::nextafter(1, 0));
  if (RulesOf(schedule).compensates_spikes && optimizer.kind == ADAM) {
    problems->Add("optimizer",
                  absl::StrCat("is adam, expected momentum: ", schedule.name,
                               " scales its velocity"));
  }
}

// Checks that both stages of a tied table update at the same time by the same
// rule, so that their copies stay equal.
void CheckTied(const ExecutionRequest& request, Problems* problems) {
  const schedules::Schedule& schedule = request.schedule;
  if (!request.model.transformer().tied_embeddings() || schedule.forward_only ||
      schedule.num_stages < 2) {
    return;
  }
  const OptimizerRules rules = RulesOf(schedule);
  if (rules.annealing > 0 || rules.compensates_spikes) {
    problems->Add(
        "tied_embeddings",
        absl::StrCat(
            "is on, expected off: ", schedule.name,
            " uses different update rules for the first and the last stage"));
  }
  const int first = schedule.microbatches_per_update(0);
  const int last = schedule.microbatches_per_update(schedule.num_stages - 1);
  if (first == last) return;
  problems->Add("tied_embeddings",
                absl::StrCat("is on, expected off: the first stage updates "
                             "after ",
                             first, " microbatches, the last after ", last));
}

absl::Status CheckRequest(const ExecutionRequest& request) {
  RETURN_IF_ERROR(CheckStage(request.model, WholeSpec(request)));
  Problems problems("replay");
  const schedules::Schedule& schedule = request.schedule;
  if (request.num_steps < 1 || (!schedule.flush && request.num_steps != 1)) {
    problems.Add("num_steps",
                 absl::StrCat("is ", request.num_steps,
                              schedule.flush ? ", expected at least 1"
                                             : ", expected 1: all batches "
                                               "are in a schedule without "
                                               "flush"));
  }
  if (schedule.overlaps_batches()) {
    problems.Add("schedule",
                 absl::StrCat("has ", schedule.num_batches,
                              " batches with a flush, expected 1: replays do "
                              "not post-validate steps"));
  }
  if (request.spec.work.tensor_parallel != 1) {
    problems.Add("tensor_parallel",
                 absl::StrCat("is ", request.spec.work.tensor_parallel,
                              ", expected 1: replays have no collectives"));
  }
  CheckCut(request, &problems);
  CheckOptimizer(request, &problems);
  CheckTied(request, &problems);
  return problems.ToStatus();
}

absl::Status CutIntoStages(const ExecutionRequest& request,
                           ExecutionPlan* plan) {
  plan->first_layer = request.first_layer;
  if (plan->first_layer.empty()) {
    ASSIGN_OR_RETURN(
        const models::Partition partition,
        models::PartitionEvenly(models::LayersOf(plan->model, plan->spec.work),
                                plan->schedule.num_stages));
    plan->first_layer = partition.first;
  }
  for (int stage = 0; stage < plan->schedule.num_stages; ++stage) {
    StageSpec spec = plan->spec;
    spec.first_layer = plan->first_layer[stage];
    spec.last_layer = plan->first_layer[stage + 1];
    ASSIGN_OR_RETURN(StageProgram program,
                     BuildStageProgram(plan->model, spec));
    plan->programs.push_back(
        std::make_shared<const StageProgram>(std::move(program)));
  }
  return absl::OkStatus();
}

// D = 2(p-1-s) (Kosson et al., section 3): the direction that preserves the
// total contribution of a gradient over time as without delay.
void CompensateSpikes(int delay, StageOptimizer* optimizer) {
  const double m = optimizer->momentum;
  optimizer->velocity_weight = std::pow(m, delay);
  optimizer->gradient_weight = (1 - std::pow(m, delay)) / (1 - m);
}

std::vector<StageOptimizer> OptimizersOf(const ExecutionRequest& request) {
  const schedules::Schedule& schedule = request.schedule;
  const OptimizerRules rules = RulesOf(schedule);
  std::vector<StageOptimizer> optimizers;
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    StageOptimizer optimizer = request.optimizer;
    optimizer.adam.learning_rate = static_cast<float>(optimizer.learning_rate);
    optimizer.gradient_scale = 1.0 / schedule.microbatches_per_update(stage);
    const int ahead = schedule.num_stages - 1 - stage;
    if (rules.compensates_spikes) CompensateSpikes(2 * ahead, &optimizer);
    if (rules.annealing > 0) {  // (2(p-i)+1)/m, i from 1
      optimizer.delay = (2.0 * ahead + 1) / schedule.num_microbatches;
      optimizer.delay_steps = rules.annealing;
    }
    optimizers.push_back(optimizer);
  }
  return optimizers;
}

// Returns the forward operation that reads the table as its second input.
const StageOp* FindTable(const StageProgram& program, bool of_head) {
  const std::vector<StageOp>& ops = program.ops(ProgramPass::kForward);
  const auto found = std::find_if(ops.begin(), ops.end(), [&](const auto& op) {
    return of_head
               ? !op.kernels.empty() && op.kind == OpKind::kGemm &&
                     op.kernels[0].part == models::KernelPart::kVocabularyGemm
               : op.kind == OpKind::kEmbeddingForward;
  });
  return found == ops.end() ? nullptr : &*found;
}

TiedTable TiedTableOf(const ExecutionPlan& plan) {
  if (!plan.model.transformer().tied_embeddings() ||
      plan.programs.size() == 1) {
    return {};
  }
  const StageOp* embedding = FindTable(*plan.programs.front(), false);
  const StageOp* head = FindTable(*plan.programs.back(), true);
  return {.num_elements = embedding->inner * embedding->columns,
          .first_offset = embedding->inputs[1].offset,
          .last_offset = head->inputs[1].offset};
}

}  // namespace

absl::StatusOr<ExecutionPlan> MakeExecutionPlan(
    const ExecutionRequest& request) {
  RETURN_IF_ERROR(CheckRequest(request));
  ExecutionPlan plan;
  plan.schedule = request.schedule;
  plan.model = request.model;
  plan.spec = request.spec;
  plan.num_steps = request.num_steps;
  plan.seed = request.seed;
  RETURN_IF_ERROR(CutIntoStages(request, &plan));
  plan.optimizers = OptimizersOf(request);
  plan.tied = TiedTableOf(plan);
  plan.links.assign(
      static_cast<size_t>(plan.schedule.num_ranks) * plan.schedule.num_ranks,
      request.link);
  return plan;
}

}  // namespace weir::calibrate
