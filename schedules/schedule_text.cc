// SPDX-License-Identifier: Apache-2.0
#include "schedules/schedule_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "schedules/limits.h"

namespace weir {
namespace {

// Enough to see what kind of file it is instead.
constexpr size_t kMaxErrors = 20;

// Parses one line; column numbers count bytes from 1.
std::vector<Action> ParseRow(absl::string_view where, absl::string_view line,
                             std::vector<std::string>* errors) {
  std::vector<Action> actions;
  for (absl::string_view cell : absl::StrSplit(line, ',')) {
    const absl::string_view text = absl::StripAsciiWhitespace(cell);
    if (text.empty()) continue;
    absl::StatusOr<Action> action = ParseAction(text);
    if (action.ok()) {
      actions.push_back(*action);
    } else if (errors->size() < kMaxErrors) {
      errors->push_back(absl::StrCat(where, ":", text.data() - line.data() + 1,
                                     ": ", action.status().message()));
    }
  }
  return actions;
}

}  // namespace

std::string PrintCsv(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    const char* separator = "";
    for (const Action& action : actions) {
      absl::StrAppend(&text, separator, ToString(action));
      separator = ",";
    }
    text += '\n';
  }
  return text;
}

absl::StatusOr<std::vector<std::vector<Action>>> ParseCsv(
    absl::string_view label, absl::string_view text) {
  std::vector<std::vector<Action>> rows;
  std::vector<std::string> errors;
  text = absl::StripTrailingAsciiWhitespace(text);
  if (text.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ":1:1: is empty, expected a line of actions for each rank"));
  }
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string where = absl::StrCat(label, ":", rows.size() + 1);
    if (rows.size() == kMaxRanks) {
      errors.push_back(absl::StrCat(where, ":1: expected at most ", kMaxRanks,
                                    " lines, one for each rank"));
      break;
    }
    if (absl::StripAsciiWhitespace(line).empty() &&
        errors.size() < kMaxErrors) {
      errors.push_back(absl::StrCat(where,
                                    ":1: is empty, expected the actions of "
                                    "rank ",
                                    rows.size()));
    }
    rows.push_back(ParseRow(where, line, &errors));
  }
  if (errors.empty()) return rows;
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

absl::StatusOr<Schedule> ScheduleFromRows(
    absl::string_view name, std::vector<std::vector<Action>> rank_actions) {
  Problems problems(name);
  int64_t num_actions = 0;
  int last_stage = 0;
  int last_microbatch = 0;
  for (const std::vector<Action>& actions : rank_actions) {
    num_actions += std::ssize(actions);
    for (const Action& action : actions) {
      last_stage = std::max(last_stage, action.stage);
      last_microbatch = std::max(last_microbatch, action.last_microbatch());
    }
  }
  // Checked before a table of stages is made: "99999999F0" is ten bytes.
  if (last_stage >= num_actions) {
    problems.Add("", absl::StrCat("has ", num_actions,
                                  " actions, expected some of every stage up "
                                  "to ",
                                  last_stage));
    return problems.ToStatus();
  }
  Schedule schedule;
  schedule.name = std::string(name);
  schedule.num_ranks = static_cast<int>(rank_actions.size());
  schedule.num_stages = last_stage + 1;
  schedule.num_microbatches = last_microbatch + 1;
  schedule.weights.microbatches_per_update = schedule.num_microbatches;
  constexpr int kNowhere = -1;
  std::vector<int>& route =
      schedule.routes.emplace_back(schedule.num_stages, kNowhere);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    for (const Action& action : rank_actions[rank]) {
      int& holder = route[action.stage];
      if (holder != kNowhere && holder != rank) {
        problems.Add("", absl::StrCat("rank ", rank, ": ", ToString(action),
                                      " is of stage ", action.stage,
                                      ", which rank ", holder, " holds"));
        RETURN_IF_ERROR(problems.ToStatus());
      }
      holder = rank;
    }
  }
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    if (route[stage] != kNowhere) continue;
    problems.Add("", absl::StrCat("stage ", stage, " has no action"));
    RETURN_IF_ERROR(problems.ToStatus());
  }
  schedule.rank_actions = std::move(rank_actions);
  return schedule;
}

}  // namespace weir
