// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "base/worker_pool.h"
#include "cli/options/messages.h"
#include "cli/options/overrides.h"
#include "cli/weir/commands.h"
#include "cli/weir/envelope.h"
#include "cli/weir/measured_run.h"
#include "results/compare/accuracy.h"
#include "results/compare/measured_table.h"
#include "results/summary.h"
#include "results/views/cells.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

struct ValidationWork {
  MeasuredRun run;
  absl::StatusOr<scenarios::ResolvedScenario> scenario;
  absl::StatusOr<Result> result = absl::CancelledError("not reached");
};

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
  RETURN_IF_ERROR(CheckColumns(table));
  return table;
}

// Returns the run's name, or else the fields that its row sets: "layers 24,
// hidden 1024, seq 512, tp 2, pp 4, dp 1, mbs 4, gbs 32".
std::string NameOf(const MeasuredRun& run) {
  if (!run.name.empty()) return run.name;
  const Scenario& asked = run.flags.overrides;
  std::vector<std::string> parts;
  const auto add = [&](absl::string_view what, uint32_t value) {
    if (value > 0) parts.push_back(absl::StrCat(what, " ", value));
  };
  add("layers", asked.transformer().num_layers());
  add("hidden", asked.transformer().hidden_size());
  add("seq", asked.batch().sequence_length());
  add("tp", asked.parallelism().tensor());
  add("pp", asked.parallelism().pipeline());
  add("dp", asked.parallelism().data());
  add("mbs", asked.batch().microbatch_size());
  add("gbs", asked.batch().global_batch_size());
  return absl::StrJoin(parts, ", ");
}

results::FlopsBasis BasisOf(const MeasuredRun& run,
                            const scenarios::ResolvedScenario& scenario) {
  const Transformer& transformer = scenario.model.transformer();
  return {run.formula, 1.0 * transformer.num_layers(),
          1.0 * transformer.hidden_size(), 1.0 * transformer.vocabulary_size()};
}

// Sets the interval of the quantity that follows from the interval of the time:
// a throughput is lowest if the time is highest; memory does not change.
void SetInterval(const Result& result, const results::FlopsBasis& basis,
                 const results::Quantity& quantity,
                 results::ComparedNumber* number) {
  if (!result.has_batch_seconds_low()) return;
  const auto at = [&](double batch_seconds) {
    const auto value =
        quantity.predict(results::AtBatchSeconds(result, batch_seconds), basis);
    return value.ok() ? *value / quantity.unit : number->predicted;
  };
  std::tie(number->low, number->high) = std::minmax(
      {at(result.batch_seconds_low()), at(result.batch_seconds_high())});
}

void Compare(const ValidationWork& work, results::Accuracy* accuracy) {
  const MeasuredRun& run = work.run;
  const std::string name = NameOf(run);
  const auto skip = [&](const absl::Status& status) {
    accuracy->skipped.push_back(
        {run.line, name,
         absl::StrReplaceAll(std::string(status.message()), {{"\n", "; "}})});
  };
  if (!work.scenario.ok()) return skip(work.scenario.status());
  if (absl::IsCancelled(work.result.status())) {
    ++accuracy->num_not_reached;
    return;
  }
  if (!work.result.ok()) return skip(work.result.status());
  const bool fits = results::FitsMemory(*work.result);
  if (run.out_of_memory)
    accuracy->out_of_memory.push_back({run.line, name, fits});
  if (!run.out_of_memory && run.numbers.empty()) {
    return skip(absl::InvalidArgumentError("nothing was measured"));
  }
  const results::FlopsBasis basis = BasisOf(run, *work.scenario);
  for (const MeasuredNumber& number : run.numbers) {
    const auto predicted = number.quantity->predict(*work.result, basis);
    if (!predicted.ok()) {
      skip(predicted.status());
      continue;
    }
    results::ComparedNumber compared = {run.line,
                                        name,
                                        std::string(number.quantity->name),
                                        number.value,
                                        *predicted / number.quantity->unit,
                                        fits};
    SetInterval(*work.result, basis, *number.quantity, &compared);
    accuracy->numbers.push_back(std::move(compared));
  }
}

std::vector<ValidationWork> ReadWork(const Flags& flags,
                                     const results::MeasuredTable& table) {
  std::vector<ValidationWork> works;
  for (const results::MeasuredRow& row : table.rows) {
    MeasuredRun run;
    const absl::Status read = ReadRun(table, row, flags.scenario, &run);
    auto scenario = read.ok() ? ResolveFlags(run.flags) : read;
    works.push_back({std::move(run), std::move(scenario)});
  }
  return works;
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
  std::vector<ValidationWork> works = ReadWork(flags, table);
  RETURN_IF_ERROR(SimulateAll(flags, &works));
  results::Accuracy accuracy;
  accuracy.label = table.label;
  accuracy.num_runs = static_cast<int>(works.size());
  accuracy.num_left_out = table.num_left_out;
  for (const ValidationWork& work : works) Compare(work, &accuracy);
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
    if (given && !replay) problems.Add(flag, "goes with --replay");
  };
  refuse(!flags.measured.against.empty(), "--against");
  refuse(!flags.result.empty(), "--result");
  refuse(!flags.output.trace.empty(), "--trace");
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
