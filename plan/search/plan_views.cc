// SPDX-License-Identifier: Apache-2.0
#include "plan/search/plan_views.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/csv.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/textproto.h"
#include "base/units.h"
#include "plan/search/plan_cells.h"
#include "results/flops.h"
#include "results/summary.h"
#include "results/views/cells.h"

namespace weir::plan {
namespace {

using Json = nlohmann::ordered_json;

Json PlanObject(const Plan& plan) {
  const Scenario& scenario = plan.scenario();
  const Parallelism& parallelism = scenario.parallelism();
  return {
      {"source", plan.source()},
      {"schedule", scenario.schedule()},
      {"tensor", parallelism.tensor()},
      {"pipeline", parallelism.pipeline()},
      {"data", parallelism.data()},
      {"expert", parallelism.expert()},
      {"chunks", parallelism.chunks()},
      {"microbatch_size", scenario.batch().microbatch_size()},
      {"recompute", RecomputeText(plan)},
      {"layers", LayersText(plan)},
      {"order", parallelism.order()},
      {"distributed_optimizer", scenario.training().distributed_optimizer()},
      {"fully_sharded", scenario.training().fully_sharded()},
      {"sharding", ShardingText(plan)},
      {"sequence_parallel", parallelism.sequence_parallel()},
      {"gradient_reduction", ReductionText(plan)},
      {"num_gpus", plan.num_gpus()},
      {"batch_seconds", plan.batch_seconds()},
      {"batch_seconds_low",
       plan.has_batch_seconds_low() ? Json(plan.batch_seconds_low()) : Json()},
      {"batch_seconds_high", plan.has_batch_seconds_high()
                                 ? Json(plan.batch_seconds_high())
                                 : Json()},
      {"samples_per_second", plan.samples_per_second()},
      {"peak_memory_bytes", plan.peak_memory_bytes()},
      {"peak_memory_bytes_low", plan.has_peak_memory_bytes_low()
                                    ? Json(plan.peak_memory_bytes_low())
                                    : Json()},
      {"peak_memory_bytes_high", plan.has_peak_memory_bytes_high()
                                     ? Json(plan.peak_memory_bytes_high())
                                     : Json()},
      {"lower_bound_seconds", plan.lower_bound_seconds()},
      {"gap", plan.gap()},
      {"price_per_sample",
       plan.price_per_sample() > 0 ? Json(plan.price_per_sample()) : Json()},
      {"changes_training", plan.changes_training()},
      {"semantics", plan.semantics()},
      {"runtime_executes", plan.runtime_executes()},
      {"equal_to", std::vector<std::string>(plan.equal_to().begin(),
                                            plan.equal_to().end())},
      {"why_not_best", plan.why_not_best()},
      {"scenario", PrintTextProto(scenario)}};
}

uint32_t ContextOf(const Plan& plan) {
  return std::max(plan.scenario().parallelism().context(), 1u);
}

void AddFlopsOf(const PlanReport& report, const Plan& plan, Json* json) {
  const Result result = FlopsOfPlan(report, plan);
  const results::FlopsFormula formula = results::FormulaOf(result);
  const auto flops = results::FlopsPerGpu(result, formula);
  const auto utilization = results::UtilizationOf(result, formula);
  (*json)["flops_formula"] = std::string(results::NameOf(formula));
  (*json)["flops_per_second_per_gpu"] =
      flops.has_value() ? Json(*flops) : Json();
  (*json)["flops_utilization"] =
      utilization.has_value() ? Json(*utilization) : Json();
}

std::string LimitCell(bool known, double bytes) {
  return known ? ShortestNumber(bytes) : "";
}

std::string FlopsCell(const PlanReport& report, const Plan& plan) {
  if (!HasFlops(report)) return "";
  const Result result = FlopsOfPlan(report, plan);
  const auto flops = results::FlopsPerGpu(result, results::FormulaOf(result));
  return LimitCell(flops.has_value(), flops.value_or(0));
}

std::string Dump(const Json& json) { return DumpJson(json); }

std::string EndName(SearchEnd end) {
  switch (end) {
    case SEARCH_END_COMPLETE:
      return "complete";
    case SEARCH_END_GAP:
      return "gap";
    case SEARCH_END_PATIENCE:
      return "patience";
    case SEARCH_END_TIME_LIMIT:
      return "time-limit";
    case SEARCH_END_INTERRUPT:
      return "interrupt";
    default:
      return "unknown";
  }
}

Json NeighborsJson(const PlanReport& report) {
  Json neighbors = Json::array();
  for (const PlanNeighbor& neighbor : report.neighbors()) {
    const double seconds = neighbor.batch_seconds();
    neighbors.push_back(
        {{"choice", neighbor.choice()},
         {"batch_seconds", seconds > 0 ? Json(seconds) : Json()},
         {"peak_memory_bytes", neighbor.peak_memory_bytes()},
         {"fits", neighbor.fits()},
         {"difference", neighbor.difference()},
         {"scenario", PrintTextProto(neighbor.scenario())}});
  }
  return neighbors;
}

bool HasEnergy(const PlanReport& report) {
  return !report.request().power_model().empty();
}

void AddEnergyOf(const PlanReport& report, const Plan& plan, Json* json) {
  (*json)["joules_per_step"] = plan.joules_per_step();
  (*json)["joules_per_token"] =
      HasTokens(report) ? Json(plan.joules_per_step() /
                               (plan.batch_seconds() * TokensPerSecond(plan)))
                        : Json();
  (*json)["watts_per_gpu"] = plan.watts_per_gpu();
}

// Adds the fields that follow from the number of tokens.
void AddTokensOf(const PlanReport& report, const Plan& plan, Json* json) {
  const double per_second = TokensPerSecond(plan);
  const double tokens = TokensOf(report);
  const double hours = tokens / per_second / kSecondsPerHour * plan.num_gpus();
  const double price = report.request().price_per_gpu_hour();
  (*json)["tokens_per_second_per_gpu"] = per_second / plan.num_gpus();
  (*json)["tokens"] = tokens;
  (*json)["gpu_hours"] = hours;
  (*json)["days"] = tokens / per_second / kSecondsPerHour / 24;
  (*json)["price"] = price > 0 ? Json(hours * price) : Json();
}

}  // namespace

std::string PlanJson(const PlanReport& report) {
  Json plans = Json::array();
  for (const Plan& plan : report.plans()) {
    plans.push_back(PlanObject(plan));
    if (HasContext(report)) plans.back()["context"] = ContextOf(plan);
    if (HasExpertTensor(report))
      plans.back()["expert_tensor"] = ExpertTensorOf(plan);
    if (HasReplicates(report))
      plans.back()["data_replicate"] = ReplicatesOf(plan);
    for (const Technique& technique : TechniquesOf(report)) {
      plans.back()[technique.key] = technique.text(plan);
    }
    if (HasFlops(report)) AddFlopsOf(report, plan, &plans.back());
    if (HasTokens(report)) AddTokensOf(report, plan, &plans.back());
    if (HasEnergy(report)) AddEnergyOf(report, plan, &plans.back());
  }
  return Dump(
      {{"plans", plans},
       {"counts",
        {{"candidates", report.num_candidates()},
         {"invalid", report.num_invalid()},
         {"pruned_memory", report.num_pruned_memory()},
         {"pruned_time", report.num_pruned_time()},
         {"duplicates", report.num_duplicates()},
         {"ranked", report.num_ranked()},
         {"simulated", report.num_simulated()},
         {"left", report.num_left()}}},
       {"schedules", std::vector<std::string>(report.schedules().begin(),
                                              report.schedules().end())},
       {"defaults", results::DefaultsText(report.defaults())},
       {"schedules_of_runtime", report.schedules_of_runtime()},
       {"memory_limit_bytes", report.memory_limit_bytes()},
       {"end", EndName(report.end())},
       {"lower_bound_seconds", report.lower_bound_seconds()},
       {"proven_seconds",
        report.proven_seconds() > 0 ? Json(report.proven_seconds()) : Json()},
       {"neighbors", NeighborsJson(report)}});
}

std::string OnePlanJson(const Plan& plan) { return Dump(PlanObject(plan)); }

std::string PlanCsv(const PlanReport& report) {
  std::string text =
      "rank,source,gpus,tensor,pipeline,data,expert,chunks,microbatch_size,"
      "schedule,recompute,layers,order,batch_seconds,samples_per_second,"
      "peak_memory_bytes,lower_bound_seconds,gap,price_per_sample,"
      "changes_training,runtime_executes,peak_memory_bytes_low,"
      "peak_memory_bytes_high,sharding,sequence_parallel,"
      "gradient_reduction,tokens_per_second_per_gpu,"
      "flops_per_second_per_gpu,flops_formula";
  const bool context = HasContext(report);
  const bool expert_tensor = HasExpertTensor(report);
  const bool replicates = HasReplicates(report);
  absl::StrAppend(&text, context ? ",context" : "",
                  expert_tensor ? ",expert_tensor" : "",
                  replicates ? ",data_replicate" : "");
  const std::vector<Technique> techniques = TechniquesOf(report);
  for (const Technique& technique : techniques) {
    absl::StrAppend(&text, ",", technique.key);
  }
  text += HasEnergy(report) ? ",joules_per_step,watts_per_gpu\n" : "\n";
  for (int i = 0; i < report.plans_size(); ++i) {
    const Plan& plan = report.plans(i);
    const Parallelism& parallelism = plan.scenario().parallelism();
    absl::StrAppend(
        &text,
        absl::StrJoin(
            {absl::StrCat(i + 1),
             CsvField(plan.source()),
             absl::StrCat(plan.num_gpus()),
             absl::StrCat(parallelism.tensor()),
             absl::StrCat(parallelism.pipeline()),
             absl::StrCat(parallelism.data()),
             absl::StrCat(parallelism.expert()),
             absl::StrCat(parallelism.chunks()),
             absl::StrCat(plan.scenario().batch().microbatch_size()),
             CsvField(plan.scenario().schedule()),
             RecomputeText(plan),
             CsvField(LayersText(plan)),
             CsvField(parallelism.order()),
             ShortestNumber(plan.batch_seconds()),
             ShortestNumber(plan.samples_per_second()),
             ShortestNumber(plan.peak_memory_bytes()),
             ShortestNumber(plan.lower_bound_seconds()),
             ShortestNumber(plan.gap()),
             LimitCell(HasPrices(report), plan.price_per_sample()),
             std::string(plan.changes_training() ? "true" : "false"),
             std::string(plan.runtime_executes() ? "true" : "false"),
             LimitCell(plan.has_peak_memory_bytes_low(),
                       plan.peak_memory_bytes_low()),
             LimitCell(plan.has_peak_memory_bytes_high(),
                       plan.peak_memory_bytes_high()),
             ShardingText(plan),
             std::string(parallelism.sequence_parallel() ? "true" : "false"),
             ReductionText(plan),
             plan.num_gpus() > 0
                 ? ShortestNumber(TokensPerSecond(plan) / plan.num_gpus())
                 : "",
             FlopsCell(report, plan),
             CsvField(report.request().flops_formula())},
            ","),
        context ? absl::StrCat(",", ContextOf(plan)) : "",
        expert_tensor ? absl::StrCat(",", ExpertTensorOf(plan)) : "",
        replicates ? absl::StrCat(",", ReplicatesOf(plan)) : "");
    for (const Technique& technique : techniques) {
      absl::StrAppend(&text, ",", technique.text(plan));
    }
    if (HasEnergy(report)) {
      absl::StrAppend(&text, ",", ShortestNumber(plan.joules_per_step()), ",",
                      ShortestNumber(plan.watts_per_gpu()));
    }
    text += "\n";
  }
  return text;
}

std::string PlanRequestJson(const PlanRequest& request) {
  return Dump({{"request", PrintTextProto(request)}});
}

}  // namespace weir::plan
