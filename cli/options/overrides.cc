// SPDX-License-Identifier: Apache-2.0
#include "cli/options/overrides.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "cli/options/adapter_options.h"
#include "cli/options/flag_terms.h"
#include "cli/options/imports.h"
#include "cli/options/precision_options.h"
#include "scenarios/chunks.h"
#include "scenarios/cluster/plausibility.h"
#include "scenarios/costs.h"
#include "scenarios/recomputation.h"
#include "scenarios/scenario.h"
#include "scenarios/sizes.h"
#include "scenarios/uneven_split.h"
#include "scenarios/unused_settings.h"
#include "schedules/options.h"
#include "schedules/registry.h"
#include "schedules/source.h"

namespace weir::cli {

absl::StatusOr<GivenCosts> ReadCosts(const std::string& costs) {
  return absl::StrContains(costs, '=') ? scenarios::ParseCosts(costs)
                                       : scenarios::LoadCosts(costs);
}

namespace {

absl::Status ApplyHop(const ScenarioFlags& flags, Scenario* scenario) {
  if (flags.hop.empty()) return absl::OkStatus();
  if (!scenario->has_costs()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--hop is ", EscapeLine(flags.hop),
        " without given costs, expected --costs, or --slow or --set for the "
        "links of a cluster"));
  }
  return scenarios::SetHop("--hop", flags.hop, scenario->mutable_costs());
}

absl::Status ApplyCosts(const ScenarioFlags& flags, Scenario* scenario) {
  if (flags.costs.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(*scenario->mutable_costs(), ReadCosts(flags.costs));
  // Given costs replace the inputs from which the file computes costs, but
  // not those of the same command line: the user must resolve that
  // contradiction.
  if (flags.overrides.model().empty()) scenario->clear_model();
  if (!flags.overrides.has_transformer()) scenario->clear_transformer();
  if (flags.overrides.cluster().empty()) {
    scenario->clear_cluster();
    if (flags.overrides.num_nodes() == 0) scenario->clear_num_nodes();
    if (flags.overrides.profile().empty()) scenario->clear_profile();
  }
  if (flags.overrides.batch().ByteSizeLong() == 0) scenario->clear_batch();
  // Lists and messages of both are merged already: those of the command line
  // replace those of the file, which describe its cluster.
  *scenario->mutable_slow() = flags.overrides.slow();
  *scenario->mutable_failed() = flags.overrides.failed();
  *scenario->mutable_background() = flags.overrides.background();
  *scenario->mutable_set_figures() = flags.overrides.set_figures();
  if (flags.overrides.has_cluster_changes()) {
    *scenario->mutable_cluster_changes() = flags.overrides.cluster_changes();
  } else {
    scenario->clear_cluster_changes();
  }
  return absl::OkStatus();
}

// The microbatches of a model follow from its batch: --microbatches sets the
// batch.
absl::Status ApplyMicrobatches(const Scenario& overrides, Scenario* scenario) {
  const uint32_t wanted = overrides.num_microbatches();
  if (scenario->has_costs() || wanted == 0) return absl::OkStatus();
  // The batch depends on the data-parallel size.
  RETURN_IF_ERROR(scenarios::FillSizes("command line", scenario));
  Problems problems("command line");
  if (overrides.batch().global_batch_size() != 0) {
    problems.Add("--microbatches", "cannot be combined with --gbs");
    return problems.ToStatus();
  }
  const double batch = 1.0 * wanted *
                       std::max(1u, scenario->batch().microbatch_size()) *
                       std::max(1u, scenario->parallelism().data());
  problems.CheckRange("--microbatches x --mbs x --dp", batch, 1,
                      std::numeric_limits<int32_t>::max());
  RETURN_IF_ERROR(problems.ToStatus());
  scenario->mutable_batch()->set_global_batch_size(
      static_cast<uint32_t>(batch));
  scenario->clear_num_microbatches();
  return absl::OkStatus();
}

}  // namespace

