// SPDX-License-Identifier: Apache-2.0
#include "cli/options/optimizer_options.h"

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/values.h"
#include "cli/options/adapter_options.h"
#include "cli/options/add_option.h"
#include "cli/options/flags.h"
#include "cli/options/precision_options.h"
#include "scenarios/scenario.pb.h"

namespace weir::cli {
namespace {

absl::StatusOr<double> ParseZeroOrPositive(absl::string_view text) {
  if (text == "0") return 0;
  return ParsePositive(text);
}

}  // namespace

void AddOptimizer(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Training");
  AddOption(
      app, "--gbs,--global-batch-size", "N",
      "sequences per batch, over all data-parallel ranks", ParseSize,
      [=](uint32_t n) { scenario->mutable_batch()->set_global_batch_size(n); });
  AddChoice<Optimizer>(
      app, "--optimizer",
      "optimizer (sgd: SGD with momentum; dist_muon: Muon whose "
      "data-parallel ranks share the matrices; docs/optimizers.md)",
      {{"adam", ADAM},
       {"sgd", SGD_MOMENTUM},
       {"muon", MUON},
       {"dist_muon", DIST_MUON}},
      [=](Optimizer optimizer) {
        scenario->mutable_training()->set_optimizer(optimizer);
      })
      ->default_str("adam");
  AddMuon(app, scenario);
  AddAdapters(app, scenario);
  AddGradientFormat(app, flags);
  AddSwitch(app, "--use-distributed-optimizer,--distributed-optimizer",
            "shard optimizer states across data-parallel ranks (ZeRO-1)",
            &flags->distributed_optimizer)
      ->default_str("by --defaults");
  AddSwitch(app, "--post-validation,!--no-post-validation",
            "optimizer steps without a barrier, validated later (schedules "
            "with a flush)",
            &flags->post_validation)
      ->default_str("with split backwards on zero-bubble");
  AddOption(app, "--rollback-fraction", "FRACTION",
            "fraction of post-validated steps that are rolled back (0 to 1)",
            ParseZeroOrPositive,
            [=](double fraction) {
              scenario->mutable_training()->set_rollback_fraction(fraction);
            })
      ->default_str("0");
  AddSwitch(app, "--fully-sharded",
            "shard weights, gradients and optimizer states across "
            "data-parallel ranks (FSDP, ZeRO-3)",
            &flags->fully_sharded);
}

}  // namespace weir::cli
