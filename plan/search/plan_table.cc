// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "plan/energy/step_energy.h"
#include "plan/search/plan_cells.h"
#include "plan/search/plan_views.h"
#include "results/summary.h"
#include "results/views/cells.h"

namespace weir::plan {
namespace {

std::string ScheduleText(const Plan& plan) {
  return absl::StrCat(plan.scenario().schedule(),
                      plan.changes_training() ? " (*)" : "",
                      plan.runtime_executes() ? "" : " (!)");
}

std::string TimeInterval(const Plan& plan) {
  if (!plan.has_batch_seconds_high()) return "-";
  return results::IntervalText(FormatSeconds(plan.batch_seconds_low()),
                               FormatSeconds(plan.batch_seconds_high()));
}

std::string MemoryInterval(const Plan& plan) {
  if (!plan.has_peak_memory_bytes_high()) return "-";
  return results::IntervalText(FormatBytes(plan.peak_memory_bytes_low()),
                               FormatBytes(plan.peak_memory_bytes_high()));
}

// Returns what is planned: "llama-3-70b on dgx-h100: batch 1024, sequence
// 8192".
std::string HeaderText(const PlanReport& report) {
  const Scenario& request = report.request().scenario();
  std::string what =
      Ascii(request.model().empty() ? request.name() : request.model());
  if (!request.cluster().empty()) {
    absl::StrAppend(&what, what.empty() ? "" : " on ",
                    Ascii(request.cluster()));
  }
  if (!what.empty()) absl::StrAppend(&what, ": ");
  absl::StrAppend(&what, "batch ", request.batch().global_batch_size());
  if (report.plans_size() > 0 && HasTokens(report)) {
    absl::StrAppend(&what, ", sequence ",
                    report.plans(0).scenario().batch().sequence_length());
  }
  return WrapText(absl::StrCat(what, "\n"));
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
  // By the text of what is equal: the plans that it applies to.
  std::map<std::string, std::vector<std::string>> equal;
  for (int i = 0; i < report.plans_size(); ++i) {
    if (report.plans(i).equal_to().empty()) continue;
    equal[absl::StrJoin(report.plans(i).equal_to(), "; ")].push_back(
        absl::StrCat(i + 1));
  }
  for (const auto& [others, plans] : equal) {
    absl::StrAppend(&text, "same time and memory as ",
                    plans.size() == 1 ? "plan " : "plans ",
                    absl::StrJoin(plans, ", "), ": ", others, "\n");
  }
  return text;
}

// A column of the tables of plans.
struct Column {
  std::string header;
  bool left = false;
  std::function<std::string(const Plan&)> text;
  int optional = 0;  // TextTable::optional
};

bool AllAlike(const PlanReport& report, const Column& column) {
  return std::all_of(report.plans().begin(), report.plans().end(),
                     [&](const Plan& plan) {
                       return column.text(plan) == column.text(report.plans(0));
                     });
}

std::string TableOf(const PlanReport& report,
                    const std::vector<Column>& columns) {
  TextTable table;
  table.header = {"plan"};
  table.left = {false};
  table.optional = {0};
  for (const Column& column : columns) {
    table.header.push_back(column.header);
    table.left.push_back(column.left);
    table.optional.push_back(column.optional);
  }
  for (int i = 0; i < report.plans_size(); ++i) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(absl::StrCat(i + 1));
    for (const Column& column : columns) {
      row.push_back(column.text(report.plans(i)));
    }
  }
  return PrintTable(table);
}

// Returns the layouts, and a line with the choices in which all plans are
// alike.
std::string LayoutsTable(const PlanReport& report) {
  const auto size = [](uint32_t (Parallelism::*field)() const) {
    return [field](const Plan& plan) {
      return absl::StrCat((plan.scenario().parallelism().*field)());
    };
  };
  std::vector<Column> columns = {{"tp", false, size(&Parallelism::tensor)},
                                 {"pp", false, size(&Parallelism::pipeline)},
                                 {"dp", false, size(&Parallelism::data)}};
  if (HasContext(report)) {
    columns.push_back({"cp", false, [](const Plan& plan) {
                         return absl::StrCat(std::max(
                             plan.scenario().parallelism().context(), 1u));
                       }});
  }
  if (HasExperts(report)) {
    columns.push_back({"ep", false, size(&Parallelism::expert)});
  }
  if (HasExpertTensor(report)) {
    columns.push_back({"etp", false, [](const Plan& plan) {
                         return absl::StrCat(ExpertTensorOf(plan));
                       }});
  }
  if (HasReplicates(report)) {
    columns.push_back({"replicate", false, [](const Plan& plan) {
                         return absl::StrCat(ReplicatesOf(plan));
                       }});
  }
  columns.push_back({"vpp", false, size(&Parallelism::chunks)});
  columns.push_back({"mbs", false, [](const Plan& plan) {
                       return absl::StrCat(
                           plan.scenario().batch().microbatch_size());
                     }});
  columns.push_back({"sharding", true, ShardingText});
  columns.push_back({"recompute", true, RecomputeText});
  columns.push_back({"schedule", true, ScheduleText});
  columns.push_back({"layers", true, LayersText});
  std::vector<std::string> alike;
  std::vector<Column> often_alike = {
      {"GPUs", false,
       [](const Plan& plan) { return absl::StrCat(plan.num_gpus()); }},
      {"sequence parallel", true, SequenceParallelText, 1},
      {"gradient reduction", true, ReductionText, 2},
      {"order", true, OrderText, 3}};
  for (const Technique& technique : TechniquesOf(report)) {
    often_alike.push_back({technique.header, true, technique.text});
  }
  for (const Column& column : often_alike) {
    if (AllAlike(report, column)) {
      alike.push_back(
          absl::StrCat(column.header, " ", column.text(report.plans(0))));
    } else {
      columns.push_back(column);
    }
  }
  if (std::any_of(report.plans().begin(), report.plans().end(),
                  [](const Plan& plan) { return plan.source() != "joint"; })) {
    columns.push_back({"found by", true, [](const Plan& plan) {
                         return plan.source() == "joint" ? "" : plan.source();
                       }});
  }
  std::string text = TableOf(report, columns);
  if (!alike.empty()) {
    absl::StrAppend(
        &text, WrapText(absl::StrCat("all plans: ", absl::StrJoin(alike, ", "),
                                     "\n")));
  }
  return text;
}

std::string SpeedsTable(const PlanReport& report) {
  std::vector<Column> columns = {
      {"step", false,
       [](const Plan& plan) { return FormatSeconds(plan.batch_seconds()); }},
      {"90 % interval", false, TimeInterval, 1},
      {"samples/s", false,
       [](const Plan& plan) {
         return absl::StrFormat("%.4g", plan.samples_per_second());
       },
       3}};
  if (HasTokens(report)) {
    columns.push_back({"tokens/s/GPU", false, [](const Plan& plan) {
                         return absl::StrFormat(
                             "%.0f", TokensPerSecond(plan) / plan.num_gpus());
                       }});
  }
  if (HasFlops(report)) {
    const Result flops = FlopsOfPlan(report, Plan());
    columns.push_back(
        {results::TeraflopsHeader(flops), false, [&report](const Plan& plan) {
           return results::TeraflopsCell(FlopsOfPlan(report, plan));
         }});
    columns.push_back({results::UtilizationHeader(flops), false,
                       [&report](const Plan& plan) {
                         return results::UtilizationCell(
                             FlopsOfPlan(report, plan));
                       },
                       5});
  }
  columns.push_back({"peak", false, [](const Plan& plan) {
                       return FormatBytes(plan.peak_memory_bytes());
                     }});
  columns.push_back({"peak interval", false, MemoryInterval, 4});
  columns.push_back({"gap", false,
                     [](const Plan& plan) {
                       return plan.lower_bound_seconds() > 0
                                  ? FormatPercent(plan.gap())
                                  : "-";
                     },
                     2});
  if (!report.request().power_model().empty()) {
    columns.push_back({"energy", false, [](const Plan& plan) {
                         return FormatJoules(plan.joules_per_step());
                       }});
    if (HasTokens(report)) {
      columns.push_back(
          {"J/token", false, [](const Plan& plan) {
             return absl::StrFormat(
                 "%.4g", plan.joules_per_step() /
                             (plan.batch_seconds() * TokensPerSecond(plan)));
           }});
    }
    columns.push_back({"W/GPU", false, [](const Plan& plan) {
                         return absl::StrFormat("%.4g", plan.watts_per_gpu());
                       }});
  }
  if (HasPrices(report) && !HasTokens(report)) {
    columns.push_back({"price/1000 samples", false, [](const Plan& plan) {
                         return absl::StrFormat("%.4g",
                                                1000 * plan.price_per_sample());
                       }});
  }
  return absl::StrCat(
      TableOf(report, columns),
      "gap: time above the lower bound of every order of passes on the same "
      "layout\n");
}

// Returns the time and the price of training on a number of tokens.
std::string CostsTable(const PlanReport& report) {
  if (!HasTokens(report)) return "";
  const double tokens = TokensOf(report);
  const auto seconds_of = [tokens](const Plan& plan) {
    return tokens / TokensPerSecond(plan);
  };
  const auto hours_of = [seconds_of](const Plan& plan) {
    return seconds_of(plan) / kSecondsPerHour * plan.num_gpus();
  };
  std::vector<Column> columns = {
      {"GPU-hours", false,
       [hours_of](const Plan& plan) { return FormatCount(hours_of(plan)); }},
      {"days", false, [seconds_of](const Plan& plan) {
         return absl::StrFormat("%.3g",
                                seconds_of(plan) / kSecondsPerHour / 24);
       }}};
  if (HasPrices(report)) {
    const double price = report.request().price_per_gpu_hour();
    columns.push_back({"price", false, [hours_of, price](const Plan& plan) {
                         return FormatCount(hours_of(plan) * price);
                       }});
  }
  return absl::StrCat("\ntraining on ", FormatCount(tokens),
                      " tokens (--tokens), without failures and restarts:\n",
                      TableOf(report, columns));
}

std::string NeighborsTable(const PlanReport& report) {
  if (report.neighbors().empty()) return "";
  TextTable table;
  table.header = {"change", "step", "peak", "difference"};
  table.left = {true, false, false, true};
  for (const PlanNeighbor& neighbor : report.neighbors()) {
    table.rows.push_back(
        {neighbor.choice(),
         neighbor.batch_seconds() > 0 ? FormatSeconds(neighbor.batch_seconds())
                                      : "-",
         FormatBytes(neighbor.peak_memory_bytes()), neighbor.difference()});
  }
  return absl::StrCat("\nplans that differ from plan 1 in one choice:\n",
                      PrintTable(table));
}

// Returns what is known about the plans that were not examined.
std::string ProofText(const PlanReport& report) {
  std::string text;
  if (report.lower_bound_seconds() > 0) {
    absl::StrAppend(&text, "lower bound on the time of these plans: ",
                    FormatSeconds(report.lower_bound_seconds()), "\n");
  }
  if (report.end() > SEARCH_END_COMPLETE && report.proven_seconds() > 0 &&
      report.plans_size() > 0) {
    absl::StrAppend(&text, "no candidate is faster than ",
                    FormatSeconds(report.proven_seconds()), ", ",
                    FormatPercent(1 - report.proven_seconds() /
                                          report.plans(0).batch_seconds()),
                    " less than plan 1\n");
  }
  return text;
}

// Returns why a search ended before it examined all candidates.
std::string EndText(const PlanReport& report) {
  switch (report.end()) {
    case SEARCH_END_PATIENCE:
      return " since the last estimates brought no improvement (--patience)";
    case SEARCH_END_GAP:
      return " since none can be faster by more than --gap";
    case SEARCH_END_TIME_LIMIT:
      return " since --time-limit ended the search";
    default:
      return "";
  }
}

}  // namespace

