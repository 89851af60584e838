// SPDX-License-Identifier: Apache-2.0
#include "cli/options/shared_options.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/assets.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/options/add_option.h"
#include "cli/options/import_options.h"
#include "cli/options/scenario_options.h"
#include "plan/energy/power_model.h"
#include "plan/frameworks/exported_run.h"
#include "results/flops.h"
#include "results/views/views.h"

namespace weir::cli {

void AddScenarioName(CLI::App* app, const std::string& help,
                     ScenarioFlags* flags) {
  AddText(app, "SCENARIO", "", help, &flags->scenario);
}

void AddName(CLI::App* app, const std::string& name, const std::string& help,
             std::string* target) {
  AddText(app, name, "", help, target)->required();
}

void AddJobs(CLI::App* app, const std::string& group, const std::string& help,
             uint32_t* num_jobs) {
  AddCount(app, "-j,--jobs", help, num_jobs)
      ->group(group)
      ->default_str("number of cores");
}

void AddTolerance(CLI::App* app, const std::string& group,
                  const std::string& help, double* tolerance) {
  AddOption(app, "--tolerance", "PART", help, ParsePositive, tolerance)
      ->group(group);
}

void AddMethod(CLI::App* app, const std::string& group, const std::string& help,
               bool* fast) {
  AddChoice<bool>(app, "--method", help, {{"full", false}, {"fast", true}},
                  fast)
      ->group(group)
      ->default_str("full");
}

absl::StatusOr<double> ParseTokens(const std::string& text) {
  absl::string_view number = text;
  double unit = 1;
  for (const auto& [suffix, value] :
       std::initializer_list<std::pair<absl::string_view, double>>{
           {"k", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}}) {
    if (absl::ConsumeSuffix(&number, suffix)) {
      unit = value;
      break;
    }
  }
  double count = 0;
  if (!absl::SimpleAtod(number, &count) ||
      !(count * unit >= 1 && count * unit <= 1e18)) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", text,
                     ", expected a number of tokens from 1 to 1e18, as in 300B "
                     "or 1T"));
  }
  return count * unit;
}

void AddFlops(CLI::App* app, std::string* formula) {
  const auto parse =
      [](const std::string& text) -> absl::StatusOr<std::string> {
    RETURN_IF_ERROR(results::ParseReportedFormula(text).status());
    return text;
  };
  AddOption(app, "--flops", "FORMULA",
            "FLOP behind TFLOP/s and MFU: model, model-causal, megatron, palm, "
            "palm-causal or hardware (docs/flops.md)",
            parse, formula)
      ->group("Output")
      ->default_str("model");
}

namespace {

void AddWide(CLI::App* app, OutputFlags* output) {
  AddSwitch(app, "--wide",
            "print tables with all columns, however long their lines are",
            &output->wide)
      ->group("Output");
}

// Adds --energy and what it costs; with `measured`, also a table of measured
// passes.
void AddStepEnergy(CLI::App* app, bool measured, StepEnergyFlags* energy) {
  app->option_defaults()->group("Energy");
  AddText(app, "--energy", "POWER",
          absl::StrCat("also show the energy of a step with this power model: "
                       "preset (",
                       absl::StrJoin(ListAssets(plan::kPowerFolder), ", "),
                       ") or textproto file",
                       measured ? ", or a .csv with measured passes" : "",
                       " (docs/energy.md)"),
          &energy->power);
  if (measured) {
    AddOption(app, "--blocking-power", "WATTS",
              "of --energy FILE.csv: power of a GPU that waits", ParsePositive,
              &energy->blocking_watts);
    AddOption(app, "--clock", "MHZ",
              "of --energy FILE.csv: clock of all passes", ParsePositive,
              &energy->clock)
        ->default_str("the highest");
  }
  AddOption(app, "--tokens", "N",
            "tokens of a run, as in 1T, whose energy is shown", ParseTokens,
            &energy->tokens);
  AddOption(app, "--energy-price", "PRICE", "price of a kWh, in any currency",
            ParsePositive, &energy->price);
  AddOption(app, "--carbon", "GRAMS", "grams of CO2 of a kWh", ParsePositive,
            &energy->carbon);
  AddOption(app, "--pue", "FACTOR",
            "power usage effectiveness: energy of the building per energy of "
            "the nodes",
            ParsePositive, &energy->pue)
      ->default_str("1");
}

}  // namespace

void AddInputFormat(CLI::App* app, OutputFlags* output) {
  enum class Choice { kTable, kJson, kTextProto };
  const auto set = [output](Choice choice) {
    output->format = choice == Choice::kJson ? OutputFlags::Format::kJson
                                             : OutputFlags::Format::kTable;
    output->textproto = choice == Choice::kTextProto;
  };
  AddChoice<Choice>(app, "--format",
                    "output format; textproto: a file to edit, with comments",
                    {{"table", Choice::kTable},
                     {"json", Choice::kJson},
                     {"textproto", Choice::kTextProto}},
                    set)
      ->group("Output")
      ->default_str("table");
  AddWide(app, output);
}

void AddFormat(CLI::App* app, bool csv, OutputFlags* output) {
  using Format = OutputFlags::Format;
  std::vector<std::pair<absl::string_view, Format>> formats = {
      {"table", Format::kTable}, {"json", Format::kJson}};
  if (csv) formats.emplace_back("csv", Format::kCsv);
  AddChoice(app, "--format", "output format", formats, &output->format)
      ->group("Output")
      ->default_str("table");
  AddWide(app, output);
}

