// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/planner_request.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "plan/papers/run_planner.h"
#include "scenarios/recomputation.h"

namespace weir::plan {
namespace {

constexpr double kPublishedMemoryBytes = 16e9;  // default of the published code

// Returns the value of an option: planners take one value, the search a list.
template <typename Values>
uint32_t OneOf(absl::string_view option, const Values& values,
               Problems* problems) {
  if (values.size() > 1) {
    problems->Add(option,
                  absl::StrCat("has ", values.size(),
                               " values, expected one with --algorithm"));
  }
  return values.empty() ? 0 : values[0];
}

}  // namespace

void RefuseSearchOptions(const PlanRequest& request, bool synchronous,
                         bool explain, Problems* problems) {
  const PlanSpace& space = request.space();
  const auto search_only = [&](absl::string_view option, bool is_given) {
    if (is_given) {
      problems->Add(option,
                    "is given with --algorithm, which does not take it");
    }
  };
  search_only("--pp", !space.pipeline().empty());
  search_only("--dp", !space.data().empty());
  search_only("--ep", !space.expert().empty());
  search_only("--etp", !space.expert_tensor().empty());
  search_only("--data-replicate", !space.data_replicate().empty());
  search_only("--cp", !space.context().empty());
  search_only("--chunks", !space.chunks().empty());
  search_only("--schedule", !space.schedules().empty() || space.any_runtime());
  search_only("--order", !space.orders().empty());
  search_only("--sharding", !space.sharding().empty());
  search_only("--even-layers", space.even_layers_only());
  search_only("--asynchronous", space.asynchronous());
  search_only("--memory-margin", request.has_memory_margin());
  search_only("--synchronous", synchronous);
  search_only("--objective", request.objective() != 0);
  search_only("--price-per-gpu-hour", request.price_per_gpu_hour() > 0);
  search_only("--energy", !request.power_model().empty());
  search_only("--node-power-cap", request.node_power_cap_watts() > 0);
  search_only("--rack-power-cap", request.rack_power_cap_watts() > 0);
  search_only("--nodes-per-rack", request.nodes_per_rack() > 0);
  search_only("--plans", request.num_plans() > 0);
  search_only("--tokens", request.tokens() > 0);
  search_only("--gap", request.gap() > 0);
  search_only("--explain", explain);
}

void RefuseGraphOptions(const PipeDreamOptions& options, Problems* problems) {
  const auto refuse = [&](absl::string_view option, bool is_given) {
    if (is_given) problems->Add(option, "is given without --graph");
  };
  refuse("--machines", !options.num_machines.empty());
  refuse("--bandwidth", !options.bytes_per_second.empty());
  refuse("--straight", options.straight);
  refuse("--fewer-machines", options.fewer_machines);
  refuse("--use-memory-constraint", options.published_memory);
  refuse("--paper-formula", options.paper_formula);
  refuse("--activation-compression-ratio",
         options.activation_compression_ratio.has_value());
}

void CheckGraphRequest(absl::string_view planner,
                       const PipeDreamOptions& options, Problems* problems) {
  if (planner != kGraphPlanner) {
    problems->Add("--algorithm",
                  absl::StrCat("is ", planner.empty() ? "missing" : planner,
                               ", expected ", kGraphPlanner, " with --graph"));
  }
  if (options.num_machines.empty()) {
    problems->Add("--machines",
                  "is missing, expected one number for each "
                  "level, as in 4,4");
  }
  if (options.bytes_per_second.empty()) {
    problems->Add("--bandwidth",
                  "is missing, expected bytes per second for "
                  "each level, as in 1e9,2e8");
  }
}

void SetGraphMemoryLimit(double memory_limit_bytes, PipeDreamOptions* options) {
  if (memory_limit_bytes > 0) {
    options->memory_limit_bytes = memory_limit_bytes;
  } else if (options->published_memory) {
    options->memory_limit_bytes = kPublishedMemoryBytes;
  }
}

std::vector<std::string> GraphPlanWarnings(const AntichainDag& dag,
                                           const PipeDreamOptions& options,
                                           const PipeDreamPlan& plan) {
  std::vector<std::string> warnings;
  if (plan.num_cut_states < plan.num_states) {
    warnings.push_back(absl::StrCat(
        "interrupted: the best plan so far considers cuts at ",
        plan.num_cut_states, " of ", plan.num_states, " antichains only"));
  }
  if (const size_t num_nodes = dag.unreached_nodes.size(); num_nodes > 0) {
    warnings.push_back(absl::StrCat(
        "nodes in no stage, as no edges connect them to the first source: ",
        dag.node_names[dag.unreached_nodes[0]],
        num_nodes > 1 ? absl::StrCat(" and ", num_nodes - 1, " more") : ""));
  }
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const double bytes = BytesOfMinibatch(dag, plan.stages[s]);
    if (bytes <= options.memory_limit_bytes.value_or(bytes)) continue;
    warnings.push_back(
        absl::StrCat("stage ", s, " needs ", FormatBytes(bytes),
                     " for one minibatch, more than --memory-limit, which "
                     "--use-memory-constraint does not check for stages "
                     "without a later machine"));
  }
  return warnings;
}