std::string CountsText(const PlanReport& report) {
  if (report.num_candidates() == 0) {
    return "no candidate was examined before the search ended";
  }
  std::string text = absl::StrCat(
      report.num_candidates(), " candidates: ", report.num_invalid(),
      " invalid, ", report.num_pruned_memory(), " pruned by memory, ",
      report.num_pruned_time(), " pruned by their bounds, ",
      report.num_duplicates(), " duplicates of an equal schedule, ",
      report.num_ranked(), " estimated (", report.num_simulated(),
      " of these simulated in full)");
  if (report.num_left() > 0) {
    absl::StrAppend(&text, ", ", report.num_left(), " not evaluated");
    absl::StrAppend(&text, EndText(report));
  }
  return text;
}

std::string PlanTable(const PlanReport& report, bool explain) {
  std::string text = HeaderText(report);
  const std::string defaults = results::DefaultsText(report.defaults());
  if (!defaults.empty()) {
    absl::StrAppend(
        &text, WrapText(absl::StrCat("defaults: ", Ascii(defaults), "\n")));
  }
  text += "\n";
  text += LayoutsTable(report);
  bool changes_training = false, not_executed = false;
  for (const Plan& plan : report.plans()) {
    changes_training |= plan.changes_training();
    not_executed |= !plan.runtime_executes();
  }
  if (changes_training) {
    absl::StrAppend(&text,
                    "(*) training differs from training on one GPU (stale "
                    "weights or compressed transfers)\n");
  }
  if (not_executed) {
    absl::StrAppend(&text, "(!) the runtime ", RuntimeOf(report),
                    " does not execute this schedule\n");
  }
  absl::StrAppend(&text, "\n", SpeedsTable(report), CostsTable(report));
  for (int i = 1; explain && i < report.plans_size(); ++i) {
    absl::StrAppend(
        &text, i == 1 ? "\n" : "",
        WrapText(absl::StrCat("plan ", i + 1, ": ",
                              report.plans(i).why_not_best(), "\n")));
  }
  absl::StrAppend(&text, NeighborsTable(report), "\n",
                  WrapText(absl::StrCat(NotesText(report), CountsText(report),
                                        "\n", ProofText(report))));
  return text;
}

}  // namespace weir::plan
