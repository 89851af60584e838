// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/run_planner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "plan/papers/planner_result.h"
#include "plan/papers/planner_size.h"
#include "results/result.pb.h"
#include "scenarios/cluster/cluster.h"
#include "schedules/lint/lint.h"
#include "sim/simulate.h"

namespace weir::plan {
namespace {

absl::StatusOr<int> NumLintErrors(const scenarios::ResolvedScenario& scenario,
                                  bool* trains) {
  // Two batches also cover the transition between batches, where supported.
  absl::StatusOr<schedules::Schedule> schedule =
      sim::ScheduleOfScenario(scenario, 2);
  if (!schedule.ok()) schedule = sim::ScheduleOfScenario(scenario, 1);
  RETURN_IF_ERROR(schedule.status());
  *trains = !schedule->forward_only;
  const schedules::LintReport report = schedules::LintSchedule(*schedule, {});
  return static_cast<int>(std::count_if(
      report.findings.begin(), report.findings.end(),
      [](const schedules::Finding& found) {
        return found.severity == schedules::Finding::Severity::kError;
      }));
}

void LimitMemory(double bytes, DeviceProfile* device) {
  Figure& memory = *device->mutable_memory_bytes();
  memory.set_value(std::min(memory.value(), bytes));
}

void ScaleMemory(double times, DeviceProfile* device) {
  Figure& memory = *device->mutable_memory_bytes();
  memory.set_value(memory.value() * times);
}

absl::Status SimulatePlan(const scenarios::ResolvedScenario& given,
                          PlannerResult* answer) {
  ASSIGN_OR_RETURN(answer->scenario, ScenarioOf(answer->plan, given));
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario resolved,
                   scenarios::ResolveScenario(given.label, answer->scenario));
  ASSIGN_OR_RETURN(answer->num_lint_errors,
                   NumLintErrors(resolved, &answer->trains));
  ASSIGN_OR_RETURN(const Result result, sim::Simulate(resolved));
  answer->batch_seconds = result.batch_seconds();
  answer->samples_per_second =
      resolved.scenario.batch().global_batch_size() / result.batch_seconds();
  for (const RankResult& rank : result.ranks()) {
    answer->peak_memory_bytes =
        std::max(answer->peak_memory_bytes, rank.peak_memory_bytes());
  }
  answer->fits_memory = result.fits_memory() &&
                        answer->peak_memory_bytes <= MostMemoryBytes(given);
  return absl::OkStatus();
}

}  // namespace

double MostMemoryBytes(const scenarios::ResolvedScenario& given) {
  double bytes = given.device.memory_bytes().value();
  for (const DeviceProfile& device : given.other_devices) {
    bytes = std::max(bytes, device.memory_bytes().value());
  }
  return bytes;
}

absl::StatusOr<scenarios::ResolvedScenario> GivenForPlanners(
    absl::string_view label, const Scenario& scenario, int num_gpus,
    double memory_limit_bytes) {
  Scenario given = scenario;
  Parallelism& parallelism = *given.mutable_parallelism();
  for (const char* field : {"num_gpus", "pipeline", "chunks", "order", "gpus",
                            "blocks_per_stage", "layout"}) {
    parallelism.GetReflection()->ClearField(
        &parallelism, parallelism.GetDescriptor()->FindFieldByName(field));
  }
  parallelism.set_data(1);
  given.set_schedule("1f1b");
  ASSIGN_OR_RETURN(scenarios::ResolvedScenario resolved,
                   scenarios::ResolveScenario(label, given));
  if (resolved.given_costs) {
    return absl::InvalidArgumentError(
        absl::StrCat(label,
                     ": costs are given per stage, expected a model "
                     "and a cluster"));
  }
  const int available = scenarios::NumGpus(resolved.cluster);
  const int tensor = resolved.placement.tensor;
  if (num_gpus > available || num_gpus % tensor != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ": gpus is ", num_gpus, ", expected at most the cluster's ",
        available, ", a multiple of tensor, which is ", tensor));
  }
  if (num_gpus > 0 && num_gpus < available) {
    for (int gpu = 0; gpu < num_gpus; ++gpu) {
      resolved.scenario.mutable_parallelism()->add_gpus(gpu);
    }
  }
  if (memory_limit_bytes > 0) {
    LimitMemory(memory_limit_bytes, &resolved.device);
    for (DeviceProfile& device : resolved.other_devices) {
      LimitMemory(memory_limit_bytes, &device);
    }
  }
  return resolved;
}

