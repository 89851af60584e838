// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/calibrate_parse.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/spelling.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/weir_calibrate/replay_options.h"

namespace weir::cli {
namespace {

// Rejects NaN, which CLI::Range accepts.
CLI::Validator Between(double low, double high) {
  const auto number = [](const std::string& text) -> std::string {
    double value = 0;
    const bool nan = absl::SimpleAtod(text, &value) && std::isnan(value);
    return nan ? absl::StrCat(text, " is not a number") : "";
  };
  return CLI::Range(low, high) & CLI::Validator(number, "");
}

void AddDevice(CLI::App* app, int* device) {
  app->add_option("--device", *device, "number of the GPU, as CUDA counts")
      ->check(CLI::Range(0, 1023))
      ->capture_default_str();
}

void AddPlan(CLI::App* app, RunFlags* flags, std::string* attention) {
  app->add_option("--model", flags->model,
                  "model: preset, Hugging Face config.json or textproto")
      ->required();
  calibrate::PlanOptions* plan = &flags->plan;
  const auto sizes = CLI::Range(1, 1 << 20);
  app->add_option("--microbatch-sizes", plan->microbatch_sizes,
                  "list of microbatch sizes to measure, in sequences")
      ->delimiter(',')
      ->check(sizes)
      ->capture_default_str();
  app->add_option(
         "--sequence-lengths", plan->sequence_lengths,
         "list of sequence lengths to measure (default: that of the model)")
      ->delimiter(',')
      ->check(sizes);
  app->add_option("--tensor-parallel", plan->tensor_parallel,
                  "list of tensor-parallel sizes, for whose shapes on one GPU "
                  "are measured")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app->add_option("--attention", *attention,
                  "attention kernels: fused, unfused or both")
      ->check(CLI::IsMember({"fused", "unfused", "both"}))
      ->capture_default_str();
  app->add_option("--dropout", plan->dropout,
                  "dropout probability (0: no dropout)")
      ->check(Between(0.0, 0.99))
      ->capture_default_str();
  AddDevice(app, &flags->device);
  app->add_option("--timeout", flags->timeout_seconds,
                  "stop after this many seconds without progress")
      ->check(Between(0.1, 1e5))
      ->capture_default_str();
  app->add_option(
      "--only", flags->only,
      "measure only workloads whose name (see --list) contains this");
  app->add_option("--candidates", flags->num_candidates,
                  "number of cuBLASLt algorithms to try for every GEMM")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app->add_option("--report", flags->report,
                  "also write the report to this CSV file");
  app->add_flag("--force", flags->force,
                "overwrite files that weir did not write");
  app->add_flag("--quiet", flags->quiet, "print no progress on standard error");
}

void AddRun(CLI::App* app, RunFlags* flags, std::string* attention) {
  AddPlan(app, flags, attention);
  app->add_option("--out", flags->out,
                  "profile to write. OUT.partial holds the measurements of an "
                  "unfinished run, which the same command continues; "
                  "OUT.journal those of a finished one");
  app->add_option("--start", flags->start,
                  "profile that provides all parameters that are not measured "
                  "(default: the preset for this GPU)");
  app->add_option(
         "--partitions", flags->num_partitions,
         "divide the GPU into this many equal partitions and measure on one, "
         "while the others are idle and while they are busy (1: whole GPU)")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app->add_flag("--list", flags->list,
                "print the workloads and the estimated time; needs no GPU");
  app->add_flag("--fresh", flags->fresh, "start again and discard OUT.partial");
}

void AddNetwork(CLI::App* app, calibrate::NetworkFlags* flags) {
  app->add_option("--out", flags->out, "profile to write")->required();
  app->add_option("--start", flags->start,
                  "profile that provides all parameters that are not measured: "
                  "a preset, or a file written by `run`")
      ->required();
  app->add_option("--pairs-per-class", flags->pairs_per_class,
                  "number of GPU pairs to measure per kind of link")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--max-bytes", flags->max_bytes, "largest message in bytes")
      ->check(Between(1024.0, 1e12))
      ->capture_default_str();
  app->add_option("--timeout", flags->timeout_seconds,
                  "time limit in seconds for the rendezvous, for every "
                  "operation and for silence of a rank")
      ->check(Between(0.1, 1e5))
      ->capture_default_str();
  app->add_option("--topology", flags->topology,
                  "file that lists the leaf switches and their nodes (default: "
                  "Slurm's topology)");
  app->add_option("--rendezvous", flags->rendezvous,
                  "file for the rendezvous, on a file system shared by all "
                  "ranks (default: environment variables of the launcher)");
  app->add_option("--groups", flags->groups,
                  "numbers of ranks of the collectives (default: 2, 4, 8, ...)")
      ->delimiter(',')
      ->check(CLI::Range(2, 1 << 20));
  app->add_option("--seed", flags->seed, "random seed for the choice of pairs")
      ->capture_default_str();
  app->add_flag("--force", flags->force,
                "overwrite files that weir did not write");
  app->add_flag(
      "--one-gpu", flags->one_gpu,
      "let all ranks share a GPU, for a functional check without valid times");
}

// Reports all arguments that no option took, with the closest known options.
absl::Status RefuseExtras(const CLI::App& app, const CLI::App& command) {
  Problems problems(absl::StrCat("weir-calibrate ", command.get_name()));
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      known.push_back(absl::StrCat("--", name));
    }
  }
  std::vector<std::string> extras = command.remaining();
  for (const std::string& extra : app.remaining()) extras.push_back(extra);
  for (const std::string& extra : extras) {
    const std::string name = extra.substr(0, extra.find('='));
    problems.Add(
        "", absl::StrCat(absl::StartsWith(name, "-") ? "unknown option "
                                                     : "unexpected argument ",
                         EscapeLine(name), DidYouMean(name, known)));
  }
  return problems.ToStatus();
}

