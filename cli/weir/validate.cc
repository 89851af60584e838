// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "base/worker_pool.h"
#include "cli/options/messages.h"
#include "cli/options/overrides.h"
#include "cli/options/scenario_options.h"
#include "cli/weir/commands.h"
#include "cli/weir/envelope.h"
#include "models/model.pb.h"
#include "results/compare/accuracy.h"
#include "results/compare/measured_run.h"
#include "results/compare/measured_table.h"
#include "scenarios/describe_scenario.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

struct ValidationWork {
  results::MeasuredRun run;
  absl::StatusOr<scenarios::ResolvedScenario> scenario;
  absl::StatusOr<Result> result = absl::CancelledError("not reached");
};

// Returns what the columns of a table set: the options of "simulate" without
// their dashes, and the fields of weir.Transformer.
std::vector<results::RunSetting> SettingsOfColumns(ScenarioFlags* flags) {
  std::vector<results::RunSetting> settings = ScenarioSettings(flags);
  for (results::RunSetting& setting : results::SettingsOfFields(
           *Transformer::descriptor(),
           [flags] { return flags->overrides.mutable_transformer(); })) {
    settings.push_back(std::move(setting));
  }
  return settings;
}

absl::StatusOr<MeasuredColumns> LoadColumns(const MeasuredFlags& flags) {
  MeasuredColumns columns;
  if (!flags.columns.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.columns));
    RETURN_IF_ERROR(ParseTextProto(flags.columns, text, &columns));
  }
  if (flags.where.empty()) return columns;
  const auto conditions = results::ParseConditions(flags.where);
  if (!conditions.ok()) {
    Problems problems("command line");
    problems.Add("--where", conditions.status().message());
    return problems.ToStatus();
  }
  for (const auto& condition : *conditions) *columns.add_where() = condition;
  return columns;
}

absl::StatusOr<results::MeasuredTable> LoadTable(const MeasuredFlags& flags) {
  ASSIGN_OR_RETURN(const MeasuredColumns columns, LoadColumns(flags));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.file));
  ASSIGN_OR_RETURN(results::MeasuredTable table,
                   results::ReadMeasuredTable(flags.file, text, columns));
  ScenarioFlags ignored;
  RETURN_IF_ERROR(results::CheckColumns(table, SettingsOfColumns(&ignored)));
  return table;
}

results::FlopsBasis BasisOf(const results::MeasuredRun& run,
                            const scenarios::ResolvedScenario& scenario) {
  const Transformer& transformer = scenario.model.transformer();
  return {run.formula, 1.0 * transformer.num_layers(),
          1.0 * transformer.hidden_size(), 1.0 * transformer.vocabulary_size()};
}

ValidationWork ReadWork(const ScenarioFlags& base,
                        const results::MeasuredTable& table,
                        const results::MeasuredRow& row) {
  ScenarioFlags flags = base;
  ValidationWork work;
  const absl::Status read =
      results::ReadRun(table, row, SettingsOfColumns(&flags), &work.run);
  if (!work.run.scenario.empty()) flags.scenario = work.run.scenario;
  if (work.run.name.empty()) {
    work.run.name = scenarios::DescribeSizes(flags.overrides);
  }
  work.scenario = read.ok() ? ResolveFlags(flags) : read;
  return work;
}

absl::Status SimulateAll(const Flags& flags,
                         std::vector<ValidationWork>* works) {
  std::vector<ValidationWork*> valid;
  for (ValidationWork& work : *works) {
    if (work.scenario.ok()) valid.push_back(&work);
  }
  ProgressLine progress(flags.output);
  int num_done = 0;
  const auto show = [&] {
    progress.Show(absl::StrCat("[", num_done, "/", valid.size(), "] runs"),
                  1.0 * num_done / std::max<size_t>(valid.size(), 1));
  };
  Jobs jobs;
  jobs.num_jobs = static_cast<int>(valid.size());
  jobs.num_processes = flags.num_jobs > 0 ? static_cast<int>(flags.num_jobs)
                                          : DefaultProcesses();
  jobs.run = [&](int job) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Result result, sim::Simulate(*valid[job]->scenario));
    return result.SerializeAsString();
  };
  jobs.done = [&](int job, absl::StatusOr<std::string> output) {
    ValidationWork& work = *valid[job];
    ++num_done;
    show();
    if (!output.ok()) {
      work.result = output.status();
    } else if (Result result; result.ParseFromString(*output)) {
      work.result = std::move(result);
    } else {
      work.result = absl::InternalError("a result cannot be read");
    }
  };
  jobs.stop = [&] {
    show();
    return Interrupted();
  };
  NoteInterrupt();
  const absl::Status status = RunJobs(jobs);
  ExitOnInterrupt();
  return status;
}

