// SPDX-License-Identifier: Apache-2.0
// "profile" and "init".
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "calibrate/fit/new_device.h"
#include "cli/options/add_option.h"
#include "cli/options/program.h"
#include "cli/options/shared_options.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {
namespace {

// Adds the options of a device that weir does not know.
void AddNewDevice(CLI::App* app, calibrate::NewDevice* device) {
  app->option_defaults()->group("New device");
  AddText(app, "--device", "NAME",
          "create a profile of a device that weir does not know. What is not "
          "measured is assumed from --profile, with a spread of 20 %",
          &device->name);
  AddOption(app, "--peak", "FORMAT=FLOPS,...",
            "dense peak rates: bf16=989e12,fp32=67e12", calibrate::ParsePeaks,
            &device->peaks);
  AddOption(app, "--bandwidth", "BYTES",
            "peak memory bandwidth in bytes per second: 3.35e12", ParseBytes,
            &device->memory_bytes_per_second);
  AddOption(app, "--memory", "BYTES", "usable memory: 79GiB", ParseBytes,
            &device->memory_bytes);
  AddOption(app, "--multiprocessors", "N", "multiprocessors, or compute units",
            ParsePositive, &device->num_multiprocessors);
  AddOption(app, "--links", "BYTES",
            "rate of all links between GPUs of a node, bytes per second in one "
            "direction; otherwise that of --profile",
            ParseBytes, &device->link_bytes_per_second);
}

}  // namespace

void AddProfileCommands(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  CLI::App* group = AddCommand(
      app, "profile", "Lists, shows, compares and fits device profiles.");
  AddListCommand(group, "Lists the device profiles.", RunProfileList, line);

  CLI::App* show = AddWeirCommand(
      group, "show",
      "Shows the parameters and measurements of a device profile.",
      {"profile show h100-sxm", "profile show my.textproto --format json"},
      RunProfileShow, line);
  AddName(show, "PROFILE", "preset or file", &flags->name);
  AddInputFormat(show, &flags->output);

  CLI::App* diff =
      AddWeirCommand(group, "diff", "Compares two device profiles.",
                     {"profile diff h100-sxm h200-sxm",
                      "profile diff h100-sxm my.textproto --tolerance 0.02"},
                     RunProfileDiff, line);
  AddName(diff, "PROFILE", "preset or file", &flags->name);
  AddName(diff, "OTHER", "preset or file to compare it with",
          &flags->profile.other);
  AddTolerance(
      diff, "Output",
      "exit with 1 if a parameter or a kernel time differs by more (0.02: 2 %)",
      &flags->profile.tolerance);
  AddFormat(diff, /*csv=*/false, &flags->output);

  CLI::App* import = AddWeirCommand(
      group, "import", "Fits a device profile to measurements.",
      {"profile import gemm.csv --profile h100-sxm --out my.textproto",
       "profile import gemm.csv --also attention.csv --device X1 --peak "
       "bf16=500e12 "
       "--bandwidth 4e12 --memory 96GiB --multiprocessors 120 --profile "
       "h100-sxm --out my.textproto"},
      RunProfileImport, line);
  AddName(import, "FILE",
          "measurements: a CSV of GEMMs (columns m, n, k, latency_ms), of "
          "attention or of memory-bound kernels (docs/measured-profiles.md), "
          "or output of nccl-tests",
          &flags->name);
  import->option_defaults()->group("Profile");
  AddText(import, "--profile", "P",
          "device profile to start from: preset or file", &flags->profile.start)
      ->required();
  AddOption(
      import, "--also", "FILE,...",
      "further measurements, imported after FILE. May be repeated",
      [](const std::string& text) -> absl::StatusOr<std::vector<std::string>> {
        return std::vector<std::string>(absl::StrSplit(text, ','));
      },
      &flags->profile.also)
      ->join(',');
  AddNewDevice(import, &flags->profile.device);
  AddText(import, "--source", "TEXT", "source of the measurements",
          &flags->profile.source)
      ->default_str("the file's name");
  AddText(import, "--out", "FILE", "write the fitted profile (textproto)",
          &flags->profile.out)
      ->required()
      ->group("Output");
  AddForce(import, &flags->output.force);
}

void AddInitCommand(CLI::App* app, CommandLine* line) {
  InitFlags* init = &line->flags.init;
  CLI::App* command = AddWeirCommand(
      app, "init",
      "Asks five questions and writes model, cluster and scenario files.",
      {"init",
       "init --model gpt2-xl --cluster dgx-a100 --gpus 8 --seq 1024 "
       "--gbs 64 --out my-run"},
      RunInit, line);
  command->option_defaults()->group("Answers (else asked on a terminal)");
  AddText(command, "--model", "M", "preset, or path of a config.json",
          &init->model)
      ->default_str("llama-3-70b");
  AddText(command, "--cluster", "C", "preset or file", &init->cluster)
      ->default_str("dgx-h100");
  AddText(command, "--gpus", "N", "number of GPUs", &init->num_gpus)
      ->default_str("64");
  AddText(command, "--seq", "N", "sequence length, in tokens",
          &init->sequence_length)
      ->default_str("the model's");
  AddText(command, "--gbs", "N", "global batch size, in sequences",
          &init->batch_size)
      ->default_str("about 1 Mi tokens");
  AddText(command, "--out", "FOLDER", "write the files to this folder",
          &init->folder)
      ->group("Output")
      ->default_str(init->folder);
  AddForce(command, &line->flags.output.force);
}

}  // namespace weir::cli
