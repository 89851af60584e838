// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/seeds.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/interrupt.h"
#include "base/processes.h"
#include "base/status_macros.h"
#include "plan/papers/ask.h"
#include "plan/space.h"
#include "scenarios/cluster.h"
#include "schedules/registry.h"

namespace weir {
namespace {

// Devices x layers that a planner has done with in about a second.
struct Asked {
  absl::string_view name;
  int64_t most_device_layers;
  bool flush;  // some of its plans have one
};

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
constexpr Asked kAsked[] = {
    {"dapple", kAny, true},        {"bapipe", kAny, true},
    {"dawnpiper", kAny, true},     {"spp", 8000, true},
    {"pipedream-2bw", 8000, true}, {"pipedream", 5000, false},
    {"accept", 5000, false},
};

struct Question {
  const Asked* asked;
  uint32_t tensor;
  uint32_t gpus;  // 0: all
};

template <typename Values, typename Value>
bool Allows(const Values& values, const Value& value) {
  return values.empty() ||
         std::find(values.begin(), values.end(), value) != values.end();
}

bool AllowsSchedule(const PlanSpace& space, const std::string& name) {
  const auto kind = FindScheduleKind(name);
  if (!kind.ok()) return false;
  if (space.schedules().empty()) return (*kind)->flush || space.asynchronous();
  return std::any_of(space.schedules().begin(), space.schedules().end(),
                     [&](const std::string& other) {
                       const auto asked = FindScheduleKind(other);
                       return asked.ok() && *asked == *kind;
                     });
}

std::string ShardingOf(const Training& training) {
  if (training.fully_sharded()) return "full";
  return training.distributed_optimizer() ? "optimizer" : "none";
}

bool IsAllowed(const Plan& plan, const PlanSpace& space) {
  const Parallelism& parallelism = plan.scenario().parallelism();
  const Training& training = plan.scenario().training();
  const auto& blocks = parallelism.blocks_per_stage();
  const bool even =
      std::all_of(blocks.begin(), blocks.end(),
                  [&](uint32_t count) { return count == blocks.Get(0); });
  return Allows(space.gpus(), plan.num_gpus()) &&
         Allows(space.pipeline(), parallelism.pipeline()) &&
         Allows(space.data(), parallelism.data()) &&
         Allows(space.expert(), std::max(parallelism.expert(), 1u)) &&
         Allows(space.chunks(), std::max(parallelism.chunks(), 1u)) &&
         Allows(space.microbatch_size(),
                plan.scenario().batch().microbatch_size()) &&
         Allows(space.recompute(),
                std::max<int>(training.recompute(), RECOMPUTE_NONE)) &&
         Allows(space.orders(), parallelism.order()) &&
         Allows(space.sharding(), ShardingOf(training)) &&
         (even || !space.even_layers_only()) &&
         AllowsSchedule(space, plan.scenario().schedule());
}

// The scenario's own value where the request allows it.
template <typename Values>
uint32_t Preferred(const Values& values, uint32_t own, uint32_t usual) {
  if (own == 0) own = usual;
  return Allows(values, own) ? own : values[0];
}

absl::StatusOr<Plan> AnswerOf(const std::string& label,
                              const PlanRequest& request,
                              const Question& question) {
  Scenario scenario = request.scenario();
  const PlanSpace& space = request.space();
  scenario.mutable_parallelism()->set_tensor(question.tensor);
  scenario.mutable_batch()->set_microbatch_size(Preferred(
      space.microbatch_size(), scenario.batch().microbatch_size(), 1));
  scenario.mutable_training()->set_recompute(
      static_cast<RecomputeMode>(Preferred(
          space.recompute(), scenario.training().recompute(), RECOMPUTE_NONE)));
  ASSIGN_OR_RETURN(
      const ResolvedScenario given,
      GivenForPlanners(label, scenario, static_cast<int>(question.gpus),
                       request.memory_limit_bytes()));
  const int64_t num_devices =
      (question.gpus > 0 ? question.gpus : NumGpus(given.cluster)) /
      question.tensor;
  if (num_devices * NumBlocks(given.model) >
      question.asked->most_device_layers) {
    return absl::ResourceExhaustedError("too many devices and layers");
  }
  ASSIGN_OR_RETURN(const PaperPlanner* planner,
                   FindPaperPlanner(question.asked->name));
  ASSIGN_OR_RETURN(const PlannedPipeline planned, planner->plan(given));
  Plan plan;
  ASSIGN_OR_RETURN(*plan.mutable_scenario(), ScenarioOf(planned, given));
  plan.set_source(std::string(planner->name));
  const Parallelism& parallelism = plan.scenario().parallelism();
  plan.set_num_gpus(question.tensor * parallelism.pipeline() *
                    parallelism.data());
  return plan;
}

std::vector<Question> QuestionsOf(const Space& made, const PlanSpace& space) {
  std::set<uint32_t> tensors;
  for (const Shape& shape : made.shapes) tensors.insert(shape.tensor);
  std::set<uint32_t> gpus(space.gpus().begin(), space.gpus().end());
  if (gpus.empty()) gpus = {0};
  const bool asynchronous = space.asynchronous() || !space.schedules().empty();
  std::vector<Question> questions;
  for (const Asked& asked : kAsked) {
    if (!asked.flush && !asynchronous) continue;
    for (const uint32_t tensor : tensors) {
      for (const uint32_t count : gpus) {
        questions.push_back({&asked, tensor, count});
      }
    }
  }
  return questions;
}

}  // namespace

std::vector<Plan> SeedsFor(const std::string& label, const PlanRequest& request,
                           int num_processes) {
  const absl::StatusOr<Space> made = MakeSpace(label, request);
  if (!made.ok()) return {};
  const std::vector<Question> questions = QuestionsOf(*made, request.space());
  PlanRequest counted = request;
  counted.mutable_scenario()->set_num_nodes(made->base.scenario.num_nodes());
  std::vector<Plan> answers(questions.size());
  Jobs jobs;
  jobs.num_jobs = static_cast<int>(questions.size());
  jobs.num_processes = num_processes;
  jobs.run = [&](int job) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Plan plan, AnswerOf(label, counted, questions[job]));
    return plan.SerializeAsString();
  };
  jobs.done = [&](int job, absl::StatusOr<std::string> output) {
    if (output.ok()) answers[job].ParseFromString(*output);
  };
  jobs.stop = [] { return Interrupted(); };
  // Without processes the search will say so.
  RunJobs(jobs).IgnoreError();
  std::vector<Plan> seeds;
  for (Plan& plan : answers) {
    if (plan.source().empty() || !IsAllowed(plan, request.space())) continue;
    seeds.push_back(std::move(plan));
  }
  return seeds;
}

}  // namespace weir