absl::Status RefuseCommand(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) {
    known.push_back(command->get_name());
  }
  const std::string commands = absl::StrJoin(known, ", ");
  if (words.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("weir-calibrate: no command given (", commands, ")"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("weir-calibrate: unknown command ", words[0],
                   DidYouMean(words[0], known), " (", commands, ")"));
}

absl::Status CheckRun(const RunFlags& flags) {
  if (!flags.list && flags.out.empty()) {
    return absl::InvalidArgumentError("weir-calibrate run: --out is missing");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CalibrateLine> ParseCalibrateArguments(int argc,
                                                      const char* const* argv) {
  if (argc > 1 && absl::string_view(argv[1]) == "replay") {
    return ParseReplay({argv + 2, argv + argc});
  }
  CalibrateLine line;
  std::string attention = "fused", check_attention = "fused";
  RunFlags check;
  CLI::App app(
      "Measures the kernels, the memory and the communication of GPUs for "
      "weir.",
      "weir-calibrate");
  app.require_subcommand(0, 1);
  app.allow_extras();
  bool version = false;
  app.add_flag("--version", version, "print the version");
  CLI::App* run = app.add_subcommand("run",
                                     "measure the operations and stages of a "
                                     "model and write a device profile");
  CLI::App* verify = app.add_subcommand(
      "check",
      "verify every operation against double precision, without timing");
  // Has the options of `weir simulate`, which are a table (replay_options.h).
  app.add_subcommand("replay",
                     "execute a scenario's schedule with real training");
  CLI::App* network = app.add_subcommand(
      "network", "measure communication between GPUs; start it on every rank");
  CLI::App* doctor = app.add_subcommand(
      "doctor", "show which drivers and libraries this machine has");
  for (CLI::App* command : {run, verify, network, doctor}) {
    command->allow_extras();
  }
  AddRun(run, &line.run, &attention);
  AddPlan(verify, &check, &check_attention);
  AddNetwork(network, &line.network);
  AddDevice(doctor, &line.doctor.device);
  doctor->add_flag("--json", line.doctor.json, "print JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    line.text = app.help();
    return line;
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("weir-calibrate: ", error.what()));
  }
  if (version) {
    line.text = absl::StrCat("weir-calibrate ", WeirVersion(), " (git ",
                             GitRevision(), ")");
    return line;
  }
  if (app.get_subcommands().empty()) return RefuseCommand(app);
  const absl::Status extras = RefuseExtras(app, *app.get_subcommands()[0]);
  if (!extras.ok()) return extras;
  const std::string command = absl::StrCat(
      "weir-calibrate ", absl::StrJoin(argv + 1, argv + argc, " "));
  if (*run) {
    line.command = CalibrateLine::Command::kRun;
    const absl::Status status = CheckRun(line.run);
    if (!status.ok()) return status;
  } else if (*verify) {
    line.command = CalibrateLine::Command::kCheck;
    line.run = check;
    attention = check_attention;
  } else if (*network) {
    line.command = CalibrateLine::Command::kNetwork;
  } else {
    line.command = CalibrateLine::Command::kDoctor;
  }
  line.run.plan.fused_attention = attention != "unfused";
  line.run.plan.unfused_attention = attention != "fused";
  line.run.command = line.network.command = command;
  line.network.weir_version = std::string(WeirVersion());
  return line;
}

}  // namespace weir::cli
