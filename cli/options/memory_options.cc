// SPDX-License-Identifier: Apache-2.0
#include "cli/options/memory_options.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/options/add_option.h"
#include "models/recompute.h"

namespace weir::cli {
namespace {

absl::StatusOr<std::vector<int>> ParseModules(const std::string& text) {
  const Choices choices = {{"core_attn", CORE_ATTN},
                           {"mlp", MLP},
                           {"moe", MOE},
                           {"layernorm", LAYERNORM},
                           {"moe_act", MOE_ACT},
                           {"mla_up_proj", MLA_UP_PROJ},
                           {"shared_experts", SHARED_EXPERTS}};
  return ParseChoices(text, choices);
}

absl::StatusOr<double> ParseFraction(const std::string& text) {
  double fraction = 0;
  if (!absl::SimpleAtod(text, &fraction) || !(fraction >= 0 && fraction <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", text, ", expected 0 to 1"));
  }
  return fraction;
}

}  // namespace

void AddRecomputation(CLI::App* app, Scenario* scenario) {
  AddOption(app, "--recompute-modules", "MODULE,...",
            "what selective recomputation repeats: core_attn, mlp, moe, "
            "layernorm, moe_act, mla_up_proj, shared_experts",
            ParseModules,
            [=](const std::vector<int>& modules) {
              scenario->mutable_training()->mutable_recompute_modules()->Assign(
                  modules.begin(), modules.end());
            })
      ->default_str("core_attn, if selective");
  AddChoice<RecomputeMethod>(
      app, "--recompute-method",
      "blocks of each stage that full recomputation repeats: all, in groups "
      "that save one input; the first ones; or every n-th",
      {{"uniform", RECOMPUTE_UNIFORM},
       {"block", RECOMPUTE_BLOCK},
       {"every", RECOMPUTE_EVERY}},
      [=](RecomputeMethod method) {
        scenario->mutable_training()->set_recompute_method(method);
      })
      ->default_str("uniform, if full");
  AddCount(app, "--recompute-num-layers",
           "of --recompute-method: blocks in each group, recomputed blocks, or "
           "the n of every n-th",
           [=](uint32_t n) {
             scenario->mutable_training()->set_recompute_num_layers(n);
           })
      ->default_str("1, if full");
}

void AddOffload(CLI::App* app, Scenario* scenario) {
  app->option_defaults()->group("Training");
  AddCount(app, "--cpu-offloading-num-layers",
           "blocks of each stage whose saved activations are copied to the "
           "host and back",
           [=](uint32_t n) {
             scenario->mutable_training()->set_cpu_offloading_num_layers(n);
           })
      ->default_str("none");
  AddSwitch(app, "--optimizer-cpu-offload",
            "keep and update all optimizer states on the host", [=](bool on) {
              Training& training = *scenario->mutable_training();
              // The fraction may be given before.
              if (!on) training.set_optimizer_offload_fraction(0);
              if (on && training.optimizer_offload_fraction() == 0) {
                training.set_optimizer_offload_fraction(1);
              }
            });
  AddOption(
      app, "--optimizer-offload-fraction", "F",
      "keep and update this fraction of the optimizer states on the host (0 "
      "to 1)",
      ParseFraction,
      [=](double fraction) {
        scenario->mutable_training()->set_optimizer_offload_fraction(fraction);
      })
      ->default_str("0, or 1 with --optimizer-cpu-offload");
}

}  // namespace weir::cli
