// SPDX-License-Identifier: Apache-2.0
#include "plan/search/plan_views.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/csv.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/textproto.h"
#include "base/units.h"
#include "results/flops.h"
#include "results/summary.h"
#include "results/views/cells.h"

namespace weir::plan {
namespace {

using Json = nlohmann::ordered_json;

std::string RecomputeText(const Plan& plan) {
  switch (plan.scenario().training().recompute()) {
    case RECOMPUTE_FULL:
      return "full";
    case RECOMPUTE_SELECTIVE:
      return "selective";
    case RECOMPUTE_OPERATORS:
      return "operators";
    default:
      return "none";
  }
}

std::string LayersText(const Plan& plan) {
  const Parallelism& parallelism = plan.scenario().parallelism();
  if (!parallelism.layout().empty()) return parallelism.layout();
  if (parallelism.blocks_per_stage().empty()) return "even";
  // Groups equal neighbors: "11,12*6,13".
  std::vector<std::string> words;
  const auto& blocks = parallelism.blocks_per_stage();
  for (int i = 0, j = 0; i < blocks.size(); i = j) {
    while (j < blocks.size() && blocks.Get(j) == blocks.Get(i)) ++j;
    words.push_back(j - i > 1 ? absl::StrCat(blocks.Get(i), "*", j - i)
                              : absl::StrCat(blocks.Get(i)));
  }
  return absl::StrJoin(words, ",");
}

std::string ScheduleText(const Plan& plan) {
  return absl::StrCat(plan.scenario().schedule(),
                      plan.changes_training() ? " (*)" : "",
                      plan.runtime_executes() ? "" : " (!)");
}

std::string SizesText(const Plan& plan) {
  const Parallelism& parallelism = plan.scenario().parallelism();
  std::string text =
      absl::StrCat(parallelism.tensor(), "/", parallelism.pipeline(), "/",
                   parallelism.data(), "/", parallelism.chunks(), "/",
                   plan.scenario().batch().microbatch_size());
  return text;
}

std::string LimitCell(bool known, double bytes) {
  return known ? ShortestNumber(bytes) : "";
}

std::string MemoryText(const Plan& plan) {
  const std::string text = FormatBytes(plan.peak_memory_bytes());
  if (!plan.has_peak_memory_bytes_high()) return text;
  return absl::StrCat(
      text, " (",
      results::IntervalText(FormatBytes(plan.peak_memory_bytes_low()),
                            FormatBytes(plan.peak_memory_bytes_high())),
      ")");
}

bool HasPrices(const PlanReport& report) {
  return report.request().price_per_gpu_hour() > 0;
}

bool HasExperts(const PlanReport& report) {
  return std::any_of(report.plans().begin(), report.plans().end(),
                     [](const Plan& plan) {
                       return plan.scenario().parallelism().expert() > 1;
                     });
}

bool HasFlops(const PlanReport& report) {
  return !report.request().flops_formula().empty();
}

// Returns what results/flops.h needs of a plan.
Result FlopsOfPlan(const PlanReport& report, const Plan& plan) {
  Result result;
  result.set_flops_formula(report.request().flops_formula());
  result.set_batch_seconds(plan.batch_seconds());
  result.set_tensor_parallel(plan.num_gpus());
  result.set_pipeline_parallel(1);
  result.set_data_parallel(1);
  *result.mutable_flops_per_batch() = plan.flops_per_batch();
  if (plan.has_model_flops_utilization()) {
    result.set_model_flops_utilization(plan.model_flops_utilization());
  }
  return result;
}

std::string RuntimeOf(const PlanReport& report) {
  return report.plans_size() > 0 ? report.plans(0).scenario().runtime() : "";
}

// Returns the limits of the search, and the plans that also represent equal
// ones.
std::string NotesText(const PlanReport& report) {
  std::string text = absl::StrCat("schedules considered: ",
                                  absl::StrJoin(report.schedules(), ", "));
  if (report.schedules_of_runtime()) {
    absl::StrAppend(&text, ", as the runtime ", RuntimeOf(report),
                    " executes only these (--schedule all: every schedule)");
  }
  absl::StrAppend(&text,
                  "\nmemory limit: ", FormatBytes(report.memory_limit_bytes()),
                  " per GPU (--memory-limit, --memory-margin)\n");
  for (int i = 0; i < report.plans_size(); ++i) {
    if (report.plans(i).equal_to().empty()) continue;
    absl::StrAppend(&text, "plan ", i + 1,
                    " has the same time and memory with ",
                    absl::StrJoin(report.plans(i).equal_to(), "; "), "\n");
  }
  return text;
}

std::vector<std::string> Row(const PlanReport& report, int index) {
  const Plan& plan = report.plans(index);
  std::vector<std::string> row = {
      absl::StrCat(index + 1),
      absl::StrCat(plan.num_gpus()),
      SizesText(plan),
      ScheduleText(plan),
      RecomputeText(plan),
      LayersText(plan),
      plan.scenario().parallelism().order(),
      FormatSeconds(plan.batch_seconds()),
      absl::StrFormat("%.4g", plan.samples_per_second()),
      MemoryText(plan),
      plan.lower_bound_seconds() > 0 ? FormatPercent(plan.gap()) : "-"};
  if (HasExperts(report)) {
    row.insert(row.begin() + 3,
               absl::StrCat(plan.scenario().parallelism().expert()));
  }
  if (HasPrices(report)) {
    row.push_back(absl::StrFormat("%.4g", 1000 * plan.price_per_sample()));
  }
  if (HasFlops(report)) {
    const Result flops = FlopsOfPlan(report, plan);
    row.push_back(results::TeraflopsCell(flops));
    row.push_back(results::UtilizationCell(flops));
  }
  if (plan.source() != "joint") row.push_back(plan.source());
  return row;
}

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
      {"num_gpus", plan.num_gpus()},
      {"batch_seconds", plan.batch_seconds()},
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

std::string Dump(const Json& json) { return DumpJson(json); }

}  // namespace

std::string CountsText(const PlanReport& report) {
  std::string text = absl::StrCat(
      report.num_candidates(), " candidates: ", report.num_invalid(),
      " invalid, ", report.num_pruned_memory(), " pruned by memory, ",
      report.num_pruned_time(), " pruned by their bounds, ",
      report.num_duplicates(), " duplicates of an equal schedule, ",
      report.num_ranked(), " estimated (", report.num_simulated(),
      " of these simulated in full)");
  if (report.num_left() > 0) {
    absl::StrAppend(&text, ", ", report.num_left(), " not evaluated");
    if (report.out_of_patience()) {
      text += " since the last estimates brought no improvement (--patience)";
    }
  }
  return text;
}

std::string PlanTable(const PlanReport& report, bool explain) {
  // See TextTable::optional.
  static const auto& kOptionalColumns = *new std::map<std::string, int>{
      {"gap", 1},       {"tflop/s/gpu", 2}, {"samples/s", 3},
      {"recompute", 4}, {"mfu", 5},         {"layers", 6},
      {"order", 7},     {"found-by", 8},    {"price/1000-samples", 9}};
  TextTable table;
  table.header = {"rank", "GPUs", "t/p/d/v/mb"};
  table.left = {true, false, true};
  if (HasExperts(report)) {
    table.header.push_back("ep");
    table.left.push_back(false);
  }
  table.header.insert(table.header.end(),
                      {"schedule", "recompute", "layers", "order", "step",
                       "samples/s", "peak", "gap"});
  if (HasPrices(report)) table.header.push_back("price/1000 samples");
  if (HasFlops(report)) {
    const Result flops = FlopsOfPlan(report, Plan());
    table.header.push_back(results::TeraflopsHeader(flops));
    table.header.push_back(results::UtilizationHeader(flops));
  }
  table.left.insert(table.left.end(), 4, true);
  table.left.resize(table.header.size(), false);
  bool changes_training = false, not_executed = false, seeds = false;
  for (int i = 0; i < report.plans_size(); ++i) {
    table.rows.push_back(Row(report, i));
    changes_training |= report.plans(i).changes_training();
    not_executed |= !report.plans(i).runtime_executes();
    seeds |= report.plans(i).source() != "joint";
  }
  if (seeds) {
    table.header.push_back("found by");
    table.left.push_back(true);
  }
  for (const std::string& header : table.header) {
    const auto at = kOptionalColumns.find(ColumnKey(header));
    table.optional.push_back(at == kOptionalColumns.end() ? 0 : at->second);
  }
  const std::string defaults = results::DefaultsText(report.defaults());
  std::string text =
      defaults.empty()
          ? ""
          : WrapText(absl::StrCat("defaults: ", Ascii(defaults), "\n")) + "\n";
  text += PrintTable(table);
  if (changes_training) {
    absl::StrAppend(&text,
                    "(*) training differs from training on one GPU (stale "
                    "weights or compressed transfers)\n");
  }
  if (not_executed) {
    absl::StrAppend(&text, "(!) the runtime ", RuntimeOf(report),
                    " does not execute this schedule\n");
  }
  for (int i = 1; explain && i < report.plans_size(); ++i) {
    absl::StrAppend(&text, i == 1 ? "\n" : "", "plan ", i + 1, ": ",
                    report.plans(i).why_not_best(), "\n");
  }
  absl::StrAppend(&text, "\n", NotesText(report), CountsText(report), "\n");
  if (report.lower_bound_seconds() > 0) {
    absl::StrAppend(&text, "lower bound on the time of these plans: ",
                    FormatSeconds(report.lower_bound_seconds()), "\n");
  }
  return text;
}

std::string PlanJson(const PlanReport& report) {
  Json plans = Json::array();
  for (const Plan& plan : report.plans()) {
    plans.push_back(PlanObject(plan));
    if (HasFlops(report)) AddFlopsOf(report, plan, &plans.back());
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
       {"out_of_patience", report.out_of_patience()},
       {"lower_bound_seconds", report.lower_bound_seconds()}});
}

