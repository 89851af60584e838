// SPDX-License-Identifier: Apache-2.0
// "weir jobs": several jobs on one cluster.
#include "sim/jobs.h"

#include <algorithm>
#include <cstdint>
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
#include "results/summary.h"
#include "results/views/cells.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/scenario.h"

namespace weir::cli {
namespace {

using scenarios::ResolvedScenario;

// A job and its GPUs, in the order of those in a cluster of its own.
struct LoadedJob {
  Scenario scenario;
  ResolvedScenario alone;
  int64_t gpus_per_node = 1;
  std::vector<int64_t> gpus;

  int64_t last_gpu() const {
    return *std::max_element(gpus.begin(), gpus.end());
  }
  int64_t num_nodes() const { return last_gpu() / gpus_per_node + 1; }
};

// Adds the same number to all GPUs, so that `first` is the smallest.
void MoveTo(int64_t first, LoadedJob* job) {
  const int64_t smallest =
      *std::min_element(job->gpus.begin(), job->gpus.end());
  for (int64_t& gpu : job->gpus) gpu += first - smallest;
}

// Returns "job 2 (b.textproto)".
std::string NameOfJob(const JobsFlags& flags, size_t job) {
  return absl::StrCat("job ", job + 1, " (", flags.scenarios[job], ")");
}

absl::StatusOr<std::vector<LoadedJob>> LoadJobs(const JobsFlags& flags) {
  std::vector<LoadedJob> jobs;
  int64_t next = 0;  // larger than all GPUs of earlier jobs
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
    job.gpus.assign(job.alone.placement.gpus.begin(),
                    job.alone.placement.gpus.end());
    const int64_t each = job.alone.cluster.groups(0).node().num_gpus();
    job.gpus_per_node = each;
    if (!flags.first_gpus.empty()) {
      MoveTo(flags.first_gpus[i], &job);
    } else if (job.scenario.parallelism().gpus().empty()) {
      MoveTo((next + each - 1) / each * each, &job);
    }
    if (job.last_gpu() >= scenarios::kMaxGpus) {
      return absl::InvalidArgumentError(absl::StrCat(
          flags.first_gpus.empty() ? "command line: "
                                   : "command line: --first-gpus: ",
          NameOfJob(flags, i), " uses GPU ", job.last_gpu(),
          ", expected numbers up to ", scenarios::kMaxGpus - 1));
    }
    next = std::max(next, job.last_gpu() + 1);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// Returns the number of nodes: the given one, or as many as the jobs need.
absl::StatusOr<int64_t> NumNodesFor(const JobsFlags& flags,
                                    const std::vector<LoadedJob>& jobs) {
  size_t largest = 0;
  for (size_t i = 1; i < jobs.size(); ++i) {
    if (jobs[i].num_nodes() > jobs[largest].num_nodes()) largest = i;
  }
  const LoadedJob& job = jobs[largest];
  if (flags.num_nodes == 0) return job.num_nodes();
  if (flags.num_nodes >= job.num_nodes()) return flags.num_nodes;
  return absl::InvalidArgumentError(absl::StrCat(
      "command line: --nodes: ", flags.num_nodes, ", expected at least ",
      job.num_nodes(), ", since ", NameOfJob(flags, largest), " uses GPU ",
      job.last_gpu(), " and nodes have ", job.gpus_per_node, " GPUs"));
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
  ASSIGN_OR_RETURN(const int64_t num_nodes, NumNodesFor(flags, jobs));
  std::vector<ResolvedScenario> placed;
  for (size_t i = 0; i < jobs.size(); ++i) {
    Scenario scenario = jobs[i].scenario;
    scenario.set_num_nodes(static_cast<uint32_t>(num_nodes));
    Parallelism& parallelism = *scenario.mutable_parallelism();
    parallelism.set_data(jobs[i].alone.scenario.parallelism().data());
    parallelism.clear_num_gpus();
    // These GPUs are already in the scenario's order.
    parallelism.clear_order();
    parallelism.clear_gpus();
    for (const int64_t gpu : jobs[i].gpus) {
      parallelism.add_gpus(static_cast<uint32_t>(gpu));
    }
    ASSIGN_OR_RETURN(ResolvedScenario job,
                     scenarios::ResolveScenario(flags.scenarios[i], scenario));
    placed.push_back(std::move(job));
  }
  return placed;
}

// Returns the numbers of jobs, from 1, of their indices.
std::vector<int> NumbersOf(std::vector<int> jobs) {
  for (int& job : jobs) ++job;
  return jobs;
}

// Returns a line for each job with a GPU that runs out of memory.
std::string MemoryLines(const JobsFlags& flags,
                        const std::vector<sim::JobOutcome>& outcomes) {
  std::string lines;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Result& result = outcomes[i].result;
    if (results::FitsMemory(result)) continue;
    absl::StrAppend(&lines, NameOfJob(flags, i), ": peak memory ",
                    results::MemoryCell(result), "\n");
  }
  return lines;
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
         absl::StrCat(outcome.num_steps),
         absl::StrJoin(NumbersOf(outcome.shares_with), ", ")});
  }
  return absl::StrCat(PrintTable(table), MemoryLines(flags, outcomes));
}

// Returns the warnings of all jobs, which name the job.
std::vector<std::string> WarningsOf(
    const Flags& flags, const std::vector<sim::JobOutcome>& outcomes) {
  std::vector<std::string> warnings;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    for (const std::string& warning : outcomes[i].result.warnings()) {
      warnings.push_back(absl::StrCat("job ", i + 1, " (",
                                      flags.jobs.scenarios[i], "): ", warning));
    }
  }
  return warnings;
}

std::string JobsJson(const Flags& flags,
                     const std::vector<ResolvedScenario>& jobs,
                     const std::vector<sim::JobOutcome>& outcomes) {
  auto rows = nlohmann::ordered_json::array();
  for (size_t i = 0; i < jobs.size(); ++i) {
    const sim::JobOutcome& outcome = outcomes[i];
    const Result& result = outcome.result;
    rows.push_back({{"job", i + 1},
                    {"scenario", flags.jobs.scenarios[i]},
                    {"gpus", jobs[i].placement.gpus},
                    {"alone_seconds", outcome.alone_seconds},
                    {"step_seconds", outcome.step_seconds},
                    {"slowdown", outcome.slowdown()},
                    {"num_steps", outcome.num_steps},
                    {"shares_with", NumbersOf(outcome.shares_with)},
                    {"peak_memory_bytes", result.peak_memory_bytes()},
                    {"fits_memory", results::FitsMemory(result)}});
  }
  return Envelope(flags.command,
                  DumpJson(nlohmann::ordered_json{
                      {"scenarios", flags.jobs.scenarios},
                      {"num_nodes", scenarios::NumNodes(jobs[0].cluster)}}),
                  DumpJson(nlohmann::ordered_json{{"jobs", std::move(rows)}}),
                  WarningsOf(flags, outcomes));
}

// Returns true if all jobs fit in memory.
absl::StatusOr<bool> SimulateAll(const Flags& flags) {
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
  for (const std::string& warning : WarningsOf(flags, outcomes)) {
    PrintWarning(warning, flags.output);
  }
  RETURN_IF_ERROR(WriteOutputs(flags.output, all, nullptr));
  return std::all_of(all.results().begin(), all.results().end(),
                     results::FitsMemory);
}

}  // namespace

int RunJobs(const Flags& flags) {
  const absl::StatusOr<bool> fits = SimulateAll(flags);
  if (!fits.ok()) return PrintError(fits.status(), flags.output);
  return *fits ? kExitOk : kExitNegative;
}

}  // namespace weir::cli
