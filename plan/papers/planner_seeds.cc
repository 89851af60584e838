// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/planner_seeds.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/worker_pool.h"
#include "plan/papers/planner_size.h"
#include "plan/papers/run_planner.h"
#include "plan/search/space.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/recomputation.h"
#include "schedules/registry.h"

namespace weir::plan {
namespace {

struct TrainingPlanner {
  absl::string_view name;
  bool flush;  // some of its plans have a flush
  bool chooses_microbatch;
  // A second schedule for a seed with the same stages.
  absl::string_view other_schedule = {};
};

constexpr TrainingPlanner kAsked[] = {
    {"dapple", true, false},
    {"bapipe", true, false},
    {"dawnpiper", true, false},
    // The second schedule saves fewer microbatches.
    {"spp", true, false, "dapple-pb"},
    {"pipedream-2bw", true, true},
    {"pipedream", false, false},
    {"accept", false, false},
};

// Plans without a flush have as many ranks as devices, and a search takes
// seconds to evaluate one. Above this many devices x layers, their planners run
// at a single microbatch size.
constexpr int64_t kMostWithoutFlush = 5000;

// Planners with a longer estimate are skipped: seeds are only starting points,
// and planners grow with the square or the cube of layers and devices.
constexpr double kMostSeedSeconds = 2;

// Planners run with at most this many microbatch sizes for each number of
// tensor-parallel GPUs: a batch may have dozens of divisors, and a search that
// starts from a plan with a similar size finds the others.
constexpr size_t kMostSizes = 4;

// The input of a planner. Consecutive requests often have the same numbers of
// GPUs and of tensor-parallel GPUs.
struct SeedRequest {
  uint32_t gpus;  // 0: all
  uint32_t tensor;
  uint32_t microbatch_size;
  const TrainingPlanner* asked;
};

// Keeps the SharedFacts of the last request, for following requests with the
// same numbers of GPUs and of tensor-parallel GPUs.
class Facts {
 public:
  SharedFacts* Of(const scenarios::ResolvedScenario& given,
                  const SeedRequest& request) {
    const std::pair now = {request.gpus, request.tensor};
    if (!facts_.has_value() || now != of_) facts_.emplace(given);
    of_ = now;
    return &*facts_;
  }

