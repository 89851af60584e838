// SPDX-License-Identifier: Apache-2.0
// "import", "stragglers", "slack" and "jitter".
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "cli/options/add_option.h"
#include "cli/options/import_options.h"
#include "cli/options/scenario_options.h"
#include "cli/options/shared_options.h"
#include "cli/weir/weir_app.h"
#include "plan/stragglers/jitter_source.h"

namespace weir::cli {
namespace {

// `others` are formats that only this command reads.
void AddTraces(CLI::App* command, const char* others, TraceFlags* trace) {
  command
      ->add_option_function<std::vector<std::string>>(
          "TRACE",
          [trace](const std::vector<std::string>& files) {
            trace->files = files;
          },
          absl::StrCat("files of one run: ByteDance timelines (JSON or CSV); "
                       "traces of PyTorch's profiler, exports of Nsight "
                       "Systems (SQLite) or execution traces of Chakra (.et) "
                       "with named passes, one per rank; other Chrome JSON; a "
                       "dump of Primus (pp_rank_N.json and config.json)",
                       others, ". All but SQLite may be gzipped"))
      ->required()
      ->type_name("");
}

absl::StatusOr<uint32_t> ParseSamples(const std::string& text) {
  constexpr uint32_t kMaxSamples = 1'000'000;
  const auto count = ParseCount(text);
  if (count.ok() && *count >= 1 && *count <= kMaxSamples) return *count;
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", EscapeLine(text), ", expected samples from 1 to ", kMaxSamples));
}

// Steps of a trace may count from 0.
absl::StatusOr<uint32_t> ParseStep(const std::string& text) {
  if (text == "0") return 0;
  const auto step = ParseCount(text);
  if (step.ok() && *step <= uint32_t{results::kMaxRecordedNumber}) return step;
  return absl::InvalidArgumentError(absl::StrCat("is ", EscapeLine(text),
                                                 ", expected a step from 0 to ",
                                                 results::kMaxRecordedNumber));
}

}  // namespace

void AddRecordedRunCommands(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  CLI::App* import = AddWeirCommand(
      app, "import",
      "Reads traces of a real run and stores one step as a result.",
      {"import out/timeline.json.gz -o out/measured.pb",
       "import out/rank0.json.gz out/rank1.json.gz --step 2 -o "
       "out/measured.pb"},
      RunImport, line);
  AddTraces(import, "; for --costs, a table of Perseus (CSV)", &flags->trace);
  import->option_defaults()->group("Trace");
  AddOption(
      import, "--step", "N", "number of the step in the trace", ParseStep,
      [flags](uint32_t step) { flags->trace.step = std::to_string(step); })
      ->default_str("the one with the median time");
  AddText(import, "-o,--output", "FILE",
          "result to write, for show, report, draw, trace and validate "
          "--replay",
          &flags->output.out)
      ->group("Output");
  AddText(import, "--costs", "FILE",
          "write the median times of each stage, for simulate --costs FILE",
          &flags->trace.costs)
      ->group("Output");
  AddOption(import, "--blocks-per-stage", "N,N,...",
            "number of blocks of the model in each recorded stage, or one "
            "number for all: with them, --costs can be simulated with another "
            "--pp, --chunks or --blocks-per-stage",
            ParseNumbers, &flags->trace.blocks);
  AddFormat(import, /*csv=*/false, &flags->output);
  AddReport(import, "--report", "the step", &flags->output.report);
  AddForce(import, &flags->output.force);

  CLI::App* stragglers = AddWeirCommand(
      app, "stragglers",
      "Finds what slows a real run down, by replaying its traces.",
      {"stragglers out/timeline.json.gz",
       "stragglers out/trace.csv.gz --format json"},
      RunStragglers, line);
  AddTraces(stragglers, "", &flags->trace);
  AddCount(stragglers, "--tp",
           "tensor-parallel size of the run, for the numbers of slow GPUs",
           &flags->trace.tensor)
      ->default_str("the trace's, or 1")
      ->group("Trace");
  AddFormat(stragglers, /*csv=*/false, &flags->output);
  AddReport(stragglers, "--report", "the slowdown by operation and worker",
            &flags->output.report);
  AddForce(stragglers, &flags->output.force);

  CLI::App* slack = AddWeirCommand(
      app, "slack",
      "Shows how much delay the passes and transfers of schedules absorb.",
      {"slack --schedule gpipe,1f1b,zb-h1 --costs f=1,i=1,w=1 --pp 4 "
       "--microbatches 8"},
      RunSlack, line);
  AddScenarioName(slack, "preset or file; flags override it", &flags->scenario);
  AddImports(slack, &flags->scenario);
  AddScenario(slack, /*several=*/true, &flags->scenario);
  AddFormat(slack, /*csv=*/false, &flags->output);

  CLI::App* jitter = AddWeirCommand(
      app, "jitter",
      "Samples step times of schedules whose passes vary (Monte Carlo).",
      {"jitter --schedule gpipe,1f1b --costs f=1,b=2 --pp 4 --microbatches 8 "
       "--jitter pass=lognormal:0.05 --jitter gpu=normal:0.02"},
      RunJitter, line);
  AddScenarioName(jitter, "preset or file; flags override it",
                  &flags->scenario);
  jitter->option_defaults()->group("Jitter");
  jitter
      ->add_option_function<std::vector<std::string>>(
          "--jitter",
          [flags](const std::vector<std::string>& sources) {
            flags->jitter.sources = sources;
          },
          "factors of the time of each pass, gpu, gpuN, stage, stageN, link or "
          "link:NAME: =constant:FACTOR, =periodic:PERIOD:FACTOR, "
          "=normal:DEVIATION, =lognormal:DEVIATION, =exponential:MEAN or "
          "=file:TIMES.csv; delays of pass, link or step: "
          "=delay:PROBABILITY:SECONDS; sequences=packed: the documents of "
          "--packed-sequences. May be repeated")
      ->check([](const std::string& text) {
        return std::string(plan::ParseJitterSource(text).status().message());
      })
      ->type_name("SOURCE=DISTRIBUTION");
  AddOption(jitter, "--samples", "N", "number of samples", ParseSamples,
            &flags->jitter.num_samples)
      ->default_str(std::to_string(flags->jitter.num_samples));
  AddCount(jitter, "--seed", "seed of the random numbers", &flags->jitter.seed)
      ->default_str(std::to_string(flags->jitter.seed));
  AddImports(jitter, &flags->scenario);
  AddScenario(jitter, /*several=*/true, &flags->scenario);
  AddFormat(jitter, /*csv=*/false, &flags->output);
}

}  // namespace weir::cli
