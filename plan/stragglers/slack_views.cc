// SPDX-License-Identifier: Apache-2.0
#include "plan/stragglers/slack_views.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "base/text_table.h"
#include "base/units.h"

namespace weir::plan {
namespace {

using nlohmann::json;

void AddRow(const NamedSlack& named, const std::string& what,
            std::vector<double> slack, TextTable* table) {
  const double step = named.slack.batch_seconds;
  const sim::SlackStatistics of =
      sim::StatisticsOfSlack(std::move(slack), named.slack.makespan_seconds);
  table->rows.push_back(
      {named.label, FormatSeconds(step), what, absl::StrCat(of.count),
       absl::StrCat(of.num_critical), FormatSeconds(of.median_seconds),
       FormatSeconds(of.largest_seconds),
       step > 0 ? FormatPercent(of.largest_seconds / step) : ""});
}

}  // namespace

std::string SlackTable(std::span<const NamedSlack> all) {
  TextTable table;
  table.header = {"schedule", "step",         "what",    "number",
                  "critical", "median slack", "largest", "of the step"};
  table.left = {true, false, true};
  std::string notes;
  for (const NamedSlack& named : all) {
    std::map<int, std::vector<double>> passes;
    for (const sim::PassSlack& pass : named.slack.passes) {
      if (pass.replica != 0) continue;
      passes[static_cast<int>(pass.action.op)].push_back(pass.slack_seconds);
    }
    for (auto& [op, slack] : passes) {
      AddRow(named, {schedules::Letter(static_cast<schedules::Op>(op))},
             std::move(slack), &table);
    }
    std::map<bool, std::vector<double>> transfers;
    for (const sim::TransferSlack& transfer : named.slack.transfers) {
      if (transfer.replica != 0) continue;
      transfers[transfer.gradient].push_back(transfer.slack_seconds);
    }
    for (auto& [gradient, slack] : transfers) {
      AddRow(named, gradient ? "send B" : "send F", std::move(slack), &table);
    }
    if (named.slack.num_batches > 1) {
      absl::StrAppend(&notes, "\n", named.label, ": ", named.slack.num_batches,
                      " batches were simulated, and their passes counted; "
                      "slack is until the end of the last one, after ",
                      FormatSeconds(named.slack.makespan_seconds), "\n");
    }
    if (!named.slack.is_exact) {
      absl::StrAppend(&notes, "\n", named.label,
                      ": transfers share links or slow passes down, so the "
                      "slack assumes that all other durations remain as "
                      "simulated\n");
    }
  }
  return absl::StrCat(PrintTable(table), notes);
}

std::string SlackJson(std::span<const NamedSlack> all) {
  json schedules = json::array();
  for (const NamedSlack& named : all) {
    json passes = json::array(), transfers = json::array();
    for (const sim::PassSlack& pass : named.slack.passes) {
      passes.push_back({{"replica", pass.replica},
                        {"rank", pass.rank},
                        {"action", schedules::ToString(pass.action)},
                        {"start_seconds", pass.start_seconds},
                        {"end_seconds", pass.end_seconds},
                        {"slack_seconds", pass.slack_seconds}});
    }
    for (const sim::TransferSlack& transfer : named.slack.transfers) {
      transfers.push_back({{"replica", transfer.replica},
                           {"rank", transfer.rank},
                           {"gradient", transfer.gradient},
                           {"stage", transfer.stage},
                           {"microbatch", transfer.microbatch},
                           {"start_seconds", transfer.start_seconds},
                           {"end_seconds", transfer.end_seconds},
                           {"slack_seconds", transfer.slack_seconds}});
    }
    schedules.push_back({{"schedule", named.schedule},
                         {"batch_seconds", named.slack.batch_seconds},
                         {"num_batches", named.slack.num_batches},
                         {"makespan_seconds", named.slack.makespan_seconds},
                         {"is_exact", named.slack.is_exact},
                         {"passes", std::move(passes)},
                         {"transfers", std::move(transfers)}});
  }
  return DumpJson(json{{"schedules", std::move(schedules)}});
}

}  // namespace weir::plan
