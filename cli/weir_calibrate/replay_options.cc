// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/replay_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "cli/options/option_group.h"
#include "cli/weir/command_table.h"
#include "cli/weir/parse.h"

namespace weir::cli {
namespace {

constexpr absl::string_view kCommand = "weir-calibrate replay";
constexpr absl::string_view kSummary =
    "Executes the schedule of a scenario with real training, for weir "
    "validate.";

absl::Status CheckReplay(const ReplayFlags& flags) {
  Problems problems(kCommand);
  if (flags.num_partitions > 0 && flags.cpu) {
    problems.Add(
        "--partitions",
        "requires a GPU, but --cpu is given, with which ranks are threads");
  }
  if (flags.num_partitions > 0 && flags.serial.value_or(false)) {
    problems.Add("--partitions", "cannot be combined with --serial");
  }
  if (!flags.cpu && flags.num_partitions == 0 && !flags.serial.value_or(true)) {
    problems.Add(
        "--serial",
        "is off, expected --partitions, with which ranks run concurrently");
  }
  return problems.ToStatus();
}

}  // namespace

Options OptionsOfReplay(ReplayFlags* flags) {
  Options options = OptionsOfSimulate(&flags->weir);
  options.front().fallback =
      absl::StrCat(kGpuScenario, ", --cpu: ", kCpuScenario);
  Group group("Replay", &options);
  group.Switch("--cpu", "run on the CPU, in double precision",
               [=](bool on) { flags->cpu = on; });
  group.Switch("--serial",
               "run one rank after the other, with logical clocks [GPU: on; "
               "--cpu: off, a thread for each rank]",
               [=](bool on) { flags->serial = on; });
  group.Count("--partitions", "number of GPU partitions that run concurrently",
              [=](uint32_t n) { flags->num_partitions = static_cast<int>(n); });
  group
      .Count("--steps", "number of batches, for schedules with a flush",
             [=](uint32_t n) { flags->num_steps = static_cast<int>(n); })
      .fallback = "5";
  group
      .Count("--seed", "random seed of weights and data",
             [=](uint32_t n) { flags->seed = n; })
      .fallback = "1";
  group
      .Add("--learning-rate", "RATE", "learning rate of the optimizer",
           [=](const std::string& text) {
             ASSIGN_OR_RETURN(flags->learning_rate, ParsePositive(text));
             return absl::OkStatus();
           })
      .fallback = "adam 0.0001, sgd 0.05";
  group.Switch("--no-check", "do not check the training result",
               [=](bool on) { flags->check = !on; });
  group
      .Add("--device", "N", "which GPU, as CUDA counts them",
           [=](const std::string& text) {
             if (text == "0") return absl::OkStatus();
             ASSIGN_OR_RETURN(const uint32_t device, ParseCount(text));
             flags->device = static_cast<int>(device);
             return absl::OkStatus();
           })
      .fallback = "0";
  group
      .Seconds("--timeout",
               "time limit for any wait; then the waiting ranks are reported",
               &flags->timeout_seconds)
      .fallback = "120";
  return options;
}

absl::StatusOr<CalibrateLine> ParseReplay(
    const std::vector<std::string>& words) {
  CalibrateLine line;
  const Options options = OptionsOfReplay(&line.replay);
  if (AsksForHelp(words)) {
    line.text =
        HelpText(kCommand, kSummary,
                 {"weir-calibrate replay replay-cpu --cpu --schedule 2bw --out "
                  "replay.pb",
                  "weir-calibrate replay --cpu --schedule ./my.csv",
                  "weir-calibrate replay replay-h200 --schedule zb-h1"},
                 options);
    return line;
  }
  line.command = CalibrateLine::Command::kReplay;
  RETURN_IF_ERROR(ParseOptions(kCommand, options, words));
  RETURN_IF_ERROR(CheckReplay(line.replay));
  line.replay.weir.command =
      absl::StrCat(kCommand, " ", absl::StrJoin(words, " "));
  return line;
}

}  // namespace weir::cli
