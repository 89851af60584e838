// SPDX-License-Identifier: Apache-2.0
// plan_table OUT CASE...: writes the plans of each paper's planner and of the
// joint search for every case (a scenario file), all simulated, as OUT.csv and
// OUT.md. The joint search starts from the papers' plans. Exits with 1 if it is
// worse than one of them that fits.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/exit_code.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/worker_pool.h"
#include "plan/papers/planner_seeds.h"
#include "plan/papers/run_planner.h"
#include "plan/search/joint_search.h"

namespace weir {
namespace {

struct Tables {
  std::string csv =
      "case,planner,schedule,gpus,tensor,pipeline,data,chunks,microbatch_size,"
      "blocks_per_stage,planner_seconds,batch_seconds,samples_per_second,"
      "peak_memory_bytes,fits_memory,lint_errors,note\n";
  std::string markdown;
  bool joint_is_worse = false;
};

std::string Blocks(const Scenario& scenario) {
  const auto& blocks = scenario.parallelism().blocks_per_stage();
  return blocks.empty() ? "even" : absl::StrJoin(blocks, "-");
}

// Replaces separators of a format, ",\"\n" or "|\n", by semicolons.
std::string Cell(absl::string_view text, absl::string_view separators) {
  std::string cell(text);
  for (char& c : cell) {
    if (separators.find(c) != separators.npos) c = ';';
  }
  return cell;
}

std::string CsvCell(absl::string_view text) { return Cell(text, ",\"\n"); }

void AddPlan(const std::string& name, const plan::PlannerResult& answer,
             Tables* tables) {
  const Scenario& scenario = answer.scenario;
  const Parallelism& parallelism = scenario.parallelism();
  const std::string schedule = scenario.schedule();
  const uint32_t tensor = std::max(parallelism.tensor(), 1u);
  absl::StrAppend(
      &tables->csv,
      absl::StrJoin(
          {name, answer.algorithm, CsvCell(schedule),
           absl::StrCat(tensor * parallelism.pipeline() * parallelism.data()),
           absl::StrCat(tensor), absl::StrCat(parallelism.pipeline()),
           absl::StrCat(parallelism.data()),
           absl::StrCat(std::max(parallelism.chunks(), 1u)),
           absl::StrCat(scenario.batch().microbatch_size()), Blocks(scenario),
           answer.plan.objective_seconds > 0
               ? ShortestNumber(answer.plan.objective_seconds)
               : "",
           ShortestNumber(answer.batch_seconds),
           ShortestNumber(answer.samples_per_second),
           ShortestNumber(answer.peak_memory_bytes),
           std::string(answer.fits_memory ? "yes" : "no"),
           absl::StrCat(answer.num_lint_errors), std::string()},
          ","),
      "\n");
  absl::StrAppendFormat(
      &tables->markdown,
      "| %s | %s | %d / %d / %d / %d / %d | %s | %.4g | %.4g | %s |\n",
      answer.algorithm, schedule, tensor, parallelism.pipeline(),
      parallelism.data(), std::max(parallelism.chunks(), 1u),
      scenario.batch().microbatch_size(), Blocks(scenario),
      answer.samples_per_second, answer.peak_memory_bytes / 1e9,
      !answer.trains ? "inference" : (answer.fits_memory ? "yes" : "no"));
}

void AddRefusal(const std::string& name, const plan::PlannerResult& answer,
                Tables* tables) {
  const absl::string_view why = answer.simulated.message();
  absl::StrAppend(&tables->csv, name, ",", answer.algorithm, ",,,,,,,,,,,,,,,",
                  CsvCell(why), "\n");
  absl::StrAppend(&tables->markdown, "| ", answer.algorithm, " | ",
                  answer.planned.ok() ? "not simulated: " : "no plan: ",
                  Cell(why, "|\n"), " | | | | | |\n");
}

absl::StatusOr<plan::PlannerResult> Joint(
    const std::string& path, const Scenario& scenario,
    const std::vector<plan::PlannerResult>& answers) {
  PlanRequest request;
  *request.mutable_scenario() = scenario;
  request.set_num_plans(1);
  request.set_memory_margin(0);  // like the papers' planners
  // Common schedules of training frameworks, to take minutes, not hours.
  for (const char* schedule :
       {"gpipe", "1f1b", "dapple-pb", "interleaved-1f1b", "zb-h1", "zb-v"}) {
    request.mutable_space()->add_schedules(schedule);
  }
  // Like the papers' planners, which keep the scenario's tensor parallelism.
  request.mutable_space()->add_tensor(
      std::max(scenario.parallelism().tensor(), 1u));
  for (const uint32_t chunks : {1, 2, 3}) {
    request.mutable_space()->add_chunks(chunks);
  }
  for (const uint32_t size : {1, 2, 4, 8, 16, 32}) {
    request.mutable_space()->add_microbatch_size(size);
  }
  plan::SearchOptions options;
  options.num_processes = DefaultProcesses();
  options.seeds = plan::PlansOf(answers);
  for (Plan& plan : plan::SeedsFor(path, request, options)) {
    options.seeds.push_back(std::move(plan));
  }
  ASSIGN_OR_RETURN(const PlanReport report,
                   plan::SearchPlans(path, request, options));
  if (report.plans().empty()) {
    return absl::NotFoundError(
        absl::StrCat(path, ": the search found no plan"));
  }
  const Plan& plan = report.plans(0);
  plan::PlannerResult joint;
  joint.algorithm = plan.source() == "joint"
                        ? "joint"
                        : absl::StrCat("joint (", plan.source(), ")");
  joint.scenario = plan.scenario();
  joint.batch_seconds = plan.batch_seconds();
  joint.samples_per_second = plan.samples_per_second();
  joint.peak_memory_bytes = plan.peak_memory_bytes();
  joint.fits_memory = true;
  return joint;
}

absl::Status AddCase(const std::string& path, Tables* tables) {
  const std::string name = std::filesystem::path(path).stem();
  ASSIGN_OR_RETURN(const Scenario scenario, scenarios::LoadScenario(path));
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario given,
                   plan::GivenForPlanners(path, scenario));
  ASSIGN_OR_RETURN(const std::vector<plan::PlannerResult> answers,
                   plan::RunPlanners(plan::AllPaperPlanners(), given));
  ASSIGN_OR_RETURN(const plan::PlannerResult joint,
                   Joint(path, scenario, answers));
  absl::StrAppend(
      &tables->markdown, "\n## ", name, "\n\n",
      "| planner | schedule | t / p / d / v / microbatch | blocks | samples/s "
      "| peak GB | fits |\n|---|---|---|---|---:|---:|---|\n");
  for (const plan::PlannerResult& answer : answers) {
    if (!answer.simulated.ok()) {
      AddRefusal(name, answer, tables);
      continue;
    }
    AddPlan(name, answer, tables);
    if (answer.trains && answer.fits_memory && answer.num_lint_errors == 0 &&
        joint.batch_seconds > answer.batch_seconds * (1 + 1e-9)) {
      tables->joint_is_worse = true;
      std::cerr << name << ": the joint search is worse than "
                << answer.algorithm << "\n";
    }
  }
  AddPlan(name, joint, tables);
  return absl::OkStatus();
}

int Run(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: plan_table OUT CASE...\n";
    return kExitUsage;
  }
  Tables tables;
  for (int i = 2; i < argc; ++i) {
    const absl::Status status = AddCase(argv[i], &tables);
    if (status.ok()) continue;
    std::cerr << "error: " << status.message() << "\n";
    return ExitCodeOf(status);
  }
  const std::string out = argv[1];
  for (const absl::Status& status :
       {WriteFile(out + ".csv", tables.csv),
        WriteFile(out + ".md",
                  absl::StrCat("<!-- Written by tools/plan_table. -->\n"
                               "# Plans of the same work, all simulated\n",
                               tables.markdown))}) {
    if (status.ok()) continue;
    std::cerr << "error: " << status.message() << "\n";
    return ExitCodeOf(status);
  }
  return tables.joint_is_worse ? kExitNegative : kExitOk;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) { return weir::Run(argc, argv); }
