// SPDX-License-Identifier: Apache-2.0
// "explain", "validate", "train-study", "report" and "live".
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/text.h"
#include "base/values.h"
#include "cli/options/add_option.h"
#include "cli/options/import_options.h"
#include "cli/options/scenario_options.h"
#include "cli/options/shared_options.h"
#include "cli/weir/commands.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {
namespace {

// A time in seconds, or the FLOP/s of a GPU.
struct MeasuredValue {
  double seconds = 0;
  double flops_per_second = 0;
};

// Parses "12.3", "12.3s", "380TFLOPS" or "380 TFLOP/s".
absl::StatusOr<MeasuredValue> ParseMeasured(const std::string& text) {
  std::string number = absl::AsciiStrToLower(text);
  absl::string_view rest = number;
  const bool is_rate = absl::ConsumeSuffix(&rest, "tflops") ||
                       absl::ConsumeSuffix(&rest, "tflop/s") ||
                       absl::ConsumeSuffix(&rest, "tflop/s/gpu");
  if (!is_rate) absl::ConsumeSuffix(&rest, "s");
  rest = absl::StripTrailingAsciiWhitespace(rest);
  MeasuredValue measured;
  if (is_rate) {
    const auto rate = ParsePositive(rest);
    if (rate.ok()) {
      measured.flops_per_second = 1e12 * *rate;
      return measured;
    }
  } else if (const auto seconds = ParseTimeLimit(rest); seconds.ok()) {
    measured.seconds = *seconds;
    return measured;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", EscapeLine(text),
      ", expected seconds from 0.001 to 1e9 as in 12.3, or TFLOP/s per GPU as "
      "in 380TFLOPS"));
}

void AddExplainOptions(CLI::App* app, Flags* flags) {
  AddScenarioName(app, "preset or textproto file; flags override it",
                  &flags->scenario);
  AddOption(app, "--measured", "SECONDS|TFLOPS",
            "measured time of one batch, or its TFLOP/s per GPU by --flops "
            "(380TFLOPS): shows which settings, parts and parameters could "
            "explain the difference to the prediction, and by how many "
            "standard deviations each parameter would be off",
            ParseMeasured,
            [flags](const MeasuredValue& measured) {
              flags->measured.step_seconds = measured.seconds;
              flags->measured.flops_per_second = measured.flops_per_second;
            })
      ->group("Measurement");
  AddSwitch(app, "--all", "list all causes, not only the ten most likely",
            &flags->measured.all)
      ->group("Measurement");
  AddJobs(app, "Output", "parallel simulations", &flags->num_jobs);
  AddImports(app, &flags->scenario);
  AddScenario(app, /*several=*/false, &flags->scenario);
  // Given costs use no parameters, which are what it explains.
  for (const char* name : {"--costs", "--hop"}) {
    app->remove_option(app->get_option(name));
  }
  AddFlops(app, &flags->flops);
  AddFormat(app, /*csv=*/false, &flags->output);
  AddReport(app, "--report", "the run and its parameters",
            &flags->output.report);
  AddForce(app, &flags->output.force);
}

void AddMeasuredRuns(CLI::App* app, Flags* flags) {
  MeasuredFlags* measured = &flags->measured;
  app->option_defaults()->group("Measured runs");
  AddText(app, "--measured", "FILE.csv", "measured runs, one per row",
          &measured->file);
  AddText(app, "--scenario", "SCENARIO",
          "preset or file: settings that the rows do not give",
          &flags->scenario.scenario);
  AddText(app, "--columns", "MAP",
          "textproto that maps the columns of the file", &measured->columns);
  AddText(app, "--where", "COLUMN=VALUE,...",
          "use only rows with these values (a|b: either value)",
          &measured->where)
      ->join(',');
  AddSwitch(app, "--calibrate",
            "propose up to three parameters whose values would lower the error "
            "of runs left out; simulates every run once per parameter",
            &measured->calibrate);
  AddText(app, "--overlay", "FILE",
          "with --calibrate: write the proposed values as a device profile "
          "FILE for --profile, and those of the runtime as "
          "NAME.runtime.textproto for --runtime",
          &measured->overlay);
  AddJobs(app, "Measured runs", "parallel simulations", &flags->num_jobs);
}

