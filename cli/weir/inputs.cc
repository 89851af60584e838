// SPDX-License-Identifier: Apache-2.0
// Shows the inputs of simulations: models, clusters, scenarios.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/assets.h"
#include "base/json_text.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "cli/options/flag_terms.h"
#include "cli/options/imports.h"
#include "cli/options/messages.h"
#include "cli/options/overrides.h"
#include "cli/options/precision_options.h"
#include "cli/weir/commands.h"
#include "cli/weir/commented_textproto.h"
#include "models/block_spec.h"
#include "models/context_parallel.h"
#include "models/describe.h"
#include "models/expert_load.h"
#include "models/model.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/cluster_changes.h"
#include "scenarios/cluster/describe_cluster.h"
#include "scenarios/cluster/plausibility.h"
#include "scenarios/default_set.h"
#include "scenarios/packed_sequences.h"
#include "scenarios/recomputation.h"
#include "scenarios/scenario.h"

namespace weir::cli {
namespace {

int Print(const absl::StatusOr<std::string>& text, const OutputFlags& output) {
  if (!text.ok()) return PrintError(text.status(), output);
  const absl::Status printed = PrintResult(*text);
  return printed.ok() ? kExitOk : PrintError(printed, output);
}

int PrintAssets(absl::string_view folder, const OutputFlags& output) {
  return Print(absl::StrCat(absl::StrJoin(ListAssets(folder), "\n"), "\n"),
               output);
}

absl::StatusOr<models::WorkSpec> WorkOf(const Flags& flags,
                                        const Model& model) {
  RETURN_IF_ERROR(CheckFormats(flags.scenario.formats));
  const Scenario& scenario = flags.scenario.overrides;
  const auto or_else = [](uint32_t value, uint32_t fallback) {
    return static_cast<int>(value == 0 ? fallback : value);
  };
  models::WorkSpec spec;
  spec.microbatch_size = or_else(scenario.batch().microbatch_size(), 1);
  spec.sequence_length =
      or_else(scenario.batch().sequence_length(),
              std::max(1u, models::DefaultSequenceLength(model)));
  spec.tensor_parallel = or_else(scenario.parallelism().tensor(), 1);
  spec.expert_parallel = or_else(scenario.parallelism().expert(), 1);
  const Parallelism& parallelism = scenario.parallelism();
  spec.expert_tensor_parallel = static_cast<int>(parallelism.expert_tensor());
  spec.expert_load = models::ExpertLoad(model.transformer(),
                                        scenario.training().expert_imbalance(),
                                        spec.expert_parallel);
  spec.context = models::ContextSpecOf(
      parallelism.context_method(), or_else(parallelism.context(), 1),
      {parallelism.hierarchical_context().begin(),
       parallelism.hierarchical_context().end()});
  const bool shares_sequences = spec.context.size() > 1;
  ASSIGN_OR_RETURN(const DefaultSet defaults,
                   scenarios::DefaultSetOf(scenario, model));
  spec.sequence_parallel = flags.scenario.sequence_parallel.value_or(
      defaults.sequence_parallel() && spec.tensor_parallel > 1 &&
      spec.sequence_length % (spec.tensor_parallel * spec.context.size()) == 0);
  spec.flash_attention = flags.scenario.flash_attention.value_or(
      defaults.flash_attention() || shares_sequences);
  spec.dropout = flags.scenario.dropout.value_or(false);
  spec.recompute = scenario.training().recompute() == RECOMPUTE_UNSPECIFIED
                       ? defaults.recompute()
                       : scenarios::RecomputeOf(scenario.training());
  const Precision precision =
      scenario.training().precision() == PRECISION_UNSPECIFIED
          ? defaults.precision()
          : scenario.training().precision();
  spec.bytes_per_element = precision == FP32 ? 4 : 2;

  Problems problems("command line");
  scenarios::CheckSequenceLengths(problems, scenario.batch());
  if (scenario.batch().has_packed_sequences() && problems.empty()) {
    if (!spec.flash_attention) {
      problems.Add("--packed-sequences",
                   "is given, expected --flash-attention: unfused attention "
                   "takes one document per sequence");
    }
    const auto moment = [&](int power) {
      return scenarios::LengthMoment(scenario.batch().packed_sequences(), power,
                                     spec.sequence_length);
    };
    spec.documents.length = moment(2) / moment(1);
  }
  if (model.has_transformer() &&
      model.transformer().num_heads() % spec.tensor_parallel != 0) {
    problems.Add("--tp", absl::StrCat("is ", spec.tensor_parallel,
                                      ", expected a divisor of the ",
                                      model.transformer().num_heads(),
                                      " attention heads"));
  }
  if (model.has_measured() && spec.tensor_parallel != 1) {
    problems.Add(
        "--tp",
        "is above 1, expected 1: the layers of this model were measured whole");
  }
  RETURN_IF_ERROR(problems.ToStatus());
  if (spec.expert_parallel > 1 || shares_sequences ||
      model.transformer().num_experts() > 0 ||
      !models::SpecialFields(model.transformer()).empty()) {
    RETURN_IF_ERROR(models::ValidateWorkSpec("command line", model, spec));
  }
  return spec;
}

absl::StatusOr<std::string> ViewModel(const Flags& flags) {
  ASSIGN_OR_RETURN(const Model model, models::LoadModel(flags.name));
  if (flags.output.textproto) return CommentedTextProto(model);
  ASSIGN_OR_RETURN(const models::WorkSpec spec, WorkOf(flags, model));
  return flags.output.format == OutputFlags::Format::kJson
             ? models::ModelJson(model, spec)
             : models::DescribeModel(model, spec);
}

absl::StatusOr<std::string> ViewCluster(const Flags& flags) {
  ASSIGN_OR_RETURN(
      const Cluster cluster,
      scenarios::LoadCluster(
          flags.name, static_cast<int>(flags.scenario.overrides.num_nodes()),
          flags.scenario.overrides.cluster_changes()));
  RETURN_IF_ERROR(scenarios::CheckEffectOfChanges(
      flags.name, flags.scenario.overrides.cluster_changes(), cluster));
  for (const std::string& warning :
       scenarios::ImplausibleValues(flags.name, cluster)) {
    PrintWarning(warning, flags.output);
  }
  if (flags.output.textproto) return CommentedTextProto(cluster);
  return flags.output.format == OutputFlags::Format::kJson
             ? DumpJson(scenarios::ClusterJson(cluster), 2)
             : scenarios::DescribeCluster(cluster);
}

absl::StatusOr<std::string> ViewScenario(const Flags& flags) {
  const Scenario& overrides = flags.scenario.overrides;
  if (flags.scenario.scenario.empty() && !HasImports(flags.scenario.imports) &&
      overrides.model().empty() && flags.scenario.costs.empty()) {
    return absl::InvalidArgumentError(
        "weir scenario show: SCENARIO is missing, or a file of a framework, or "
        "--model");
  }
  ASSIGN_OR_RETURN(ScenarioRequest request, ApplyAllFlags(flags.scenario));
  const Scenario& given = request.scenario;
  // Without model or cluster, an imported run is shown as it was read.
  const bool is_complete =
      given.has_costs() ||
      (!given.cluster().empty() &&
       (!given.model().empty() || given.has_transformer()));
  if (request.imports.empty() || is_complete) {
    ASSIGN_OR_RETURN(scenarios::ResolvedScenario resolved,
                     ResolveRequest(flags.scenario, request));
    request.scenario = std::move(resolved.scenario);
  }
  for (const std::string& note : request.notes) {
    PrintWarning(note, flags.output);
  }
  const std::string text = CommentedTextProto(request.scenario);
  if (flags.output.format == OutputFlags::Format::kJson) {
    nlohmann::ordered_json json;
    json["scenario"] = text;
    json["imports"] = nlohmann::ordered_json::array();
    for (const plan::ImportReport& report : request.imports) {
      json["imports"].push_back(plan::JsonOf(report));
    }
    return DumpJson(json, 2) + "\n";
  }
  std::string comments;
  for (const plan::ImportReport& report : request.imports) {
    for (const std::string& line : plan::LinesOf(report)) {
      absl::StrAppend(&comments, "# ", EscapeLine(line), "\n");
    }
  }
  return comments + text;
}

}  // namespace

int RunModelList(const Flags& flags) {
  return PrintAssets("models/presets", flags.output);
}

int RunModelShow(const Flags& flags) {
  return Print(ViewModel(flags), flags.output);
}

int RunClusterList(const Flags& flags) {
  return PrintAssets("scenarios/cluster/presets", flags.output);
}

int RunClusterShow(const Flags& flags) {
  absl::StatusOr<std::string> view = ViewCluster(flags);
  if (!view.ok()) view = InFlagTerms(view.status(), flags.scenario);
  return Print(view, flags.output);
}

int RunScenarioList(const Flags& flags) {
  return PrintAssets("scenarios/presets", flags.output);
}

int RunScenarioShow(const Flags& flags) {
  return Print(ViewScenario(flags), flags.output);
}

}  // namespace weir::cli