absl::StatusOr<scenarios::ResolvedScenario> GivenByRequest(
    absl::string_view label, const Scenario& scenario,
    const PlanRequest& request) {
  const PlanSpace& space = request.space();
  Problems problems(label);
  Scenario given = scenario;
  if (const uint32_t tensor = OneOf("--tp", space.tensor(), &problems)) {
    given.mutable_parallelism()->set_tensor(tensor);
  }
  if (const uint32_t size =
          OneOf("--mbs", space.microbatch_size(), &problems)) {
    given.mutable_batch()->set_microbatch_size(size);
  }
  if (const uint32_t mode =
          OneOf("--recompute", space.recompute(), &problems)) {
    scenarios::SetRecompute(static_cast<RecomputeMode>(mode),
                            given.mutable_training());
  }
  if (!space.partial_recompute().empty() ||
      scenarios::RecomputeOf(given.training()).by_stage()) {
    problems.Add("--recompute",
                 "is of some layers or modules, expected none, selective, "
                 "operators or full: planners of papers choose among these");
  }
  if (given.parallelism().context() > 1) {
    problems.Add("parallelism.context",
                 absl::StrCat("is ", given.parallelism().context(),
                              ", expected 1: planners of papers do not divide "
                              "sequences"));
  }
  const int num_gpus =
      static_cast<int>(OneOf("--gpus", space.gpus(), &problems));
  RETURN_IF_ERROR(problems.ToStatus());
  if (given.batch().microbatch_size() == 0) {
    given.mutable_batch()->set_microbatch_size(1);
  }
  return GivenForPlanners(label, given, num_gpus, request.memory_limit_bytes());
}

absl::Status NothingFits(const PaperPlanner& planner, absl::string_view label,
                         const Scenario& scenario, const PlanRequest& request,
                         const absl::Status& why) {
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario given,
                   GivenByRequest(label, scenario, request));
  const double bytes = EnoughMemoryBytes(planner, given);
  if (bytes == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        why.message(), "; no amount of memory suffices: change the sizes"));
  }
  PlanRequest without_limit = request;
  without_limit.clear_memory_limit_bytes();
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario unlimited,
                   GivenByRequest(label, scenario, without_limit));
  const double device = MostMemoryBytes(unlimited);
  return absl::FailedPreconditionError(absl::StrCat(
      given.label, ": ", planner.name, ": nothing fits ",
      FormatBytes(MostMemoryBytes(given)), ": the smallest plan found needs ",
      FormatBytes(bytes), " of a GPU: ",
      bytes <= device
          ? absl::StrFormat("raise --memory-limit to %.0f bytes", bytes)
          : absl::StrCat("a GPU of ", given.device.name(), " has ",
                         FormatBytes(device), ": use another device"),
      ", or a larger --tp or --recompute, which need less memory"));
}

}  // namespace weir::plan
