// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/calibrate_app.h"

#include <algorithm>
#include <limits>
#include <set>
#include <type_traits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/version.h"
#include "cli/options/add_option.h"
#include "cli/options/program.h"
#include "cli/options/shared_options.h"
#include "cli/weir_calibrate/calibrate_commands.h"

namespace weir::cli {
namespace {

constexpr int kMaxSize = 1 << 20;

// Returns a parser of numbers from `low` to `high`.
template <typename Number>
auto Between(Number low, Number high) {
  return [=](absl::string_view text) -> absl::StatusOr<Number> {
    Number number = 0;
    bool is_number = false;
    if constexpr (std::is_integral_v<Number>) {
      is_number = absl::SimpleAtoi(text, &number);
    } else {
      is_number = absl::SimpleAtod(text, &number);
    }
    if (is_number && number >= low && number <= high) return number;
    return absl::InvalidArgumentError(
        absl::StrCat("is ", text, ", expected a ",
                     std::is_integral_v<Number> ? "whole number" : "number",
                     " from ", low, " to ", high));
  };
}

template <typename Number>
void AddNumber(CLI::App* app, const std::string& name,
               const std::string& value_name, const std::string& help,
               Number low, Number high, Number* target) {
  AddOption(app, name, value_name, help, Between(low, high), target)
      ->default_str(absl::StrFormat("%.9g", 1.0 * *target));
}

// Adds a list of whole numbers, whose default is `fallback` if it is empty.
void AddNumbers(CLI::App* app, const std::string& name, const std::string& help,
                int low, int high, const std::string& fallback,
                std::vector<int>* target) {
  const auto parse =
      [=](const std::string& text) -> absl::StatusOr<std::vector<int>> {
    std::vector<int> numbers;
    for (absl::string_view part : absl::StrSplit(text, ',')) {
      ASSIGN_OR_RETURN(numbers.emplace_back(), Between(low, high)(part));
    }
    return numbers;
  };
  AddOption(app, name, "N,N,...", help, parse, target)
      ->join(',')
      ->default_str(target->empty() ? fallback : absl::StrJoin(*target, ","));
}

void AddDevice(CLI::App* app, int* device) {
  AddNumber(app, "--device", "N", "CUDA device number", 0, 1023, device);
}

// Adds what is measured or verified.
void AddMeasurement(CLI::App* app, RunFlags* flags) {
  calibrate::PlanOptions* plan = &flags->plan;
  app->option_defaults()->group("Workloads");
  AddText(app, "--model", "M",
          "model: preset, Hugging Face config.json or textproto", &flags->model)
      ->required();
  AddNumbers(app, "--microbatch-sizes",
             "list of microbatch sizes to measure, in sequences", 1, kMaxSize,
             "", &plan->microbatch_sizes);
  AddNumbers(app, "--sequence-lengths", "list of sequence lengths to measure",
             1, kMaxSize, "that of the model", &plan->sequence_lengths);
  AddNumbers(
      app, "--tensor-parallel",
      "list of tensor-parallel sizes; the shapes that each gives one GPU "
      "are measured",
      1, 1024, "", &plan->tensor_parallel);
  enum Attention { kFused, kUnfused, kBoth };
  AddChoice<Attention>(
      app, "--attention", "attention kernels",
      {{"fused", kFused}, {"unfused", kUnfused}, {"both", kBoth}},
      [plan](Attention attention) {
        plan->fused_attention = attention != kUnfused;
        plan->unfused_attention = attention != kFused;
      })
      ->default_str("fused");
  AddNumber(app, "--dropout", "P", "dropout probability (0: no dropout)", 0.0,
            0.99, &plan->dropout);
  AddText(app, "--only", "TEXT",
          "measure only workloads whose name (see --list) contains this",
          &flags->only);
  app->option_defaults()->group("Measurement");
  AddDevice(app, &flags->device);
  AddNumber(app, "--timeout", "SECONDS",
            "stop after this many seconds without progress", 0.1, 1e5,
            &flags->timeout_seconds);
  AddNumber(app, "--candidates", "N",
            "number of cuBLASLt algorithms to try for every GEMM", 1, 1000,
            &flags->num_candidates);
  AddText(app, "--report", "FILE.csv", "also write the report to this CSV file",
          &flags->report)
      ->group("Output");
  AddForce(app, &flags->force);
  AddQuiet(app, &flags->quiet);
}

void AddRunOptions(CLI::App* app, RunFlags* flags) {
  AddMeasurement(app, flags);
  AddNumber(
      app, "--partitions", "N",
      "divide the GPU into this many equal partitions and measure on one, "
      "while the others are idle and while they are busy (1: whole GPU)",
      1, 64, &flags->num_partitions);
  AddChoice<DeviceProfile::Purpose>(
      app, "--for",
      "what the profile predicts: frameworks, whose attention kernels are "
      "those of the start profile; or replays, with weir's own attention and "
      "operations launched one by one",
      {{"frameworks", DeviceProfile::FRAMEWORKS},
       {"replays", DeviceProfile::REPLAYS}},
      &flags->purpose)
      ->default_str("frameworks, --partitions: replays");
  AddSwitch(app, "--list",
            "print the workloads and the estimated time; needs no GPU",
            &flags->list);
  AddSwitch(app, "--fresh", "start again and discard FILE.partial",
            &flags->fresh);
  app->option_defaults()->group("Output");
  AddText(app, "--out", "FILE",
          "profile to write, required without --list. FILE.partial holds the "
          "measurements of an unfinished run, which the same command "
          "continues; FILE.journal those of a finished one",
          &flags->out);
  AddText(app, "--start", "P",
          "profile that provides all parameters that are not measured",
          &flags->start)
      ->default_str("the preset for this GPU");
}

void AddNetworkOptions(CLI::App* app, calibrate::NetworkFlags* flags) {
  AddText(app, "--out", "FILE", "profile to write", &flags->out)->required();
  AddText(app, "--start", "P",
          "profile that provides all parameters that are not measured: a "
          "preset, or a file written by `run`",
          &flags->start)
      ->required();
  AddNumber(app, "--pairs-per-class", "N",
            "number of GPU pairs to measure per kind of link", 1, kMaxSize,
            &flags->pairs_per_class);
  AddNumber(app, "--max-bytes", "BYTES", "largest message in bytes", 1024.0,
            1e12, &flags->max_bytes);
  AddNumber(
      app, "--timeout", "SECONDS",
      "time limit in seconds for the rendezvous, for every operation, and "
      "for how long a rank may stay silent",
      0.1, 1e5, &flags->timeout_seconds);
  AddText(app, "--topology", "FILE",
          "file that lists the leaf switches and their nodes", &flags->topology)
      ->default_str("Slurm's topology");
  AddText(app, "--rendezvous", "FILE",
          "file for the rendezvous, on a file system shared by all ranks",
          &flags->rendezvous)
      ->default_str("environment variables of the launcher");
  AddNumbers(app, "--groups", "numbers of ranks of the collectives", 2,
             kMaxSize, "2, 4, 8, ...", &flags->groups);
  AddNumber(app, "--seed", "N", "random seed for the choice of pairs",
            uint64_t{0}, std::numeric_limits<uint64_t>::max(), &flags->seed);
  AddSwitch(
      app, "--one-gpu",
      "let all ranks share a GPU, for a functional check without valid times",
      &flags->one_gpu);
  AddForce(app, &flags->force);
}

void AddJudgeOptions(CLI::App* app, JudgeFlags* flags) {
  app->option_defaults()->group("Reports");
  AddText(app, "--check", "FILE.csv", "written by `check --report`",
          &flags->check);
  AddText(app, "--run", "FILE.csv", "written by `run --report`", &flags->run);
  AddText(app, "--repeated", "FILE.csv",
          "written by the same run again, to another --out", &flags->repeated);
  AddText(app, "--best", "FILE.csv",
          "written by a run with --only gemm --candidates 100", &flags->best);
  app->option_defaults()->group("Output");
  AddText(app, "--out", "FILE.csv", "also write the checks to this CSV file",
          &flags->out);
  AddSwitch(app, "--all",
            "print the worst rows of all checks, not only of "
            "those that fail",
            &flags->all);
  AddForce(app, &flags->force);
}

// Returns the given options that define what is simulated, as typed.
std::vector<std::string> ScenarioOptionsOf(const CLI::App& command) {
  static const auto& groups = *new std::set<std::string>{
      "Model", "Cluster", "Parallelism", "Training", "Schedule"};
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    const std::string& name = option->get_name();
    if (option->count() == 0 || name == "--schedule") continue;
    if (option->get_positional()) {
      words.insert(words.begin(), option->results().back());
    } else if (groups.count(option->get_group()) > 0) {
      words.push_back(absl::StrCat(name, "=", option->results().back()));
    }
  }
  return words;
}

}  // namespace

