// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/synthesis_view.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/csv.h"
#include "base/json_text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "schedules/lint/lint.h"
#include "schedules/validate.h"

namespace weir::plan {
namespace {

absl::string_view NameOf(OrderObjective objective) {
  return objective == OrderObjective::kSpan ? "span" : "makespan";
}

double Peak(const Synthesis& synthesis) {
  return *std::max_element(synthesis.peak_held.begin(),
                           synthesis.peak_held.end());
}

// In microbatches of the largest stage, the unit of the limit.
std::string Held(const OrderProblem& problem, double held) {
  const double unit = HeldByMicrobatch(problem);
  return unit > 0 ? absl::StrFormat("%.4g", held / unit) : "0";
}

// In microbatches, by rank: "4/3.5/2".
std::string HeldPerRank(const OrderProblem& problem,
                        const Synthesis& synthesis) {
  return absl::StrJoin(synthesis.peak_held, "/",
                       [&](std::string* out, double held) {
                         absl::StrAppend(out, Held(problem, held));
                       });
}

int64_t NumOffloads(const schedules::Schedule& schedule) {
  int64_t num = 0;
  for (const std::vector<schedules::Action>& actions : schedule.rank_actions) {
    num += absl::c_count_if(actions, [](const schedules::Action& action) {
      return action.op == schedules::Op::kOffload;
    });
  }
  return num;
}

std::string ProgramSaid(const Synthesis& synthesis) {
  return synthesis.mip.empty() ? "not used" : synthesis.mip;
}

// With all digits; a single number if the stages agree.
std::string PerStage(const OrderProblem& problem, absl::string_view key,
                     double schedules::StagePassCosts::*member) {
  std::vector<std::string> numbers;
  for (int stage = 0; stage < problem.num_stages(); ++stage) {
    numbers.push_back(
        absl::StrFormat("%.17g", problem.costs.of(stage).*member));
  }
  const bool equal = absl::c_all_of(
      numbers, [&](const std::string& one) { return one == numbers[0]; });
  if (equal) numbers.resize(1);
  return absl::StrCat(key, "=", absl::StrJoin(numbers, "/"));
}

// Returns the costs in the format of --costs; empty if it cannot express them,
// as for a whole backward that takes less than its halves or a stage without
// activation memory.
std::string CostsText(const OrderProblem& problem) {
  for (int stage = 0; stage < problem.num_stages(); ++stage) {
    if (!(problem.costs.of(stage).activation > 0)) return "";
  }
  std::vector<std::string> parts = {
      PerStage(problem, "f", &schedules::StagePassCosts::forward)};
  if (problem.can_split) {
    for (int stage = 0; stage < problem.num_stages(); ++stage) {
      if (problem.may_fuse(stage)) return "";
    }
    parts.push_back(
        PerStage(problem, "i", &schedules::StagePassCosts::backward_input));
    parts.push_back(
        PerStage(problem, "w", &schedules::StagePassCosts::backward_weight));
  } else {
    OrderProblem whole = problem;  // backward_input holds the whole backward
    for (schedules::StagePassCosts& stage : whole.costs.stages) {
      stage.backward_input = stage.fused_backward();
    }
    parts.push_back(
        PerStage(whole, "b", &schedules::StagePassCosts::backward_input));
  }
  parts.push_back(absl::StrFormat("c=%.17g", problem.costs.hop));
  parts.push_back(PerStage(problem, "h", &schedules::StagePassCosts::offload));
  parts.push_back(
      PerStage(problem, "a", &schedules::StagePassCosts::activation));
  parts.push_back(PerStage(problem, "g",
                           &schedules::StagePassCosts::weight_gradient_inputs));
  return absl::StrJoin(parts, ",");
}

double Gain(const Synthesis& synthesis) {
  return 1 - synthesis.value / synthesis.best_named()->value;
}

}  // namespace

std::string SynthesisTable(const OrderProblem& problem,
                           const Synthesis& synthesis,
                           const std::optional<SimulatedTimes>& simulated) {
  TextTable table;
  table.header = {"order", std::string(NameOf(problem.objective)),
                  "above bound", "peak activations", "fits"};
  const auto add = [&](const std::string& name, double value, double peak,
                       bool fits) {
    table.rows.push_back(
        {name, FormatSeconds(value),
         synthesis.bound > 0 ? FormatPercent(value / synthesis.bound - 1) : "",
         Held(problem, peak), fits ? "yes" : "no"});
  };
  add("found", synthesis.value, Peak(synthesis), true);
  for (const NamedOrder& named : synthesis.named) {
    add(named.name, named.value, named.peak, named.fits);
  }
  std::string text = PrintTable(table);
  absl::StrAppend(&text, "\nfound by: ", synthesis.source, "\n");
  if (synthesis.best_named() == nullptr) {
    absl::StrAppend(&text, "no named schedule fits the memory limit\n");
  } else if (Gain(synthesis) > 1e-9) {
    absl::StrAppend(&text, FormatPercent(Gain(synthesis)),
                    " less than the best named schedule that fits, ",
                    synthesis.best_named()->name, "\n");
  } else {
    absl::StrAppend(&text, "no better than ", synthesis.best_named()->name,
                    "\n");
  }
  absl::StrAppend(&text, "bound: ", FormatSeconds(synthesis.bound), " (",
                  synthesis.bound_reason, ")\n");
  absl::StrAppend(
      &text,
      synthesis.is_proven
          ? "proven optimal for these stage times"
          : absl::StrCat("not proven: at most ", FormatPercent(synthesis.gap()),
                         " above the optimum"),
      "\n");
  if (!synthesis.mip.empty()) {
    absl::StrAppend(&text, "mixed-integer program: ", synthesis.mip, "\n");
  }
  if (simulated.has_value()) {
    absl::StrAppend(&text, "simulated: ", FormatSeconds(simulated->found));
    if (simulated->best_named.has_value()) {
      absl::StrAppend(&text, ", ", synthesis.best_named()->name, " ",
                      FormatSeconds(*simulated->best_named));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

std::string SynthesisJson(const OrderProblem& problem,
                          const Synthesis& synthesis,
                          const std::optional<SimulatedTimes>& simulated) {
  using Json = nlohmann::ordered_json;
  Json named = Json::array();
  for (const NamedOrder& order : synthesis.named) {
    named.push_back({{"name", order.name},
                     {"value_seconds", order.value},
                     {"peak_held", order.peak},
                     {"fits", order.fits}});
  }
  const schedules::LintReport lint =
      schedules::LintSchedule(synthesis.schedule, {});
  Json json = {
      {"num_ranks", problem.num_ranks},
      {"num_stages", problem.num_stages()},
      {"num_microbatches", problem.num_microbatches},
      {"placement", synthesis.schedule.routes[0]},
      {"objective", std::string(NameOf(problem.objective))},
      {"source", synthesis.source},
      {"value_seconds", synthesis.value},
      {"makespan_seconds", synthesis.makespan},
      {"span_seconds", synthesis.span},
      {"lower_bound_seconds", synthesis.bound},
      {"lower_bound_reason", synthesis.bound_reason},
      {"gap", synthesis.gap()},
      {"is_proven_optimal", synthesis.is_proven},
      {"mixed_integer_program", ProgramSaid(synthesis)},
      {"is_valid", schedules::ValidateSchedule(synthesis.schedule).ok()},
      {"lint_errors", lint.num_errors()},
      {"lint_notes", lint.num_notes()},
      {"peak_held_per_rank", synthesis.peak_held},
      {"held_by_microbatch", HeldByMicrobatch(problem)},
      {"num_offloads", NumOffloads(synthesis.schedule)},
      {"costs", CostsText(problem)}};
  json["memory_limit"] = std::isfinite(problem.memory_limit)
                             ? Json(problem.memory_limit)
                             : Json(nullptr);
  if (const NamedOrder* best = synthesis.best_named()) {
    json["best_named"] = best->name;
    json["best_named_seconds"] = best->value;
  }
  if (simulated.has_value()) {
    json["simulated_seconds"] = simulated->found;
    if (simulated->best_named.has_value()) {
      json["best_named_simulated_seconds"] = *simulated->best_named;
    }
  }
  json["named"] = std::move(named);
  return DumpJson(json, 2);
}

std::string SynthesisCsv(const OrderProblem& problem,
                         const Synthesis& synthesis,
                         const std::optional<SimulatedTimes>& simulated) {
  const NamedOrder* best = synthesis.best_named();
  const double unit = HeldByMicrobatch(problem);
  const bool has_limit = std::isfinite(problem.memory_limit) && unit > 0;
  const auto number = [](double value) {
    return absl::StrFormat("%.9g", value);
  };
  const std::vector<std::pair<absl::string_view, std::string>> columns = {
      {"num_ranks", absl::StrCat(problem.num_ranks)},
      {"num_stages", absl::StrCat(problem.num_stages())},
      {"num_microbatches", absl::StrCat(problem.num_microbatches)},
      {"memory_limit_microbatches",
       has_limit ? absl::StrFormat("%.4g", problem.memory_limit / unit) : ""},
      {"may_offload", absl::StrCat(problem.may_offload)},
      {"objective", std::string(NameOf(problem.objective))},
      {"found_seconds", number(synthesis.value)},
      {"best_named", best == nullptr ? "" : CsvField(best->name)},
      {"best_named_seconds", best == nullptr ? "" : number(best->value)},
      {"gain", best == nullptr ? "" : absl::StrFormat("%.4f", Gain(synthesis))},
      {"lower_bound_seconds", number(synthesis.bound)},
      {"gap", absl::StrFormat("%.4f", synthesis.gap())},
      {"is_proven_optimal", absl::StrCat(synthesis.is_proven)},
      {"source", CsvField(synthesis.source)},
      {"num_offloads", absl::StrCat(NumOffloads(synthesis.schedule))},
      {"peak_microbatches_per_rank", HeldPerRank(problem, synthesis)},
      {"lint_errors",
       absl::StrCat(
           schedules::LintSchedule(synthesis.schedule, {}).num_errors())},
      {"makespan_seconds", number(synthesis.makespan)},
      {"simulated_seconds",
       simulated.has_value() ? number(simulated->found) : ""},
      {"mixed_integer_program", CsvField(ProgramSaid(synthesis))}};
  std::string names, values;
  for (const auto& [name, value] : columns) {
    absl::StrAppend(&names, names.empty() ? "" : ",", name);
    absl::StrAppend(&values, values.empty() ? "" : ",", value);
  }
  return absl::StrCat(names, "\n", values, "\n");
}

}  // namespace weir::plan