std::string PlanCsv(const PlanReport& report) {
  std::string text =
      "rank,source,gpus,tensor,pipeline,data,expert,chunks,microbatch_size,"
      "schedule,recompute,layers,order,batch_seconds,samples_per_second,"
      "peak_memory_bytes,lower_bound_seconds,gap,price_per_sample,"
      "changes_training,runtime_executes,peak_memory_bytes_low,"
      "peak_memory_bytes_high\n";
  for (int i = 0; i < report.plans_size(); ++i) {
    const Plan& plan = report.plans(i);
    const Parallelism& parallelism = plan.scenario().parallelism();
    absl::StrAppend(
        &text,
        absl::StrJoin({absl::StrCat(i + 1),
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
                       ShortestNumber(plan.price_per_sample()),
                       std::string(plan.changes_training() ? "true" : "false"),
                       std::string(plan.runtime_executes() ? "true" : "false"),
                       LimitCell(plan.has_peak_memory_bytes_low(),
                                 plan.peak_memory_bytes_low()),
                       LimitCell(plan.has_peak_memory_bytes_high(),
                                 plan.peak_memory_bytes_high())},
                      ","),
        "\n");
  }
  return text;
}

std::string PlanRequestJson(const PlanRequest& request) {
  return Dump({{"request", PrintTextProto(request)}});
}

}  // namespace weir::plan