void AddExecutedSchedule(CLI::App* app, Flags* flags) {
  app->option_defaults()->group("Executed schedule");
  AddText(app, "--replay", "REPLAY",
          "result of weir-calibrate replay, or FILE.csv from any runtime with "
          "the columns rank, action, start_ms and end_ms",
          &flags->measured.replay);
  AddText(app, "--against", "RESULT.pb",
          "the prediction, a file written by weir simulate --out",
          &flags->measured.against);
  AddText(app, "--result", "NAME",
          "schedule or name of the result, if the file has several",
          &flags->result);
  AddText(app, "--trace", "FILE",
          "write predicted and measured timelines side by side for each rank: "
          ".pftrace, .json or .svg",
          &flags->output.trace);
}

void AddValidateOptions(CLI::App* app, Flags* flags) {
  AddMeasuredRuns(app, flags);
  AddExecutedSchedule(app, flags);
  AddTolerance(
      app, "Verdict",
      "exit with 1 if a mean absolute error is larger (0.1: 10 %); with "
      "--replay: if the error of the makespan or of the peak memory of a rank "
      "is larger, by the replay's own count or by its allocator's",
      &flags->measured.tolerance);
  AddOption(app, "--memory-tolerance", "PART",
            "with --replay: the same for peak memory only", ParsePositive,
            &flags->measured.memory_tolerance)
      ->group("Verdict")
      ->default_str("as --tolerance");
  AddScenario(app, /*several=*/false, &flags->scenario);
  AddFormat(app, /*csv=*/true, &flags->output);
  AddSwitch(app, "--all", "show all rows in the tables, not only the worst",
            &flags->measured.all)
      ->group("Output");
  AddReport(app, "--report", "predictions against measurements",
            &flags->output.report);
  AddForce(app, &flags->output.force);
}

absl::StatusOr<double> ParseMomentum(absl::string_view text) {
  if (text == "0") return 0;
  ASSIGN_OR_RETURN(const double momentum, ParsePositive(text));
  if (momentum < 1) return momentum;
  return absl::InvalidArgumentError(
      absl::StrCat("is ", text, ", expected a number below 1"));
}

void AddTrainStudyOptions(CLI::App* app, Flags* flags) {
  TrainStudyFlags* study = &flags->study;
  AddScenarioName(app,
                  "determines the time per batch: preset or textproto file "
                  "[train-study]",
                  &flags->scenario);
  app->option_defaults()->group("Training study");
  AddText(app, "--train-model", "M",
          "model to train, with the scenario's ranks, stages and "
          "microbatches: preset or file",
          &study->train_model)
      ->default_str("tiny-gpt");
  AddCount(app, "--updates", "batches to train", &study->updates)
      ->default_str(absl::StrCat(study->updates));
  AddCount(app, "--seeds", "training runs per schedule", &study->seeds)
      ->default_str(absl::StrCat(study->seeds));
  AddOption(app, "--learning-rate", "RATE",
            "learning rate for updates of a whole batch; scaled down for "
            "updates of fewer microbatches",
            ParsePositive, &study->learning_rate)
      ->default_str(absl::StrCat(study->learning_rate));
  AddOption(app, "--momentum", "PART", "momentum of SGD (0: none)",
            ParseMomentum, &study->momentum)
      ->default_str(absl::StrCat(study->momentum));
  AddJobs(app, "Training study", "parallel training runs", &flags->num_jobs);
  AddScenario(app, /*several=*/true, &flags->scenario);
  app->get_option("--schedule")->default_str(kStudiedSchedules);
  AddFormat(app, /*csv=*/true, &flags->output);
  app->option_defaults()->group("Output");
  AddText(app, "--out", "FILE.csv", "write the loss of every batch",
          &flags->output.out);
  AddText(app, "--plot", "FILE",
          "plot the loss over samples and over seconds: .svg; .pdf and .png "
          "need rsvg-convert",
          &study->plot);
  AddReport(app, "--report", "the losses of all schedules",
            &flags->output.report);
  AddForce(app, &flags->output.force);
}

}  // namespace

