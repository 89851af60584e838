// SPDX-License-Identifier: Apache-2.0
#include "cli/options/communication_options.h"

#include "base/values.h"
#include "cli/options/adapter_options.h"
#include "cli/options/add_option.h"
#include "cli/options/flags.h"
#include "scenarios/scenario.pb.h"

namespace weir::cli {

void AddCommunication(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  const auto set_reduction = [=](ReductionMode mode) {
    scenario->mutable_communication()->set_gradient_reduction(mode);
  };
  app->option_defaults()->group("Schedule");
  AddChoice<TransferMode>(
      app, "--transfers",
      "whether a rank computes while it sends (overlapped) or waits (blocking)",
      {{"overlapped", OVERLAPPED}, {"blocking", BLOCKING}},
      [=](TransferMode mode) {
        scenario->mutable_communication()->set_transfers(mode);
      })
      ->default_str("overlapped");
  AddChoice<ReductionMode>(
      app, "--gradient-reduction",
      "whether gradients are reduced during the backward (overlapped) or after "
      "it (blocking)",
      {{"blocking", REDUCTION_BLOCKING}, {"overlapped", REDUCTION_OVERLAPPED}},
      set_reduction)
      ->default_str("by --defaults");
  AddSwitch(app, "--overlap-grad-reduce", "--gradient-reduction overlapped",
            [=](bool on) {
              set_reduction(on ? REDUCTION_OVERLAPPED : REDUCTION_BLOCKING);
            });
  AddOption(app, "--bucket-bytes", "BYTES",
            "bucket size of overlapped gradient reductions, as in 100MiB",
            ParseBytes,
            [=](double bytes) {
              scenario->mutable_communication()->set_bucket_bytes(bytes);
            })
      ->default_str("25 MiB");
  AddTokenDispatcher(app, flags);
  app->option_defaults()->group("Schedule");
  AddOption(
      app, "--stash-bytes-per-parameter", "BYTES",
      "bytes per parameter of a stashed weight version", ParsePositive,
      [=](double bytes) {
        scenario->mutable_training()->set_stash_bytes_per_parameter(bytes);
      })
      ->default_str("4");
}

}  // namespace weir::cli