absl::StatusOr<results::Accuracy> Validate(const Flags& flags) {
  ASSIGN_OR_RETURN(const results::MeasuredTable table,
                   LoadTable(flags.measured));
  std::vector<ValidationWork> works;
  for (const results::MeasuredRow& row : table.rows) {
    works.push_back(ReadWork(flags.scenario, table, row));
  }
  RETURN_IF_ERROR(SimulateAll(flags, &works));
  results::Accuracy accuracy;
  accuracy.label = table.label;
  accuracy.num_runs = static_cast<int>(works.size());
  accuracy.num_left_out = table.num_left_out;
  for (const ValidationWork& work : works) {
    if (work.scenario.ok()) {
      results::CompareRun(work.run, work.result,
                          BasisOf(work.run, *work.scenario), &accuracy);
    } else {
      results::CompareRun(work.run, work.scenario.status(), {}, &accuracy);
    }
  }
  return accuracy;
}

std::string View(const Flags& flags, const results::Accuracy& accuracy) {
  switch (flags.output.format) {
    case OutputFlags::Format::kJson:
      return Envelope(flags.command, "{}", results::AccuracyJson(accuracy));
    case OutputFlags::Format::kCsv:
      return results::AccuracyCsv(accuracy);
    case OutputFlags::Format::kTable:
      break;
  }
  return results::AccuracyTable(accuracy, flags.measured.all);
}

absl::Status CheckAccuracyFlags(const Flags& flags) {
  Problems problems("command line");
  const bool replay = !flags.measured.replay.empty();
  if (replay != flags.measured.file.empty()) {
    problems.Add("", absl::StrCat("expected --measured or --replay",
                                  replay ? ", not both" : ""));
  }
  const auto refuse = [&](bool given, const char* flag) {
    if (given && !replay) problems.Add(flag, "requires --replay");
  };
  refuse(!flags.measured.against.empty(), "--against");
  refuse(!flags.result.empty(), "--result");
  refuse(!flags.output.trace.empty(), "--trace");
  refuse(flags.measured.memory_tolerance > 0, "--memory-tolerance");
  return problems.ToStatus();
}

}  // namespace

int RunValidate(const Flags& flags) {
  const absl::Status checked = CheckAccuracyFlags(flags);
  if (!checked.ok()) return PrintError(checked, flags.output);
  if (!flags.measured.replay.empty()) return RunValidateReplay(flags);
  const absl::StatusOr<results::Accuracy> accuracy = Validate(flags);
  if (!accuracy.ok()) return PrintError(accuracy.status(), flags.output);
  const absl::Status printed = PrintResult(View(flags, *accuracy));
  if (!printed.ok()) return PrintError(printed, flags.output);
  if (Interrupted()) return InterruptExitCode();
  if (accuracy->numbers.empty() && accuracy->out_of_memory.empty()) {
    return PrintError(absl::InvalidArgumentError(absl::StrCat(
                          flags.measured.file, ": no run could be compared")),
                      flags.output);
  }
  const double tolerance = flags.measured.tolerance;
  const double error = results::LargestMeanError(*accuracy);
  if (tolerance == 0 || error <= tolerance) return kExitOk;
  PrintWarning(absl::StrFormat("mean absolute error %.1f %% is above the "
                               "tolerance of %.1f %%",
                               100 * error, 100 * tolerance),
               flags.output);
  return kExitNegative;
}

}  // namespace weir::cli
