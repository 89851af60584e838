// SPDX-License-Identifier: Apache-2.0
#include "plan/stragglers/what_if_views.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"

namespace weir::plan {
namespace {

using nlohmann::json;

constexpr size_t kMaxRows = 10;
// A share from which the paper calls workers, or the last stage, the cause.
constexpr double kCauseShare = 0.5;
// Slowdowns below this one are not worth an explanation.
constexpr double kNoSlowdown = 1.03;

std::string SharesBlock(absl::string_view title,
                        const std::vector<Share>& shares) {
  TextTable table;
  table.header = {std::string(title), "slowdown"};
  for (const Share& share : shares) {
    if (table.rows.size() == kMaxRows) break;
    table.rows.push_back({share.name, absl::StrFormat("%.4f", share.slowdown)});
  }
  std::string text = absl::StrCat("\n", PrintTable(table));
  if (shares.size() > kMaxRows) {
    absl::StrAppend(&text, "(", shares.size() - kMaxRows,
                    " more; --format json has all)\n");
  }
  return text;
}

std::string TimesBlock(const WhatIf& what_if) {
  TextTable table;
  table.header = {"step time", "mean", "of the recording"};
  const auto add = [&](const char* name, double seconds) {
    table.rows.push_back(
        {name, FormatSeconds(seconds),
         what_if.recorded_seconds > 0
             ? absl::StrFormat("%.2f %%",
                               100 * seconds / what_if.recorded_seconds)
             : ""});
  };
  add("recorded", what_if.recorded_seconds);
  add("replayed, with gaps", what_if.with_gaps_seconds);
  add("replayed", what_if.replayed_seconds);
  add("ideal, no stragglers", what_if.ideal_seconds);
  return PrintTable(table);
}

std::string SlackBlock(const WhatIf& what_if) {
  TextTable table;
  table.header = {"passes of", "median slack"};
  for (size_t rank = 0; rank < what_if.slack_seconds.size(); ++rank) {
    if (table.rows.size() == kMaxRows) break;
    table.rows.push_back({absl::StrCat("stage ", rank),
                          FormatSeconds(what_if.slack_seconds[rank])});
  }
  return absl::StrCat("\n", PrintTable(table));
}

json SharesJson(const std::vector<Share>& shares) {
  json array = json::array();
  for (const Share& share : shares) {
    json& one = array.emplace_back(
        json{{"name", share.name}, {"slowdown", share.slowdown}});
    if (share.replica < 0) continue;
    one["replica"] = share.replica;
    one["rank"] = share.rank;
  }
  return array;
}

json ExplainedJson(const Explained& explained) {
  return {{"of", explained.of},
          {"seconds_without", explained.seconds_without},
          {"share", explained.share}};
}

}  // namespace

std::string SuspectText(const WhatIf& what_if) {
  if (what_if.slowdown < kNoSlowdown) {
    return absl::StrFormat("no suspect: stragglers cost less than %.0f %%",
                           100 * (kNoSlowdown - 1));
  }
  const Explained& workers = what_if.slowest_workers;
  const Explained& stage = what_if.last_stage;
  const Explained& cause = workers.share >= stage.share ? workers : stage;
  if (cause.share >= kCauseShare) {
    return absl::StrFormat(
        "suspect: %s, which explains %.0f %% of the slowdown",
        absl::StrJoin(cause.of, "; "), 100 * cause.share);
  }
  return absl::StrFormat(
      "suspect: neither the slowest workers (%.0f %%) nor the last stage "
      "(%.0f %%) explain half of the slowdown; the operation with the largest "
      "part is %s",
      100 * workers.share, 100 * stage.share,
      what_if.by_kind.empty() ? "not known" : what_if.by_kind[0].name);
}

std::string WhatIfTable(const results::RecordedRun& run,
                        const WhatIf& what_if) {
  std::string text = absl::StrCat(
      Ascii(run.label), ": ", run.format, ", ", what_if.steps.size(),
      what_if.steps.size() == 1 ? " step" : " steps", ", ", run.num_replicas,
      run.num_replicas == 1 ? " replica" : " replicas", " x ", run.num_ranks,
      " stages\n\n", TimesBlock(what_if));
  absl::StrAppendFormat(&text, "\nslowdown S: %.4f\n", what_if.slowdown);
  absl::StrAppend(&text, SharesBlock("only its own times", what_if.by_kind),
                  SharesBlock("stage", what_if.by_stage),
                  SharesBlock("replica", what_if.by_replica),
                  SharesBlock("worker", what_if.by_worker),
                  SlackBlock(what_if));
  absl::StrAppendFormat(
      &text,
      "\nM_W, part of the slowdown that %s explains (may exceed 1): %.4f\n"
      "M_S, part of the slowdown that the last stage explains (may exceed 1): "
      "%.4f\n%s\n",
      absl::StrJoin(what_if.slowest_workers.of, "; "),
      what_if.slowest_workers.share, what_if.last_stage.share,
      SuspectText(what_if));
  return text;
}

std::string WhatIfJson(const results::RecordedRun& run, const WhatIf& what_if) {
  json steps = json::array();
  for (const StepWhatIf& step : what_if.steps) {
    steps.push_back({{"step", step.step},
                     {"recorded_seconds", step.recorded_seconds},
                     {"with_gaps_seconds", step.with_gaps_seconds},
                     {"replayed_seconds", step.replayed_seconds},
                     {"ideal_seconds", step.ideal_seconds}});
  }
  const json object = {
      {"format", run.format},
      {"num_replicas", run.num_replicas},
      {"num_stages", run.num_ranks},
      {"recorded_seconds", what_if.recorded_seconds},
      {"with_gaps_seconds", what_if.with_gaps_seconds},
      {"replayed_seconds", what_if.replayed_seconds},
      {"ideal_seconds", what_if.ideal_seconds},
      {"slowdown", what_if.slowdown},
      {"by_kind", SharesJson(what_if.by_kind)},
      {"by_stage", SharesJson(what_if.by_stage)},
      {"by_replica", SharesJson(what_if.by_replica)},
      {"by_worker", SharesJson(what_if.by_worker)},
      {"slack_seconds_by_stage", what_if.slack_seconds},
      {"slowest_workers", ExplainedJson(what_if.slowest_workers)},
      {"last_stage", ExplainedJson(what_if.last_stage)},
      {"suspect", SuspectText(what_if)},
      {"steps", std::move(steps)}};
  return DumpJson(object);
}

}  // namespace weir::plan
