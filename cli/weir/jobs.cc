// SPDX-License-Identifier: Apache-2.0
// "weir jobs": several jobs on one cluster.
#include "sim/jobs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/text_table.h"
#include "base/units.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/envelope.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/scenario.h"

namespace weir::cli {
namespace {

using scenarios::ResolvedScenario;

// A job with its own cluster, from which its size follows.
struct LoadedJob {
  Scenario scenario;
  ResolvedScenario alone;
  int gpus_per_node = 1;
  uint32_t first_gpu = 0;
  uint32_t num_gpus = 0;  // from the first to the last
};

absl::StatusOr<std::vector<LoadedJob>> LoadJobs(const JobsFlags& flags) {
  std::vector<LoadedJob> jobs;
  uint32_t next = 0;
  for (size_t i = 0; i < flags.scenarios.size(); ++i) {
    LoadedJob job;
    ASSIGN_OR_RETURN(job.scenario, scenarios::LoadScenario(flags.scenarios[i]));
    ASSIGN_OR_RETURN(job.alone, scenarios::ResolveScenario(flags.scenarios[i],
                                                           job.scenario));
    if (job.alone.given_costs) {
      return absl::InvalidArgumentError(
          absl::StrCat(flags.scenarios[i],
                       ": has given costs, whose transfers use no "
                       "links, expected a model and a cluster"));
    }
    const std::vector<int>& gpus = job.alone.placement.gpus;
    job.num_gpus =
        static_cast<uint32_t>(*std::max_element(gpus.begin(), gpus.end()) + 1);
    job.gpus_per_node =
        static_cast<int>(job.alone.cluster.groups(0).node().num_gpus());
    const auto each = static_cast<uint32_t>(job.gpus_per_node);
    if (!flags.first_gpus.empty()) {
      job.first_gpu = flags.first_gpus[i];
    } else if (job.scenario.parallelism().gpus().empty()) {
      job.first_gpu = (next + each - 1) / each * each;
    }
    next = std::max(next, job.first_gpu + job.num_gpus);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

absl::StatusOr<std::vector<ResolvedScenario>> PlaceJobs(
    const JobsFlags& flags) {
  if (!flags.first_gpus.empty() &&
      flags.first_gpus.size() != flags.scenarios.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("command line: --first-gpus has ", flags.first_gpus.size(),
                     " numbers, expected one for each of ",
                     flags.scenarios.size(), " jobs"));
  }
  ASSIGN_OR_RETURN(std::vector<LoadedJob> jobs, LoadJobs(flags));
  uint32_t num_nodes = flags.num_nodes;
  for (const LoadedJob& job : jobs) {
    if (flags.num_nodes > 0) break;
    const auto each = static_cast<uint32_t>(job.gpus_per_node);
    num_nodes =
        std::max(num_nodes, (job.first_gpu + job.num_gpus + each - 1) / each);
  }
  std::vector<ResolvedScenario> placed;
  for (size_t i = 0; i < jobs.size(); ++i) {
    Scenario scenario = jobs[i].scenario;
    scenario.set_num_nodes(num_nodes);
    Parallelism& parallelism = *scenario.mutable_parallelism();
    parallelism.set_data(jobs[i].alone.scenario.parallelism().data());
    parallelism.clear_num_gpus();
    parallelism.clear_gpus();
    for (const int gpu : jobs[i].alone.placement.gpus) {
      parallelism.add_gpus(static_cast<uint32_t>(gpu) + jobs[i].first_gpu);
    }
    ASSIGN_OR_RETURN(ResolvedScenario job,
                     scenarios::ResolveScenario(flags.scenarios[i], scenario));
    placed.push_back(std::move(job));
  }
  return placed;
}

std::string NamesOf(const std::vector<int>& jobs) {
  return absl::StrJoin(jobs, ", ", [](std::string* out, int job) {
    absl::StrAppend(out, job + 1);
  });
}

std::string JobsTable(const JobsFlags& flags,
                      const std::vector<ResolvedScenario>& jobs,
                      const std::vector<sim::JobOutcome>& outcomes) {
  TextTable table;
  table.header = {"job",  "scenario", "GPUs",  "first GPU",        "step alone",
                  "step", "slowdown", "steps", "shares links with"};
  table.left = {true, true};
  table.left.resize(table.header.size(), false);
  table.left.back() = true;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::vector<int>& gpus = jobs[i].placement.gpus;
    const sim::JobOutcome& outcome = outcomes[i];
    table.rows.push_back(
        {absl::StrCat(i + 1), flags.scenarios[i], absl::StrCat(gpus.size()),
         absl::StrCat(*std::min_element(gpus.begin(), gpus.end())),
         FormatSeconds(outcome.alone_seconds),
         FormatSeconds(outcome.step_seconds),
         absl::StrFormat("%.4f", outcome.slowdown()),
         absl::StrCat(outcome.num_steps), NamesOf(outcome.shares_with)});
  }
  return PrintTable(table);
}

std::string JobsJson(const Flags& flags,
                     const std::vector<ResolvedScenario>& jobs,
                     const std::vector<sim::JobOutcome>& outcomes) {
  auto rows = nlohmann::ordered_json::array();
  std::vector<std::string> warnings;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const sim::JobOutcome& outcome = outcomes[i];
    rows.push_back({{"scenario", flags.jobs.scenarios[i]},
                    {"gpus", jobs[i].placement.gpus},
                    {"alone_seconds", outcome.alone_seconds},
                    {"step_seconds", outcome.step_seconds},
                    {"slowdown", outcome.slowdown()},
                    {"num_steps", outcome.num_steps},
                    {"shares_with", outcome.shares_with}});
    for (const std::string& warning : outcome.result.warnings()) {
      warnings.push_back(absl::StrCat(flags.jobs.scenarios[i], ": ", warning));
    }
  }
  return Envelope(flags.command,
                  DumpJson(nlohmann::ordered_json{
                      {"scenarios", flags.jobs.scenarios},
                      {"num_nodes", scenarios::NumNodes(jobs[0].cluster)}}),
                  DumpJson(nlohmann::ordered_json{{"jobs", std::move(rows)}}),
                  warnings);
}

absl::Status SimulateAll(const Flags& flags) {
  RETURN_IF_ERROR(CheckOutputs(flags.output, /*folders=*/false));
  ASSIGN_OR_RETURN(const std::vector<ResolvedScenario> jobs,
                   PlaceJobs(flags.jobs));
  sim::SimulateOptions options;
  options.keep_timeline = !flags.output.out.empty();
  ProgressLine line(flags.output);
  if (line.enabled()) {
    options.progress = [&](double done) { line.Show("simulating", done); };
  }
  ASSIGN_OR_RETURN(const std::vector<sim::JobOutcome> outcomes,
                   sim::SimulateJobs(jobs, options));
  line.Clear();
  Results all;
  for (const sim::JobOutcome& outcome : outcomes) {
    *all.add_results() = outcome.result;
  }
  const bool is_json = flags.output.format == OutputFlags::Format::kJson;
  RETURN_IF_ERROR(PrintResult(is_json ? JobsJson(flags, jobs, outcomes)
                                      : JobsTable(flags.jobs, jobs, outcomes)));
  PrintWarnings(all, flags.output);
  return WriteOutputs(flags.output, all, nullptr);
}

}  // namespace

int RunJobs(const Flags& flags) {
  const absl::Status status = SimulateAll(flags);
  return status.ok() ? kExitOk : PrintError(status, flags.output);
}

}  // namespace weir::cli
