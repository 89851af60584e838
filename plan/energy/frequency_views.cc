// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/frequency_views.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/csv.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"

namespace weir::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kClocksHeader =
    "rank,action,clock_mhz,seconds,joules";

std::string Joules(double joules) {
  return joules >= 1e6 ? absl::StrFormat("%.0f", joules)
                       : absl::StrFormat("%.6g", joules);
}

std::string Plural(int count, absl::string_view noun,
                   absl::string_view ending = "s") {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : ending);
}

std::string Seconds(double seconds) { return absl::StrFormat("%.6g", seconds); }

std::string Saving(double joules, double baseline) {
  return absl::StrFormat("%.2f", 100 * (1 - joules / baseline));
}

std::string Slowdown(double seconds, double baseline) {
  return absl::StrFormat("%.2f", 100 * (seconds / baseline - 1));
}

std::vector<std::string> RowOf(std::string name, const FrequencyPoint& point,
                               const FrequencyReport& report) {
  return {std::move(name),
          Seconds(point.deadline_seconds),
          Seconds(point.seconds),
          Joules(point.joules),
          Joules(point.lower_bound_joules),
          Saving(point.joules, report.baseline_joules),
          Slowdown(point.seconds, report.baseline_seconds),
          Seconds(point.measured_seconds)};
}

std::string PointsTable(const FrequencyReport& report) {
  TextTable table;
  table.header = {"plan",          "deadline s", "time s",  "energy J",
                  "lower bound J", "saved %",    "slower %"};
  table.left = {true};
  table.rows.push_back({"highest clocks", "-", Seconds(report.baseline_seconds),
                        Joules(report.baseline_joules), "-", "0.00", "0.00",
                        Seconds(report.measured_baseline_seconds)});
  table.rows.push_back(RowOf("fastest", report.fastest, report));
  table.rows.push_back(RowOf("least energy", report.least, report));
  if (report.capped.has_value()) {
    table.rows.push_back(RowOf("power cap", *report.capped, report));
  }
  for (const FrequencyPoint& point : report.points) {
    table.rows.push_back(RowOf("frontier", point, report));
  }
  // Times that are rounded down are shorter than the measured ones.
  if (report.request.unit_seconds > 0) {
    table.header.push_back("measured s");
  } else {
    for (auto& row : table.rows) row.pop_back();
  }
  return PrintTable(table);
}

// Returns what the limit of power means for plans.
std::string CapNote(const FrequencyReport& report) {
  if (!(report.request.most_watts > 0)) return "";
  if (!report.capped.has_value()) {
    return absl::StrFormat(
        "\nNo plan takes at most %g W on average for the GPUs of a stage.\n",
        report.request.most_watts);
  }
  return absl::StrFormat(
      "\nWithin an average of %g W for the GPUs of a stage, no plan is faster "
      "than %s s.\n",
      report.request.most_watts, Seconds(report.capped_bound_seconds));
}

std::string StragglerTable(const FrequencyReport& report) {
  if (report.stragglers.empty()) return "";
  TextTable table;
  table.header = {"straggler",        "iteration s", "plan s",
                  "highest clocks J", "energy J",    "saved %"};
  for (const StragglerPoint& each : report.stragglers) {
    table.rows.push_back(
        {absl::StrFormat("%g", each.factor), Seconds(each.iteration_seconds),
         Seconds(each.point.seconds), Joules(each.baseline_joules),
         Joules(each.joules), Saving(each.joules, each.baseline_joules)});
  }
  return absl::StrCat("\n", PrintTable(table));
}

// Returns a note if rounded and measured times differ.
std::string UnitNote(const FrequencyReport& report) {
  if (!(report.request.unit_seconds > 0)) return "";
  return absl::StrFormat(
      "\nDurations are rounded down to %s. With the measured ones, the highest "
      "clocks take\n%s s and %s J, the fastest plan %s s and %s J.\n",
      FormatSeconds(report.request.unit_seconds),
      Seconds(report.measured_baseline_seconds),
      Joules(report.measured_baseline_joules),
      Seconds(report.fastest.measured_seconds),
      Joules(report.fastest.measured_joules));
}

Json JsonOf(const FrequencyPoint& point) {
  return {{"deadline_seconds", point.deadline_seconds},
          {"seconds", point.seconds},
          {"joules", point.joules},
          {"lower_bound_joules", point.lower_bound_joules},
          {"measured_seconds", point.measured_seconds},
          {"measured_joules", point.measured_joules}};
}