void AddStudyCommands(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  AddExplainOptions(
      AddWeirCommand(app, "explain",
                     "Shows which parameters drive a prediction (sensitivity).",
                     {"explain pipedream-2bw-gpt-2.2b --schedule 1f1b",
                      "explain pipedream-2bw-gpt-2.2b --schedule 1f1b "
                      "--measured 80",
                      "explain llama-3-70b-64-h100 --measured 380TFLOPS "
                      "--flops model-causal"},
                     RunExplain, line),
      flags);
  AddValidateOptions(
      AddWeirCommand(
          app, "validate",
          "Compares predictions with measured runs, or one run pass by pass.",
          {"validate --measured runs.csv --scenario my.textproto --tolerance "
           "0.1",
           "validate --measured runs.csv --scenario my.textproto --calibrate "
           "--overlay calibrated.textproto",
           "validate --replay replay.pb --against result.pb --tolerance 0.02 "
           "--trace both.pftrace"},
          RunValidate, line),
      flags);
  AddTrainStudyOptions(
      AddWeirCommand(
          app, "train-study",
          "Trains a small model with several schedules: the cost of staleness.",
          {"train-study --schedule gpipe,pipedream-2bw --updates 40 --out "
           "study.csv",
           "train-study --schedule gpipe,pipedream --costs f=1,b=2 --pp 4 "
           "--microbatches 4 --updates 20"},
          RunTrainStudy, line),
      flags);
}

void AddReportCommands(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  CLI::App* report = AddWeirCommand(
      app, "report",
      "Writes an HTML page of a saved result, or of a scenario's schedules.",
      {"report out/compare.pb -o out/report.html",
       "report plan.json -o plan.html", "report out/grid -o grid.html",
       "report pipedream-2bw-gpt-2.2b --schedule gpipe,pipedream-2bw -o "
       "report.html",
       "report --schedule 1f1b,zb-h1 --costs f=1,i=1,w=1,c=0.1 --pp 4 "
       "--microbatches 8 -o report.html"},
      RunReport, line);
  AddScenarioName(report,
                  "file written by --out or by --format json, folder of a "
                  "sweep, or preset or textproto file with flags that override "
                  "it",
                  &flags->scenario);
  AddImports(report, &flags->scenario);
  AddScenario(report, /*several=*/true, &flags->scenario);
  AddFlops(report, &flags->flops);
  AddReport(report, "-o,--output", "the contents of the file",
            &flags->output.report)
      ->required();
  AddText(report, "--result", "NAME",
          "show only this schedule or name of the saved result", &flags->result)
      ->group("Output")
      ->default_str("all");
  AddForce(report, &flags->output.force);

  CLI::App* live = AddWeirCommand(
      app, "live",
      "Serves a page on this machine with controls for a scenario.",
      {"live pipedream-2bw-gpt-2.2b --schedule 1f1b",
       "live --schedule 1f1b --costs f=1,b=2,c=0.1 --pp 8 --microbatches 32"},
      RunLive, line);
  AddScenarioName(live, "preset or textproto file; flags override it",
                  &flags->scenario);
  AddImports(live, &flags->scenario);
  AddScenario(live, /*several=*/false, &flags->scenario);
  AddCount(live, "--port", "port of 127.0.0.1", &flags->live.port)
      ->group("Output")
      ->default_str("any that is free");
}

}  // namespace weir::cli