 private:
  std::pair<uint32_t, uint32_t> of_;
  std::optional<SharedFacts> facts_;
};

template <typename Values, typename Value>
bool Allows(const Values& values, const Value& value) {
  return values.empty() ||
         std::find(values.begin(), values.end(), value) != values.end();
}

bool AllowsSchedule(const Space& made, const std::string& name) {
  const auto kind = schedules::FindScheduleKind(name);
  return kind.ok() &&
         std::find(made.schedule_names.begin(), made.schedule_names.end(),
                   (*kind)->name) != made.schedule_names.end();
}

// Replaces a schedule that the search may not use, for instance because the
// runtime does not have it, by 1F1B, for which the planner's stages may be
// good, too.
void UseAllowedSchedule(const Space& made, Scenario* scenario) {
  constexpr char kUsual[] = "1f1b";
  const auto kind = schedules::FindScheduleKind(scenario->schedule());
  if (kind.ok() && (*kind)->flush && scenario->parallelism().chunks() <= 1 &&
      !AllowsSchedule(made, scenario->schedule()) &&
      AllowsSchedule(made, kUsual)) {
    scenario->set_schedule(kUsual);
  }
}

std::string ShardingOf(const Training& training) {
  if (training.fully_sharded()) return "full";
  return training.distributed_optimizer() ? "optimizer" : "none";
}

bool IsAllowed(const Plan& plan, const PlanSpace& space, const Space& made) {
  const Parallelism& parallelism = plan.scenario().parallelism();
  const Training& training = plan.scenario().training();
  const auto& blocks = parallelism.blocks_per_stage();
  const bool even =
      std::all_of(blocks.begin(), blocks.end(),
                  [&](uint32_t count) { return count == blocks.Get(0); });
  return Allows(space.gpus(), plan.num_gpus()) &&
         Allows(space.pipeline(), parallelism.pipeline()) &&
         Allows(space.data(), parallelism.data()) &&
         Allows(space.context(), std::max(parallelism.context(), 1u)) &&
         Allows(space.expert(), std::max(parallelism.expert(), 1u)) &&
         Allows(space.expert_tensor(), parallelism.expert_tensor() > 0
                                           ? parallelism.expert_tensor()
                                           : parallelism.tensor()) &&
         Allows(space.data_replicate(),
                std::max(parallelism.data_replicate(), 1u)) &&
         Allows(space.chunks(), std::max(parallelism.chunks(), 1u)) &&
         Allows(space.microbatch_size(),
                plan.scenario().batch().microbatch_size()) &&
         Allows(space.recompute(),
                std::max<int>(training.recompute(), RECOMPUTE_NONE)) &&
         Allows(space.orders(), parallelism.order()) &&
         Allows(space.sharding(), ShardingOf(training)) &&
         (even || !space.even_layers_only()) &&
         AllowsSchedule(made, plan.scenario().schedule());
}

// Returns the scenario's own value if the request allows it, else the first
// value that it allows.
template <typename Values>
uint32_t Preferred(const Values& values, uint32_t own, uint32_t usual) {
  if (own == 0) own = usual;
  return Allows(values, own) ? own : values[0];
}

absl::StatusOr<PlanReport> ReportOf(const Space& made,
                                    const PlanRequest& request,
                                    const SeedRequest& seed, Facts* facts) {
  Scenario scenario = request.scenario();
  const PlanSpace& space = request.space();
  scenario.mutable_parallelism()->set_tensor(seed.tensor);
  scenario.mutable_parallelism()->clear_context();
  scenario.mutable_parallelism()->clear_context_method();
  scenario.mutable_parallelism()->clear_hierarchical_context();
  scenario.mutable_batch()->set_microbatch_size(seed.microbatch_size);
  scenarios::SetRecompute(
      static_cast<RecomputeMode>(Preferred(
          space.recompute(), scenario.training().recompute(), RECOMPUTE_NONE)),
      scenario.mutable_training());
  ASSIGN_OR_RETURN(
      const scenarios::ResolvedScenario given,
      GivenForPlanners(made.base.label, scenario, static_cast<int>(seed.gpus),
                       made.memory_limit_bytes));
  ASSIGN_OR_RETURN(const PaperPlanner* planner,
                   FindPaperPlanner(seed.asked->name));
  RETURN_IF_ERROR(CheckPlannerSize(planner->name, given));
  if (EstimatePlanner(planner->name, PlannerSizeOf(given)).seconds >
      kMostSeedSeconds) {
    return absl::ResourceExhaustedError(
        "takes too long to provide a start for the search");
  }
  ASSIGN_OR_RETURN(const PlannedPipeline planned,
                   planner->plan(given, facts->Of(given, seed)));
  Plan plan;
  ASSIGN_OR_RETURN(*plan.mutable_scenario(), ScenarioOf(planned, given));
  plan.set_source(std::string(planner->name));
  const Parallelism& parallelism = plan.scenario().parallelism();
  plan.set_num_gpus(seed.tensor * parallelism.pipeline() * parallelism.data());
  PlanReport answer;
  *answer.add_plans() = plan;
  if (!seed.asked->other_schedule.empty()) {
    plan.mutable_scenario()->set_schedule(
        std::string(seed.asked->other_schedule));
    *answer.add_plans() = plan;
  }
  for (Plan& one : *answer.mutable_plans()) {
    UseAllowedSchedule(made, one.mutable_scenario());
  }
  return answer;
}

// Returns at most kMostSizes of `sizes`: the scenario's own and, starting with
// the smallest, one from each power of two to the next.
std::set<uint32_t> FewSizes(const PlanRequest& request,
                            const std::set<uint32_t>& sizes) {
  if (sizes.size() <= kMostSizes) return sizes;
  std::set<uint32_t> few;
  const uint32_t own = request.scenario().batch().microbatch_size();
  if (sizes.contains(own)) few.insert(own);
  int last_width = 0;
  for (const uint32_t size : sizes) {
    const int width = std::bit_width(size);
    if (width > last_width && few.size() < kMostSizes) few.insert(size);
    last_width = width;
  }
  return few;
}

// Returns those of `sizes` with which a planner runs.
std::set<uint32_t> SizesFor(const TrainingPlanner& asked,
                            const PlanRequest& request, int64_t device_layers,
                            const std::set<uint32_t>& sizes) {
  if (asked.chooses_microbatch) return {*sizes.begin()};
  if (asked.flush || device_layers <= kMostWithoutFlush) {
    return FewSizes(request, sizes);
  }
  return {Preferred(request.space().microbatch_size(),
                    request.scenario().batch().microbatch_size(), 1)};
}

std::vector<SeedRequest> SeedRequestsOf(const Space& made,
                                        const PlanRequest& request) {
  std::map<uint32_t, std::set<uint32_t>> sizes;  // by tensor-parallel size
  for (const Shape& shape : made.shapes) {
    sizes[shape.tensor].insert(shape.microbatch_size);
  }
  const PlanSpace& space = request.space();
  std::set<uint32_t> gpus(space.gpus().begin(), space.gpus().end());
  if (gpus.empty()) gpus = {0};
  const bool asynchronous = space.asynchronous() || !space.schedules().empty();
  std::vector<SeedRequest> questions;
  for (const uint32_t count : gpus) {
    for (const auto& [tensor, all] : sizes) {
      const int64_t num_devices =
          (count > 0 ? count : scenarios::NumGpus(made.base.cluster)) / tensor;
      for (const TrainingPlanner& asked : kAsked) {
        if (!asked.flush && !asynchronous) continue;
        for (const uint32_t size :
             SizesFor(asked, request, num_devices * NumBlocks(made.base.model),
                      all)) {
          questions.push_back({count, tensor, size, &asked});
        }
      }
    }
  }
  return questions;
}

}  // namespace

std::vector<Plan> SeedsFor(const std::string& label, const PlanRequest& request,
                           const SearchOptions& options,
                           const std::function<void(double)>& progress) {
  const absl::StatusOr<Space> made = MakeSpace(label, request);
  if (!made.ok()) return {};
  const std::vector<SeedRequest> questions = SeedRequestsOf(*made, request);
  PlanRequest counted = request;
  counted.mutable_scenario()->set_num_nodes(made->base.scenario.num_nodes());
  std::vector<PlanReport> answers(questions.size());
  Facts facts;  // one per process
  Jobs jobs;
  jobs.num_jobs = static_cast<int>(questions.size());
  jobs.num_processes = options.num_processes;
  jobs.run = [&](int job) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const PlanReport answer,
                     ReportOf(*made, counted, questions[job], &facts));
    return answer.SerializeAsString();
  };
  int num_done = 0;
  jobs.done = [&](int job, absl::StatusOr<std::string> output) {
    ++num_done;
    if (output.ok()) answers[job].ParseFromString(*output);
  };
  jobs.stop = [&] {
    if (progress) progress(1.0 * num_done / std::max(jobs.num_jobs, 1));
    return MustEnd(options);
  };
  // If no process can be started, the search reports it.
  RunJobs(jobs).IgnoreError();
  std::vector<Plan> seeds;
  for (PlanReport& answer : answers) {
    for (Plan& plan : *answer.mutable_plans()) {
      if (IsAllowed(plan, request.space(), *made)) {
        seeds.push_back(std::move(plan));
      }
    }
  }
  return seeds;
}

}  // namespace weir::plan