namespace {

// Runs one planner. Computes `facts` for the first one that is not too large.
PlannerResult RunPlanner(const PaperPlanner& planner,
                         const scenarios::ResolvedScenario& given,
                         std::optional<SharedFacts>* facts) {
  PlannerResult answer;
  answer.algorithm = std::string(planner.name);
  answer.planned = CheckPlannerSize(planner.name, given);
  answer.simulated = answer.planned;
  if (!answer.planned.ok()) return answer;
  if (!facts->has_value()) facts->emplace(given);
  absl::StatusOr<PlannedPipeline> plan = planner.plan(given, &**facts);
  answer.planned = plan.status();
  answer.simulated = plan.status();
  if (!plan.ok()) return answer;
  answer.plan = *std::move(plan);
  answer.simulated = SimulatePlan(given, &answer);
  return answer;
}

}  // namespace

absl::StatusOr<std::vector<PlannerResult>> RunPlanners(
    const std::vector<const PaperPlanner*>& planners,
    const scenarios::ResolvedScenario& given,
    const RunPlannerOptions& options) {
  std::optional<SharedFacts> facts;  // one per process
  std::vector<std::optional<PlannerResult>> answers(planners.size());
  int num_done = 0;
  Jobs jobs;
  jobs.num_jobs = static_cast<int>(planners.size());
  jobs.num_processes = options.num_processes;
  jobs.run = [&](int job) -> absl::StatusOr<std::string> {
    return SerializeResult(RunPlanner(*planners[job], given, &facts));
  };
  jobs.done = [&](int job, const absl::StatusOr<std::string>& output) {
    ++num_done;
    if (absl::IsCancelled(output.status())) return;
    absl::StatusOr<PlannerResult> answer =
        output.ok() ? ParseResult(*output) : output.status();
    if (!answer.ok()) {
      PlannerResult failed;
      failed.algorithm = std::string(planners[job]->name);
      failed.planned = failed.simulated = answer.status();
      answer = std::move(failed);
    }
    answers[job] = *std::move(answer);
  };
  jobs.stop = [&] {
    if (options.progress) options.progress(num_done);
    return Interrupted();
  };
  RETURN_IF_ERROR(RunJobs(jobs));
  std::vector<PlannerResult> ended;
  for (std::optional<PlannerResult>& answer : answers) {
    if (answer.has_value()) ended.push_back(*std::move(answer));
  }
  return ended;
}

double EnoughMemoryBytes(const PaperPlanner& planner,
                         const scenarios::ResolvedScenario& given) {
  const double most = MostMemoryBytes(given);
  SharedFacts facts(given);
  const auto has_plan = [&](double times) {
    scenarios::ResolvedScenario larger = given;
    ScaleMemory(times, &larger.device);
    for (DeviceProfile& other : larger.other_devices) {
      ScaleMemory(times, &other);
    }
    return planner.plan(larger, &facts).ok();
  };
  double below = 1, enough = 2;
  while (enough <= 1024 && !has_plan(enough)) {
    below = enough;
    enough *= 2;
  }
  if (enough > 1024) return 0;
  while (enough > below * 1.01) {
    const double middle = (below + enough) / 2;
    (has_plan(middle) ? enough : below) = middle;
  }
  return most * enough;
}

std::vector<const PaperPlanner*> AllPaperPlanners() {
  std::vector<const PaperPlanner*> planners;
  for (const PaperPlanner& planner : PaperPlanners()) {
    planners.push_back(&planner);
  }
  return planners;
}

std::vector<Plan> PlansOf(const std::vector<PlannerResult>& answers) {
  std::vector<Plan> plans;
  for (const PlannerResult& answer : answers) {
    if (!answer.simulated.ok() || !answer.trains) continue;
    Plan& plan = plans.emplace_back();
    *plan.mutable_scenario() = answer.scenario;
    plan.set_source(answer.algorithm);
    plan.set_batch_seconds(answer.batch_seconds);
    plan.set_samples_per_second(answer.samples_per_second);
    plan.set_peak_memory_bytes(answer.peak_memory_bytes);
    const Parallelism& parallelism = answer.scenario.parallelism();
    plan.set_num_gpus(std::max(parallelism.tensor(), 1u) *
                      std::max(parallelism.context(), 1u) * parallelism.data() *
                      parallelism.pipeline());
  }
  return plans;
}

}  // namespace weir::plan
