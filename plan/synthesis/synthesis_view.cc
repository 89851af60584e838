// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/synthesis_view.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/csv.h"
#include "base/text.h"
#include "base/units.h"
#include "schedules/lint.h"

namespace weir {
namespace {

absl::string_view NameOf(OrderObjective objective) {
  return objective == OrderObjective::kSpan ? "span" : "makespan";
}

double Peak(const Synthesis& synthesis) {
  return *std::max_element(synthesis.peak_held.begin(),
                           synthesis.peak_held.end());
}

// In microbatches of the largest stage, which the limit is given in.
std::string Held(const OrderProblem& problem, double held) {
  const double unit = HeldByMicrobatch(problem);
  return unit > 0 ? absl::StrFormat("%.4g", held / unit) : "0";
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
                  "above bound", "held", "fits"};
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
    absl::StrAppend(&text, "no named system fits the memory limit\n");
  } else if (Gain(synthesis) > 1e-9) {
    absl::StrAppend(&text, FormatPercent(Gain(synthesis)),
                    " less than the best named system that fits, ",
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
          ? "optimal for these stage times, proven"
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
  const LintReport lint = LintSchedule(synthesis.schedule, {});
  Json json = {{"num_ranks", problem.num_ranks},
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
               {"mixed_integer_program", synthesis.mip},
               {"lint_errors", lint.num_errors()},
               {"lint_notes", lint.num_notes()},
               {"peak_held_per_rank", synthesis.peak_held},
               {"held_by_microbatch", HeldByMicrobatch(problem)}};
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
  return json.dump(2);
}

std::string SynthesisCsv(const OrderProblem& problem,
                         const Synthesis& synthesis) {
  const NamedOrder* best = synthesis.best_named();
  const double unit = HeldByMicrobatch(problem);
  return absl::StrFormat(
      "num_ranks,num_stages,num_microbatches,memory_limit_microbatches,"
      "objective,found_seconds,best_named,best_named_seconds,gain,"
      "lower_bound_seconds,gap,is_proven_optimal,source\n"
      "%d,%d,%d,%s,%s,%.9g,%s,%s,%s,%.9g,%.4f,%d,%s\n",
      problem.num_ranks, problem.num_stages(), problem.num_microbatches,
      std::isfinite(problem.memory_limit) && unit > 0
          ? absl::StrFormat("%.4g", problem.memory_limit / unit)
          : "",
      NameOf(problem.objective), synthesis.value,
      best == nullptr ? "" : CsvField(best->name),
      best == nullptr ? "" : absl::StrFormat("%.9g", best->value),
      best == nullptr ? "" : absl::StrFormat("%.4f", Gain(synthesis)),
      synthesis.bound, synthesis.gap(), synthesis.is_proven,
      CsvField(synthesis.source));
}

}  // namespace weir
