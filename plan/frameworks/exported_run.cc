// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/exported_run.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/frameworks/absolute_path.h"
#include "plan/frameworks/megatron_arguments.h"
#include "plan/frameworks/option_table.h"

namespace weir::plan {
namespace {

struct Description {
  const char* name;
  const char* table;
  const char* title;
  const char* suffix;
  const char* option;
  const char* runtime;  // that the reader assumes
};

const Description& Of(Framework framework) {
  static constexpr Description kMegatron = {"megatron",        "megatron-lm",
                                            "Megatron-LM",     ".args",
                                            "--megatron-args", "megatron-lm"};
  static constexpr Description kTorchtitan = {"torchtitan",   "torchtitan",
                                              "torchtitan",   ".toml",
                                              "--torchtitan", "torchtitan"};
  static constexpr Description kNemo = {"nemo",  "nemo",   "Megatron-Bridge",
                                        ".yaml", "--nemo", "nemo"};
  switch (framework) {
    case Framework::kTorchtitan:
      return kTorchtitan;
    case Framework::kNemo:
      return kNemo;
    default:
      return kMegatron;
  }
}

// The readers name a runtime by the framework; torchtitan's by compilation.
std::string RuntimeRead(Framework framework,
                        const scenarios::ResolvedScenario& run) {
  if (framework == Framework::kTorchtitan &&
      run.runtime.name() == "torchtitan-compile") {
    return "torchtitan-compile";
  }
  return Of(framework).runtime;
}

std::string Quoted(const std::string& word) {
  return word.find_first_of(" '\"$*;|&()<>") == std::string::npos
             ? word
             : absl::StrCat("'", word, "'");
}

std::string FileHead(Framework framework,
                     const scenarios::ResolvedScenario& run,
                     const std::string& file) {
  const OptionTable& table = OptionTable::Of(Of(framework).table);
  std::string head;
  if (framework == Framework::kTorchtitan) {
    absl::StrAppend(&head, "# Job of torchtitan: CONFIG_FILE=", file,
                    " ./run_train.sh\n# Add model.hf_assets_path and "
                    "training.dataset for your data.\n");
  } else if (framework == Framework::kNemo) {
    absl::StrAppend(
        &head,
        "# Overrides for Megatron-Bridge's vanilla_gpt_pretrain_config, whose\n"
        "# tokenizer and data are replacements: --config-file ",
        file, " of a\n# pretraining script.\n");
  }
  absl::StrAppend(&head, "# Checked against the options of ",
                  table.table().framework(), " ", table.table().version(),
                  ".\n# Read it back: weir simulate ", Of(framework).option,
                  " ", file);
  for (const std::string& word : ReadBackOptions(framework, run)) {
    absl::StrAppend(&head, " ", Quoted(word));
  }
  return absl::StrCat(head, "\n");
}

}  // namespace

const std::vector<std::string>& FrameworkNames() {
  static const auto& names =
      *new std::vector<std::string>{"megatron", "torchtitan", "nemo"};
  return names;
}

absl::StatusOr<Framework> FindFramework(absl::string_view name) {
  for (const Framework one :
       {Framework::kMegatron, Framework::kTorchtitan, Framework::kNemo}) {
    if (name == Of(one).name) return one;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", name, ", expected ", absl::StrJoin(FrameworkNames(), ", ")));
}

Framework FrameworkOfRuntime(absl::string_view runtime) {
  if (absl::StartsWith(runtime, "torchtitan")) return Framework::kTorchtitan;
  if (absl::StartsWith(runtime, "nemo")) return Framework::kNemo;
  return Framework::kMegatron;
}

std::string SuffixOf(Framework framework) { return Of(framework).suffix; }

std::vector<std::string> ObstaclesOf(Framework framework,
                                     const scenarios::ResolvedScenario& run) {
  switch (framework) {
    case Framework::kTorchtitan:
      return TorchtitanObstacles(run);
    case Framework::kNemo:
      return NemoObstacles(run);
    default:
      return MegatronObstacles(run);
  }
}

std::vector<std::string> ReadBackOptions(
    Framework framework, const scenarios::ResolvedScenario& run) {
  const Scenario& scenario = run.scenario;
  std::vector<std::string> options = {"--cluster",
                                      AbsoluteIfFile(scenario.cluster())};
  const auto add = [&](absl::string_view name, std::string value) {
    options.emplace_back(name);
    options.push_back(std::move(value));
  };
  if (scenario.num_nodes() > 0) {
    add("--nodes", absl::StrCat(scenario.num_nodes()));
  }
  // Frameworks use all GPUs.
  add("--dp", absl::StrCat(scenario.parallelism().data()));
  if (scenario.training().expert_imbalance() > 1) {
    add("--expert-imbalance",
        absl::StrCat(scenario.training().expert_imbalance()));
  }
  if (!scenario.profile().empty()) {
    add("--profile", AbsoluteIfFile(scenario.profile()));
  }
  if (scenario.runtime() != RuntimeRead(framework, run)) {
    add("--runtime", AbsoluteIfFile(scenario.runtime()));
  }
  std::vector<std::string> figures(scenario.set_figures().begin(),
                                   scenario.set_figures().end());
  if (framework != Framework::kTorchtitan) {
    const bool interleaved = scenario.parallelism().chunks() > 1;
    if (scenario.parallelism().pipeline() > 1 && !interleaved &&
        scenario.communication().transfers() == OVERLAPPED) {
      add("--transfers", "overlapped");
    }
    // Megatron-LM overlaps the gather only together with the reduction.
    if (scenario.training().distributed_optimizer() &&
        run.runtime.overlaps_step_gather() &&
        scenario.communication().gradient_reduction() != REDUCTION_OVERLAPPED) {
      figures.emplace_back("runtime.overlaps_step_gather=true");
    }
  }
  if (!figures.empty()) add("--set", absl::StrJoin(figures, ","));
  return options;
}

absl::StatusOr<ExportedRun> ExportRun(Framework framework,
                                      const scenarios::ResolvedScenario& run,
                                      const std::string& stem) {
  const std::vector<std::string> obstacles = ObstaclesOf(framework, run);
  if (!obstacles.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        Of(framework).title,
        " cannot run this plan: ", absl::StrJoin(obstacles, "; ")));
  }
  ExportedRun exported;
  exported.suffix = SuffixOf(framework);
  std::vector<Setting> settings;
  std::string body;
  switch (framework) {
    case Framework::kTorchtitan:
      exported.needs_csv = NeedsCsv(run);
      settings = TorchtitanSettingsOf(run, stem + ".csv");
      body = PrintTomlSettings(settings);
      break;
    case Framework::kNemo:
      settings = NemoSettingsOf(run);
      body = PrintYamlSettings(settings);
      break;
    default:
      settings = MegatronSettingsOf(run);
      body = MegatronArguments(run);
  }
  const std::vector<std::string> refusals =
      OptionTable::Of(Of(framework).table).Refusals(settings);
  if (!refusals.empty()) {
    return absl::InternalError(absl::StrCat(
        Of(framework).title, " would refuse ", absl::StrJoin(refusals, "; ")));
  }
  exported.contents =
      absl::StrCat(FileHead(framework, run, stem + exported.suffix), body);
  return exported;
}

}  // namespace weir::plan
