// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/output_file.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/options/overrides.h"
#include "cli/options/scenario_options.h"
#include "cli/weir/commands.h"
#include "cli/weir/document_report.h"
#include "cli/weir/envelope.h"
#include "models/model.pb.h"
#include "plan/validation/validate_runs.h"
#include "results/compare/accuracy.h"
#include "results/compare/measured_run.h"
#include "results/compare/measured_table.h"
#include "scenarios/describe_scenario.h"

namespace weir::cli {
namespace {

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

// Returns a warning about rates whose formula the table does not name.
std::string FormulaWarning(const results::MeasuredTable& table) {
  for (const results::MeasuredRow& row : table.rows) {
    const auto has = [&](absl::string_view column) {
      return std::any_of(
          row.fields.begin(), row.fields.end(),
          [&](const auto& field) { return field.column == column; });
    };
    if (!has("tflops_per_gpu") || has("flops_formula")) continue;
    return absl::StrCat(table.label, ":", row.line,
                        ": tflops_per_gpu without flops_formula is compared "
                        "with the formula model (docs/flops.md says which "
                        "program prints which)");
  }
  return "";
}

plan::RowScenario NewRow(const ScenarioFlags& base) {
  const auto flags = std::make_shared<ScenarioFlags>(base);
  plan::RowScenario row;
  row.settings = SettingsOfColumns(flags.get());
  row.describe = [flags] { return scenarios::DescribeSizes(flags->overrides); };
  row.resolve = [flags](const std::string& scenario) {
    if (!scenario.empty()) flags->scenario = scenario;
    return ResolveFlags(*flags);
  };
  return row;
}

absl::StatusOr<results::Accuracy> Validate(const Flags& flags) {
  ASSIGN_OR_RETURN(const results::MeasuredTable table,
                   LoadTable(flags.measured));
  if (const std::string warning = FormulaWarning(table); !warning.empty()) {
    PrintWarning(warning, flags.output);
  }
  ProgressLine progress(flags.output);
  plan::ValidationOptions options;
  if (flags.num_jobs > 0) {
    options.num_processes = static_cast<int>(flags.num_jobs);
  }
  options.progress = [&](int num_done, int num_runs) {
    progress.Show(absl::StrCat("[", num_done, "/", num_runs, "] runs"),
                  1.0 * num_done / std::max(num_runs, 1));
  };
  options.calibrate = flags.measured.calibrate;
  options.calibration_progress = [&](int num_done, int num_simulations) {
    progress.Show(
        absl::StrCat("calibrating [", num_done, "/", num_simulations, "]"),
        1.0 * num_done / std::max(num_simulations, 1));
  };
  NoteInterrupt();
  absl::StatusOr<results::Accuracy> accuracy = plan::ValidateRuns(
      table, [&] { return NewRow(flags.scenario); }, options);
  ExitOnInterrupt();
  return accuracy;
}

std::string JsonOf(const Flags& flags, const results::Accuracy& accuracy) {
  return Envelope(flags.command, "{}", results::AccuracyJson(accuracy));
}

std::string View(const Flags& flags, const results::Accuracy& accuracy) {
  switch (flags.output.format) {
    case OutputFlags::Format::kJson:
      return JsonOf(flags, accuracy);
    case OutputFlags::Format::kCsv:
      return results::AccuracyCsv(accuracy);
    case OutputFlags::Format::kTable:
      break;
  }
  return results::AccuracyTable(accuracy, flags.measured.all);
}

// Returns FILE for the first device profile, FILE.2 for the second, and
// NAME.runtime.textproto for the runtime, where FILE is NAME.textproto.
std::string OverlayPath(const std::string& file, const std::string& option,
                        int number) {
  const std::string suffix =
      absl::StrCat(option == "--runtime" ? ".runtime" : "",
                   number > 1 ? absl::StrCat(".", number) : "");
  if (suffix.empty()) return file;
  return absl::StrCat(absl::StripSuffix(file, ".textproto"), suffix,
                      ".textproto");
}

// Checks, before hours of work, that the files can be written.
absl::Status CheckOverlays(const Flags& flags) {
  if (flags.measured.overlay.empty()) return absl::OkStatus();
  for (const char* option : {"--profile", "--runtime"}) {
    RETURN_IF_ERROR(CheckOutput(OverlayPath(flags.measured.overlay, option, 1),
                                ReplaceOf(flags.output)));
  }
  return absl::OkStatus();
}

absl::Status WriteOverlays(const Flags& flags,
                           const results::Calibration& calibration) {
  if (flags.measured.overlay.empty()) return absl::OkStatus();
  std::map<std::string, int> counts;  // by option
  for (const results::ProfileOverlay& overlay : calibration.overlays) {
    const std::string path = OverlayPath(flags.measured.overlay, overlay.option,
                                         ++counts[overlay.option]);
    RETURN_IF_ERROR(CheckOutput(path, ReplaceOf(flags.output)));
    RETURN_IF_ERROR(WriteFile(path, MarkText(overlay.text)));
    PrintNote(absl::StrCat("wrote ", path, " for ", overlay.option, " (",
                           overlay.owner, ")"),
              flags.output);
  }
  if (calibration.overlays.empty()) {
    PrintNote(absl::StrCat("did not write ", flags.measured.overlay,
                           ": no parameter of a profile or runtime is "
                           "proposed"),
              flags.output);
  }
  return absl::OkStatus();
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
  if (flags.measured.calibrate && replay) {
    problems.Add("--calibrate", "requires --measured");
  }
  if (!flags.measured.overlay.empty() && !flags.measured.calibrate) {
    problems.Add("--overlay", "requires --calibrate");
  }
  return problems.ToStatus();
}

}  // namespace

int RunValidate(const Flags& flags) {
  const absl::Status checked = CheckAccuracyFlags(flags);
  if (!checked.ok()) return PrintError(checked, flags.output);
  if (!flags.measured.replay.empty()) return RunValidateReplay(flags);
  absl::Status writable = CheckOverlays(flags);
  writable.Update(CheckDocumentReport(flags.output));
  if (!writable.ok()) return PrintError(writable, flags.output);
  const absl::StatusOr<results::Accuracy> accuracy = Validate(flags);
  if (!accuracy.ok()) return PrintError(accuracy.status(), flags.output);
  const absl::Status printed = PrintResult(View(flags, *accuracy));
  if (!printed.ok()) return PrintError(printed, flags.output);
  const absl::Status reported = WriteDocumentReport(
      flags.output, [&] { return JsonOf(flags, *accuracy); });
  if (!reported.ok()) return PrintError(reported, flags.output);
  if (Interrupted()) return InterruptExitCode();
  if (accuracy->calibration.has_value()) {
    const absl::Status written = WriteOverlays(flags, *accuracy->calibration);
    if (!written.ok()) return PrintError(written, flags.output);
  }
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