absl::Status Override(const ScenarioFlags& flags, Scenario* target) {
  RETURN_IF_ERROR(CheckFormats(flags.formats));
  RETURN_IF_ERROR(CheckTokenDispatcher(flags));
  Scenario& scenario = *target;
  const Scenario& overrides = flags.overrides;
  // Lists are replaced, not extended. An order and a list of GPUs replace each
  // other, and so do a model and given costs.
  auto* parallelism = scenario.mutable_parallelism();
  if (overrides.parallelism().gpus_size() > 0) parallelism->clear_order();
  if (overrides.parallelism().gpus_size() > 0 ||
      !overrides.parallelism().order().empty()) {
    parallelism->clear_gpus();
  }
  if (overrides.parallelism().num_gpus() > 0) scenario.clear_num_nodes();
  if (overrides.num_nodes() > 0 || overrides.parallelism().data() > 0) {
    parallelism->clear_num_gpus();
  }
  if (overrides.parallelism().hierarchical_context_size() > 0 ||
      overrides.parallelism().context_method() != CONTEXT_METHOD_UNSPECIFIED) {
    parallelism->clear_hierarchical_context();
  }
  const Training& training = overrides.training();
  if (training.recompute() != RECOMPUTE_UNSPECIFIED) {
    scenarios::SetRecompute(training.recompute(), scenario.mutable_training());
  }
  if (training.recompute_modules_size() > 0) {
    scenario.mutable_training()->clear_recompute_modules();
  }
  if (training.cuda_graph_scope_size() > 0) {
    scenario.mutable_training()->clear_cuda_graph_scope();
  }
  if (overrides.parallelism().blocks_per_stage_size() > 0 ||
      !overrides.parallelism().layout().empty()) {
    parallelism->clear_blocks_per_stage();
    parallelism->clear_layout();
    scenarios::ClearUnevenSplit(parallelism);
  }
  if (scenarios::SplitsUnevenly(overrides.parallelism())) {
    parallelism->clear_blocks_per_stage();
    parallelism->clear_layout();
  }
  if (overrides.batch().has_packed_sequences()) {
    scenario.mutable_batch()->clear_packed_sequences();
  }
  if (overrides.training().has_lora() &&
      overrides.training().lora().rank() == 0 &&
      overrides.training().lora().target_modules().empty()) {
    scenario.mutable_training()->clear_lora();
  }
  if (!overrides.model().empty() || overrides.has_transformer()) {
    scenario.clear_costs();
  }
  if (!overrides.model().empty()) scenario.clear_transformer();
  if (overrides.has_transformer()) scenario.clear_model();
  if (overrides.has_training()) {
    ReplacePrecision(overrides.training(), scenario.mutable_training());
  }
  scenario.MergeFrom(overrides);
  if (scenarios::SetsGroups(overrides)) scenarios::ClearReplicas(&scenario);
  if (flags.sequence_parallel) {
    parallelism->set_sequence_parallel(*flags.sequence_parallel);
  }
  // Set only if given: a field that exists counts as given.
  if (flags.flash_attention) {
    scenario.mutable_training()->set_flash_attention(*flags.flash_attention);
  }
  if (flags.dropout) {
    scenario.mutable_training()->set_dropout(*flags.dropout);
  }
  if (flags.fp32_gradients) {
    scenario.mutable_training()->set_fp32_gradients(*flags.fp32_gradients);
  }
  if (flags.distributed_optimizer) {
    scenario.mutable_training()->set_distributed_optimizer(
        *flags.distributed_optimizer);
  }
  if (flags.post_validation) {
    scenario.mutable_training()->set_post_validation(*flags.post_validation);
  }
  if (flags.fully_sharded) {
    scenario.mutable_training()->set_fully_sharded(*flags.fully_sharded);
  }
  RETURN_IF_ERROR(ApplyCosts(flags, &scenario));
  RETURN_IF_ERROR(ApplyHop(flags, &scenario));
  return ApplyMicrobatches(overrides, &scenario);
}

absl::StatusOr<ScenarioRequest> ApplyOverrides(const ScenarioFlags& flags) {
  ScenarioRequest request{"command line", {}};
  if (HasImports(flags.imports)) {
    ASSIGN_OR_RETURN(request, ReadImports(flags));
  } else if (!flags.scenario.empty()) {
    ASSIGN_OR_RETURN(request.scenario, scenarios::LoadScenario(flags.scenario));
    request.label = flags.scenario;
  }
  Scenario scenario = request.scenario;
  RETURN_IF_ERROR(Override(flags, &scenario));
  if (HasImports(flags.imports)) {
    RETURN_IF_ERROR(CheckImportedGpus(request, scenario));
  }
  const Parallelism& sizes = flags.overrides.parallelism();
  if (scenarios::SetsGroups(flags.overrides) && sizes.num_gpus() == 0 &&
      flags.overrides.num_nodes() == 0) {
    request.replaced_replicas = request.scenario.parallelism().data();
  }
  request.scenario = std::move(scenario);
  ReplaceImportedFigures(flags.overrides, &request);
  return request;
}