// Adds the clocks that a plan gives the passes of each stage and operation.
void AddClocks(absl::string_view plan, const FrequencyPoint& point,
               const FrequencyReport& report, Json* rows) {
  struct Clocks {
    int num_passes = 0;
    double lowest = 0, highest = 0, sum = 0;
  };
  std::map<std::pair<int, schedules::Op>, Clocks> of_stages;
  for (size_t pass = 0; pass < report.graph.passes.size(); ++pass) {
    const schedules::Action& action = report.graph.passes[pass].action;
    const double megahertz = point.plan.clocks[pass].megahertz;
    Clocks& clocks = of_stages[{action.stage, action.op}];
    clocks.lowest =
        clocks.num_passes == 0 ? megahertz : std::min(clocks.lowest, megahertz);
    clocks.highest = std::max(clocks.highest, megahertz);
    clocks.sum += megahertz;
    ++clocks.num_passes;
  }
  for (const auto& [key, clocks] : of_stages) {
    rows->push_back(
        {{"plan", std::string(plan)},
         {"stage", key.first},
         {"operation", std::string(1, schedules::Letter(key.second))},
         {"num_passes", clocks.num_passes},
         {"lowest_mhz", clocks.lowest},
         {"mean_mhz", clocks.sum / clocks.num_passes},
         {"highest_mhz", clocks.highest}});
  }
}

Json ClocksJson(const FrequencyReport& report) {
  Json rows = Json::array();
  AddClocks("fastest", report.fastest, report, &rows);
  AddClocks("least energy", report.least, report, &rows);
  if (report.capped.has_value()) {
    AddClocks("power cap", *report.capped, report, &rows);
  }
  return rows;
}

Json StragglersJson(const FrequencyReport& report) {
  Json stragglers = Json::array();
  for (const StragglerPoint& each : report.stragglers) {
    stragglers.push_back({{"factor", each.factor},
                          {"iteration_seconds", each.iteration_seconds},
                          {"plan_seconds", each.point.seconds},
                          {"baseline_joules", each.baseline_joules},
                          {"joules", each.joules}});
  }
  return stragglers;
}

}  // namespace

std::string FrequencyTable(const FrequencyReport& report) {
  std::string text = absl::StrFormat(
      "%s: %s, %s, %s, waiting %g W, %s\n\n", Ascii(report.request.name),
      Ascii(report.request.schedule.name),
      Plural(report.request.schedule.num_ranks, "rank"),
      Plural(report.request.schedule.num_microbatches, "microbatch", "es"),
      report.request.blocking_watts, Plural(report.num_pieces, "piece"));
  absl::StrAppend(&text, PointsTable(report), StragglerTable(report),
                  CapNote(report), UnitNote(report));
  return text;
}

std::string FrequencyConfigJson(const FrequencyReport& report) {
  const FrequencyRequest& request = report.request;
  return DumpJson(Json{{"profile", request.name},
                       {"schedule", request.schedule.name},
                       {"num_ranks", request.schedule.num_ranks},
                       {"num_stages", request.schedule.num_stages},
                       {"num_microbatches", request.schedule.num_microbatches},
                       {"blocking_watts", request.blocking_watts},
                       {"unit_seconds", request.unit_seconds}});
}

std::string FrequencyJson(const FrequencyReport& report) {
  Json points = Json::array();
  for (const FrequencyPoint& point : report.points) {
    points.push_back(JsonOf(point));
  }
  Json json = Json{{"baseline",
                    {{"seconds", report.baseline_seconds},
                     {"joules", report.baseline_joules},
                     {"measured_seconds", report.measured_baseline_seconds},
                     {"measured_joules", report.measured_baseline_joules}}},
                   {"fastest", JsonOf(report.fastest)},
                   {"least_energy", JsonOf(report.least)},
                   {"frontier", std::move(points)},
                   {"infeasible_deadlines", report.infeasible_deadlines},
                   {"stragglers", StragglersJson(report)},
                   {"clocks", ClocksJson(report)},
                   {"num_pieces", report.num_pieces}};
  if (report.request.most_watts > 0) {
    json["power_cap"] = {
        {"watts", report.request.most_watts},
        {"lower_bound_seconds", report.capped_bound_seconds},
        {"plan", report.capped.has_value() ? JsonOf(*report.capped) : Json()}};
  }
  return DumpJson(json);
}

std::string FrequencyCsv(const FrequencyReport& report) {
  std::string text =
      "deadline_seconds,seconds,joules,lower_bound_joules,measured_seconds,"
      "measured_joules\n";
  for (const FrequencyPoint& point : report.points) {
    absl::StrAppend(&text, ShortestNumber(point.deadline_seconds), ",",
                    ShortestNumber(point.seconds), ",",
                    ShortestNumber(point.joules), ",",
                    ShortestNumber(point.lower_bound_joules), ",",
                    ShortestNumber(point.measured_seconds), ",",
                    ShortestNumber(point.measured_joules), "\n");
  }
  return text;
}

std::string ClocksCsv(const FrequencyReport& report,
                      const FrequencyPoint& point) {
  std::string text = absl::StrCat(kClocksHeader, "\n");
  for (size_t pass = 0; pass < report.graph.passes.size(); ++pass) {
    const PassOfGraph& each = report.graph.passes[pass];
    const ClockPoint& clock = point.plan.clocks[pass];
    absl::StrAppend(&text, each.rank, ",", schedules::ToString(each.action),
                    ",", ShortestNumber(clock.megahertz), ",",
                    ShortestNumber(clock.seconds), ",",
                    ShortestNumber(clock.joules), "\n");
  }
  return text;
}

bool IsClocksHeader(absl::string_view line) { return line == kClocksHeader; }

}  // namespace weir::plan