void AddColumns(CLI::App* app, const std::vector<std::string>& columns,
                OutputFlags* output) {
  const auto parse =
      [columns](
          const std::string& text) -> absl::StatusOr<std::vector<std::string>> {
    std::vector<std::string> names;
    for (absl::string_view name :
         absl::StrSplit(text, ',', absl::SkipWhitespace())) {
      names.push_back(ColumnKey(absl::StripAsciiWhitespace(name)));
    }
    if (!columns.empty()) RETURN_IF_ERROR(CheckColumns(names, columns));
    return names;
  };
  AddOption(app, "--columns", "NAMES",
            "columns of the table, separated by commas", parse,
            &output->columns)
      ->group("Output");
}

void AddTraceSelection(CLI::App* app, results::GpuSelection* selection) {
  const auto parse_number =
      [](const std::string& text) -> absl::StatusOr<uint32_t> {
    uint32_t number = 0;
    if (absl::SimpleAtoi(text, &number)) return number;
    return absl::InvalidArgumentError(
        absl::StrCat("is ", EscapeLine(text), ", expected a number from 0"));
  };
  const auto parse_list =
      [parse_number](
          const std::string& text) -> absl::StatusOr<std::vector<uint32_t>> {
    std::vector<uint32_t> numbers;
    for (absl::string_view one : absl::StrSplit(text, ',')) {
      ASSIGN_OR_RETURN(const uint32_t number, parse_number(std::string(one)));
      numbers.push_back(number);
    }
    return numbers;
  };
  AddOption(app, "--replica", "N",
            "trace only this data-parallel rank, and of it tensor rank 0: the "
            "others usually do the same",
            parse_number,
            [selection](uint32_t number) { selection->replica = number; })
      ->group("Output");
  AddOption(app, "--ranks", "N,...", "trace only these pipeline ranks",
            parse_list, &selection->ranks)
      ->group("Output");
}

void AddForce(CLI::App* app, bool* force) {
  AddSwitch(app, "--force", "overwrite files that weir did not write", force)
      ->group("Output");
}

void AddQuiet(CLI::App* app, bool* quiet) {
  AddSwitch(app, "-q,--quiet", "print no progress and no notes", quiet);
}

void AddColor(CLI::App* app, OutputFlags* output) {
  using Color = OutputFlags::Color;
  AddChoice<Color>(app, "--color", "when to color messages",
                   {{"auto", Color::kAuto},
                    {"always", Color::kAlways},
                    {"never", Color::kNever}},
                   &output->color)
      ->default_str("auto");
}

void AddMessageFormat(CLI::App* app, const std::function<void(bool)>& target) {
  AddChoice<bool>(app, "--message-format",
                  "errors, warnings and notes: text, or json: an object per "
                  "line (weir schema error)",
                  {{"text", false}, {"json", true}}, target)
      ->default_str("text");
}

void AddRun(CLI::App* app, bool several, Flags* flags) {
  AddScenarioName(app, "preset or textproto file; flags override it",
                  &flags->scenario);
  AddImports(app, &flags->scenario);
  AddScenario(app, several, &flags->scenario);
  AddFormat(app, /*csv=*/true, &flags->output);
  AddColumns(app, several ? results::CompareColumns() : results::RankColumns(),
             &flags->output);
  app->option_defaults()->group("Output");
  AddText(app, "--out", "FILE.pb",
          "write results with timelines, for weir show and weir trace",
          &flags->output.out);
  AddText(app, "--trace", "FILE",
          several ? "write the timeline of the fastest schedule that fits "
                    "(.pftrace, .json, .svg), or all timelines into FOLDER/"
                  : "write the timeline: .pftrace (ui.perfetto.dev), .json, or "
                    ".svg (a picture of one pipeline)",
          &flags->output.trace);
  AddReport(app, "--report", "timeline, memory and idle time",
            &flags->output.report);
  AddTraceSelection(app, &flags->output.traced);
  AddForce(app, &flags->output.force);
}

void AddPrediction(CLI::App* app, bool several, Flags* flags) {
  AddFlops(app, &flags->flops);
  AddStepEnergy(app, /*measured=*/!several, &flags->step_energy);
}

CLI::Option* AddReport(CLI::App* app, const std::string& option,
                       const std::string& contents, std::string* path) {
  return AddText(
             app, option, "FILE.html",
             absl::StrCat("write a page with ", contents, ", for any browser"),
             path)
      ->group("Output");
}

void AddSimulate(CLI::App* app, Flags* flags) {
  AddRun(app, /*several=*/false, flags);
  AddPrediction(app, /*several=*/false, flags);
  AddSwitch(app, "--timeline", "also draw the timeline of one pipeline as text",
            &flags->output.timeline)
      ->group("Output");
  AddMethod(app, "Output",
            "full simulates every GPU and microbatch; fast simulates only "
            "representative ones: same time and memory, but no --trace, --out, "
            "--report and CSV",
            &flags->fast);
  app->option_defaults()->group("Output");
  AddEmit(app,
          "write files with which these frameworks start the run: arguments "
          "(.args), a job (.toml), overrides of a recipe (.yaml)",
          "none", &flags->output);
  AddText(app, "--emit-to", "PATH", "path of these files without suffix",
          &flags->output.emit_to)
      ->default_str(flags->output.emit_to);
}

void AddEmit(CLI::App* app, const std::string& help,
             const std::string& otherwise, OutputFlags* output) {
  const auto parse =
      [](const std::string& text) -> absl::StatusOr<std::vector<std::string>> {
    std::vector<std::string> names =
        absl::StrSplit(text, ',', absl::SkipWhitespace());
    for (const std::string& name : names) {
      RETURN_IF_ERROR(plan::FindFramework(name).status());
    }
    return names;
  };
  AddOption(app, "--emit", absl::StrJoin(plan::FrameworkNames(), ","), help,
            parse, &output->emit)
      ->join(',')
      ->default_str(otherwise);
}

}  // namespace weir::cli
