// SPDX-License-Identifier: Apache-2.0
#include "cli/options/imports.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/text_table.h"
#include "cli/options/messages.h"
#include "plan/frameworks/imported_run.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/scenario.h"

namespace weir::cli {
namespace {

using Reader = absl::StatusOr<plan::ImportedRun> (*)(
    const std::string&, absl::string_view, const plan::ImportContext&);

struct Source {
  const char* option;
  const std::string* file;
  Reader read;
};

std::vector<Source> SourcesOf(const ImportFlags& flags) {
  std::vector<Source> sources;
  for (const Source& source :
       {Source{"--megatron-args", &flags.megatron_args,
               plan::ReadMegatronArguments},
        Source{"--sbatch", &flags.sbatch, plan::ReadSlurmScript},
        Source{"--nemo", &flags.nemo, plan::ReadNemoSettings},
        Source{"--torchtitan", &flags.torchtitan, plan::ReadTorchtitanJob}}) {
    if (!source.file->empty()) sources.push_back(source);
  }
  return sources;
}

// Returns 0 if no cluster is named.
absl::StatusOr<uint32_t> NumGpus(const Scenario& scenario) {
  if (scenario.cluster().empty()) return 0;
  ASSIGN_OR_RETURN(
      const Cluster loaded,
      scenarios::LoadCluster(scenario.cluster(),
                             static_cast<int>(scenario.num_nodes()),
                             scenario.cluster_changes()));
  return static_cast<uint32_t>(scenarios::NumGpus(loaded));
}

plan::ImportContext ContextOf(const ScenarioFlags& flags, uint32_t num_gpus) {
  plan::ImportContext context;
  context.num_gpus = num_gpus;
  context.overrides = flags.overrides;
  for (absl::string_view key : flags.imports.left_out) {
    absl::ConsumePrefix(&key, "--");
    context.left_out.insert(std::string(key));
  }
  return context;
}

void Take(plan::ImportedRun run, ScenarioRequest* request) {
  request->scenario = std::move(run.scenario);
  const std::string unknown = plan::UnknownSettingsOf(run.report);
  if (!unknown.empty()) request->notes.push_back(unknown);
  request->imports.push_back(std::move(run.report));
  if (run.num_gpus > 0) request->num_gpus = run.num_gpus;
}

absl::string_view PathOf(absl::string_view figure) {
  return figure.substr(0, figure.find('='));
}

}  // namespace

bool HasImports(const ImportFlags& flags) {
  return !flags.deepspeed.empty() || !SourcesOf(flags).empty();
}

absl::StatusOr<ScenarioRequest> ReadImports(const ScenarioFlags& flags) {
  const std::vector<Source> sources = SourcesOf(flags.imports);
  ScenarioRequest request{"command line", {}};
  if (sources.size() > 1 || (!sources.empty() && !flags.scenario.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "command line: ", sources[0].option, " and ",
        sources.size() > 1 ? sources[1].option
                           : absl::StrCat("the scenario ", flags.scenario),
        " cannot be combined"));
  }
  ASSIGN_OR_RETURN(const uint32_t num_gpus, NumGpus(flags.overrides));
  const plan::ImportContext context = ContextOf(flags, num_gpus);
  for (const Source& source : sources) {
    request.label = *source.file;
    ASSIGN_OR_RETURN(const std::string text, ReadFile(*source.file));
    ASSIGN_OR_RETURN(plan::ImportedRun run,
                     source.read(*source.file, text, context));
    Take(std::move(run), &request);
  }
  if (!flags.scenario.empty()) {
    ASSIGN_OR_RETURN(request.scenario, scenarios::LoadScenario(flags.scenario));
    request.label = flags.scenario;
  }
  const std::string& file = flags.imports.deepspeed;
  if (file.empty()) return request;
  if (request.label == "command line") request.label = file;
  // Its batch depends on the replicas, and so on the layout of the flags.
  Scenario base = request.scenario;
  RETURN_IF_ERROR(Override(flags, &base));
  ASSIGN_OR_RETURN(const uint32_t all, NumGpus(base));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  ASSIGN_OR_RETURN(
      plan::ImportedRun run,
      plan::ReadDeepSpeedConfig(file, text, ContextOf(flags, all), base));
  Take(std::move(run), &request);
  return request;
}

absl::Status CheckImportedGpus(const ScenarioRequest& request,
                               const Scenario& scenario) {
  if (request.num_gpus == 0 ||
      scenario.num_nodes() != request.scenario.num_nodes() ||
      scenario.parallelism().num_gpus() > 0) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const uint32_t num_gpus, NumGpus(scenario));
  if (num_gpus == 0 || num_gpus == request.num_gpus) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      request.label, ": runs on ", request.num_gpus,
      " GPUs, expected those of the cluster, ", num_gpus, ", or --nodes"));
}

void ReplaceImportedFigures(const Scenario& overrides,
                            ScenarioRequest* request) {
  auto* figures = request->scenario.mutable_set_figures();
  for (plan::ImportReport& report : request->imports) {
    std::vector<plan::ImportedFigure> kept;
    for (plan::ImportedFigure& imported : report.figures) {
      const auto given = std::find_if(
          overrides.set_figures().begin(), overrides.set_figures().end(),
          [&](const std::string& figure) {
            return PathOf(figure) == PathOf(imported.setting);
          });
      if (given == overrides.set_figures().end()) {
        kept.push_back(std::move(imported));
        continue;
      }
      // If both are equal, removes the one of the file, which comes first.
      figures->erase(
          std::find(figures->begin(), figures->end(), imported.setting));
      if (*given == imported.setting) {
        kept.push_back(std::move(imported));
        continue;
      }
      request->notes.push_back(absl::StrCat("--set ", *given, " replaces ",
                                            imported.source, " of ",
                                            report.file));
    }
    report.figures = std::move(kept);
  }
}

void DropImportedWarnings(const std::vector<plan::ImportReport>& imports,
                          std::vector<std::string>* warnings) {
  for (const plan::ImportReport& report : imports) {
    for (const plan::ImportedFigure& figure : report.figures) {
      const std::string beginning =
          absl::StrCat("--set ", figure.setting, " replaces ");
      warnings->erase(std::remove_if(warnings->begin(), warnings->end(),
                                     [&](const std::string& warning) {
                                       return absl::StartsWith(warning,
                                                               beginning);
                                     }),
                      warnings->end());
    }
  }
}

void PrintImports(const ScenarioRequest& request, const OutputFlags& output) {
  for (const plan::ImportReport& report : request.imports) {
    const std::string summary = plan::SummaryOf(report);
    if (output.json_messages) {
      PrintNote(summary, output);
      continue;
    }
    std::string label = "note: ";
    for (absl::string_view line :
         absl::StrSplit(summary, '\n', absl::SkipEmpty())) {
      const std::string text =
          WrapText(absl::StrCat(label, line, "\n"), label.empty() ? 4 : 2);
      for (absl::string_view part :
           absl::StrSplit(text, '\n', absl::SkipEmpty())) {
        PrintNote(part, output);
      }
      label.clear();
    }
  }
}

}  // namespace weir::cli
