// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "cli/options/add_option.h"
#include "cli/options/shared_options.h"
#include "cli/weir_calibrate/calibrate_app.h"

namespace weir::cli {
namespace {

absl::StatusOr<uint32_t> ParseDevice(absl::string_view text) {
  if (text == "0") return 0;
  return ParseCount(text);
}

}  // namespace

void AddReplay(CLI::App* app, ReplayFlags* flags) {
  AddRun(app, /*several=*/false, &flags->weir);
  AddColor(app, &flags->weir.output);
  AddQuiet(app, &flags->weir.output.quiet);
  app->get_option("SCENARIO")
      ->default_str(absl::StrCat(kGpuScenario, ", --cpu: ", kCpuScenario));
  app->option_defaults()->group("Plan");
  AddSwitch(app, "--plan",
            "print which schedules fit on a GPU, one rank at a time and on "
            "partitions, with the options of each; executes nothing",
            &flags->plan);
  AddOption(app, "--memory", "BYTES",
            "with --plan: memory of the GPU, as in 80GiB", ParseBytes,
            &flags->memory_bytes)
      ->default_str("this machine's");
  AddCount(app, "--multiprocessors",
           "with --plan: number of the GPU's multiprocessors",
           &flags->num_multiprocessors)
      ->default_str("this machine's");
  app->option_defaults()->group("Replay");
  AddSwitch(app, "--cpu", "run on the CPU, in double precision", &flags->cpu);
  AddSwitch(app, "--serial",
            "run one rank at a time, with logical clocks [GPU: on; "
            "--cpu: off, a thread for each rank]",
            &flags->serial);
  AddCount(app, "--partitions",
           "number of GPU partitions that run concurrently",
           &flags->num_partitions);
  AddCount(app, "--steps", "number of batches, for schedules with a flush",
           &flags->num_steps)
      ->default_str(absl::StrCat(flags->num_steps));
  AddCount(app, "--seed", "random seed of weights and data", &flags->seed)
      ->default_str(absl::StrCat(flags->seed));
  AddOption(app, "--learning-rate", "RATE", "learning rate of the optimizer",
            ParsePositive, &flags->learning_rate)
      ->default_str("adam 0.0001, sgd 0.05");
  AddSwitch(app, "--no-check", "do not check the training result",
            [flags](bool on) { flags->check = !on; });
  AddOption(app, "--device", "N", "CUDA device number", ParseDevice,
            &flags->device)
      ->default_str(absl::StrCat(flags->device));
  AddSeconds(app, "--timeout",
             "time limit for any wait; then the waiting ranks are reported",
             &flags->timeout_seconds)
      ->default_str(absl::StrCat(flags->timeout_seconds));
}

}  // namespace weir::cli
