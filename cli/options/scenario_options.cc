// SPDX-License-Identifier: Apache-2.0
#include "cli/options/scenario_options.h"

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/values.h"
#include "cli/options/adapter_options.h"
#include "cli/options/add_option.h"
#include "cli/options/cluster_options.h"
#include "cli/options/communication_options.h"
#include "cli/options/flags.h"
#include "cli/options/layer_options.h"
#include "cli/options/memory_options.h"
#include "cli/options/optimizer_options.h"
#include "cli/options/pipeline_options.h"
#include "cli/options/placement_options.h"
#include "scenarios/scenario.pb.h"

namespace weir::cli {
namespace {

// Parses a number of MTP modules.
absl::StatusOr<uint32_t> ParseMtpModules(absl::string_view text) {
  if (text == "0") return 0;
  return ParseCount(text);
}

void AddModel(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  AddText(app, "--model", "M",
          "preset, or file: Hugging Face config.json, textproto or PipeDream "
          "profile graph",
          scenario->mutable_model())
      ->group("Model");
  AddOption(
      app, "--mtp-num-layers", "N",
      "modules of multi-token prediction; 0 leaves out those of the "
      "model",
      ParseMtpModules,
      [=](uint32_t n) { scenario->mutable_training()->set_mtp_num_layers(n); })
      ->group("Model")
      ->default_str("the model's");
}

}  // namespace

void AddScenario(CLI::App* app, bool several, ScenarioFlags* flags) {
  AddModel(app, flags);
  AddCluster(app, flags);
  AddPipeline(app, "1", flags);
  AddPlacement(app, flags);
  AddSchedule(app, several, flags);
  AddCommunication(app, flags);
  AddOverlaps(app, &flags->overrides);
  AddLayerWork(app, flags);
  AddOptimizer(app, flags);
  AddOffload(app, &flags->overrides);
}

void AddGivenScenario(CLI::App* app, ScenarioFlags* flags) {
  AddModel(app, flags);
  AddCluster(app, flags);
  AddCommunication(app, flags);
  AddGivenLayerWork(app, flags);
  AddOptimizer(app, flags);
}

std::vector<results::RunSetting> ScenarioSettings(ScenarioFlags* flags) {
  const auto app = std::make_shared<CLI::App>();
  app->set_help_flag();
  AddScenario(app.get(), /*several=*/false, flags);
  std::vector<results::RunSetting> settings;
  for (CLI::Option* option : app->get_options()) {
    results::RunSetting& setting = settings.emplace_back();
    for (const std::string& name : option->get_lnames()) {
      setting.columns.push_back(absl::StrReplaceAll(name, {{"-", "_"}}));
    }
    setting.set = [app, option](const std::string& text) {
      return SetOption(option, text);
    };
  }
  return settings;
}

}  // namespace weir::cli