namespace {

// Removes chunks of a scenario file that the schedule of the command line does
// not have.
absl::Status DropChunks(const ScenarioFlags& flags, ScenarioRequest* request) {
  Scenario& scenario = request->scenario;
  const uint32_t before = scenario.parallelism().chunks();
  if (flags.schedules.empty() || flags.scenario.empty() || before <= 1 ||
      flags.overrides.parallelism().chunks() > 0 ||
      schedules::IsScheduleFile(scenario.schedule())) {
    return absl::OkStatus();
  }
  std::string name = scenario.schedule();
  ASSIGN_OR_RETURN(const int chunks, schedules::TakeChunks(&name));
  if (chunks > 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const schedules::ScheduleKind* kind,
                   schedules::FindScheduleKind(name));
  scenarios::SetLegalChunks(*kind, &scenario);
  const uint32_t after = scenario.parallelism().chunks();
  if (after != before) {
    request->notes.push_back(absl::StrCat(
        scenario.schedule(), " has ", after, after == 1 ? " stage" : " stages",
        " per rank, not the ", before, " of ", flags.scenario));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<scenarios::ResolvedScenario> ResolveRequest(
    const ScenarioFlags& flags, const ScenarioRequest& request) {
  auto resolved = scenarios::ResolveScenario(request.label, request.scenario);
  if (!resolved.ok()) return InFlagTerms(resolved.status(), flags);
  DropImportedWarnings(request.imports, &resolved->warnings);
  for (std::string& warning :
       scenarios::UnusedExpertSettings(resolved->scenario, resolved->model)) {
    resolved->warnings.push_back(std::move(warning));
  }
  for (std::string& warning : resolved->warnings) {
    warning = InFlagTerms(std::move(warning), flags);
  }
  resolved->warnings.insert(resolved->warnings.begin(), request.notes.begin(),
                            request.notes.end());
  const uint32_t replicas = resolved->scenario.parallelism().data();
  if (request.replaced_replicas > 0 && request.replaced_replicas != replicas) {
    resolved->warnings.push_back(
        absl::StrCat("the data-parallel size is ", replicas,
                     ", as the number of GPUs allows; the ",
                     request.replaced_replicas, " of ", request.label,
                     " is not used, because other sizes differ (--dp)"));
  }
  if (resolved->given_costs) return resolved;
  const std::string idle =
      scenarios::IdleWarning(resolved->scenario, resolved->cluster);
  if (!idle.empty()) resolved->warnings.push_back(idle);
  for (std::string& warning : scenarios::ImplausibleValues(
           resolved->scenario.cluster(), resolved->cluster)) {
    resolved->warnings.push_back(std::move(warning));
  }
  return resolved;
}

absl::Status CheckChunks(const ScenarioFlags& flags,
                         const std::string& schedule) {
  const uint32_t asked = flags.overrides.parallelism().chunks();
  if (asked == 0 || schedules::IsScheduleFile(schedule)) {
    return absl::OkStatus();
  }
  std::string name = schedule;
  ASSIGN_OR_RETURN(const int chunks, schedules::TakeChunks(&name));
  if (chunks == 0 || static_cast<uint32_t>(chunks) == asked) {
    return absl::OkStatus();
  }
  Problems problems("command line");
  problems.Add("--chunks",
               absl::StrCat("is ", asked, ", but --schedule ", schedule,
                            " says v=", chunks, "; expected only one of them"));
  return problems.ToStatus();
}

absl::StatusOr<ScenarioRequest> ApplyAllFlags(const ScenarioFlags& flags) {
  ASSIGN_OR_RETURN(ScenarioRequest request, ApplyOverrides(flags));
  if (flags.schedules.size() > 1) {
    Problems problems("command line");
    problems.Add(
        "--schedule",
        "lists several schedules, expected one (weir compare takes several)");
    return problems.ToStatus();
  }
  if (!flags.schedules.empty()) {
    RETURN_IF_ERROR(CheckChunks(flags, flags.schedules[0]));
    request.scenario.set_schedule(flags.schedules[0]);
  }
  RETURN_IF_ERROR(InFlagTerms(DropChunks(flags, &request), flags));
  return request;
}

absl::StatusOr<scenarios::ResolvedScenario> ResolveFlags(
    const ScenarioFlags& flags, const OutputFlags* output) {
  ASSIGN_OR_RETURN(const ScenarioRequest request, ApplyAllFlags(flags));
  if (output != nullptr) PrintImports(request, *output);
  return ResolveRequest(flags, request);
}

}  // namespace weir::cli