std::unique_ptr<CLI::App> MakeCalibrateApp(CalibrateLine* line) {
  auto app = MakeProgram(
      "weir-calibrate",
      "Measures the kernels, the memory and the communication of GPUs for "
      "weir.");
  app->set_version_flag("--version",
                        absl::StrCat("weir-calibrate ", WeirVersion(), " (git ",
                                     GitRevision(), ")"),
                        "show the version");
  app->option_defaults()->group(kOptionsOfAllCommands);
  AddMessageFormat(app.get(), [line](bool json) {
    line->json_messages = json;
    line->replay.weir.output.json_messages = json;
  });
  const auto add = [&](const std::string& name, const std::string& summary,
                       const std::vector<std::string>& examples,
                       const std::function<int(const Factories&)>& run) {
    CLI::App* command = AddCommand(app.get(), name, summary, examples);
    command->callback([line, run, command] {
      line->command = run;
      line->replay.scenario_options = ScenarioOptionsOf(*command);
    });
    return command;
  };
  AddRunOptions(
      add("run",
          "Measures the operations and stages of a model and writes a device "
          "profile.",
          {"run --model gpt2 --list", "run --model gpt2 --out my.textproto"},
          [line](const Factories& factories) {
            return RunCalibration(line->run, factories);
          }),
      &line->run);
  AddMeasurement(
      add("check",
          "Verifies every operation against double precision, without timing.",
          {"check --model gpt2"},
          [line](const Factories& factories) {
            return CheckKernels(line->run, factories);
          }),
      &line->run);
  AddReplay(
      add("replay",
          "Executes the schedule of a scenario with real training, for weir "
          "validate.",
          {"replay replay-cpu --cpu --schedule 2bw --out replay.pb",
           "replay --cpu --schedule ./my.csv",
           "replay --plan --memory 80GiB --multiprocessors 132",
           "replay replay-gpu --schedule zb-h1 --profile my.textproto"},
          [line](const Factories& factories) {
            return RunReplayCommand(line->replay, factories);
          }),
      &line->replay);
  AddNetworkOptions(
      add("network",
          "Measures communication between GPUs; start it on every rank.",
          {"network --start gpu.textproto --out my.textproto"},
          [line](const Factories& factories) {
            return calibrate::RunNetworkCommand(line->network,
                                                factories.make_transport);
          }),
      &line->network);
  AddJudgeOptions(
      add("judge",
          "Checks the reports of a calibration against limits; a check whose "
          "report is missing is n/a.",
          {"judge --check check.csv --run my.csv --repeated again.csv"},
          [line](const Factories&) { return RunJudge(line->judge); }),
      &line->judge);
  CLI::App* doctor =
      add("doctor", "Shows which drivers and libraries this machine has.",
          {"doctor"}, [line](const Factories& factories) {
            return RunDoctor(line->doctor, factories);
          });
  AddDevice(doctor, &line->doctor.device);
  AddSwitch(doctor, "--json", "print JSON", &line->doctor.json);
  app->footer("weir-calibrate help COMMAND shows the options of a command.");
  return app;
}

absl::StatusOr<std::string> ParseCalibrateArguments(int argc,
                                                    const char* const* argv,
                                                    CalibrateLine* line) {
  const std::string command =
      absl::StrCat("weir-calibrate ",
                   absl::StrJoin(argv + std::min(argc, 1), argv + argc, " "));
  line->run.command = line->network.command = line->replay.weir.command =
      command;
  line->network.weir_version = std::string(WeirVersion());
  line->network.print_error = [](absl::string_view text) {
    PrintErrorMessage(text);
  };
  line->network.print_warning = [](absl::string_view text) {
    PrintWarning(text);
  };
  return ParseArguments(argc, argv, MakeCalibrateApp(line).get());
}

}  // namespace weir::cli
