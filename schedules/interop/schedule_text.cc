// SPDX-License-Identifier: Apache-2.0
#include "schedules/interop/schedule_text.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "schedules/interop/legacy_dialect.h"
#include "schedules/limits.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kOverlap = "OVERLAP_F_B";
// Enough to recognize the actual format of the file.
constexpr size_t kMaxErrors = 5;

class Parser {
 public:
  Parser(absl::string_view label, CsvDialect dialect) : dialect_(dialect) {
    rows_.label = std::string(label);
  }

  absl::StatusOr<ScheduleRows> Parse(absl::string_view text) && {
    // Byte order mark, written by spreadsheets.
    absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
    text = absl::StripTrailingAsciiWhitespace(text);
    if (text.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(rows_.label,
                       ":1:1: is empty, expected a line of actions for each "
                       "rank"));
    }
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      line_ = line;
      if (rows_.program.ranks.size() == kMaxRanks) {
        ++num_errors_;
        errors_.push_back(absl::StrCat(rows_.label, ":", kMaxRanks + 1,
                                       ":1: expected at most ", kMaxRanks,
                                       " lines, one for each rank"));
        break;
      }
      rows_.program.ranks.emplace_back();
      rows_.places.emplace_back();
      rows_.first_idle_column.push_back(-1);
      if (absl::StripAsciiWhitespace(line).empty()) {
        Error(line, absl::StrCat("is empty, expected the actions of rank ",
                                 rows_.program.ranks.size() - 1));
        continue;
      }
      ParseRow();
    }
    if (legacy_.column > 0 && dialect_ == CsvDialect::kPyTorch) {
      return LegacyError(rows_, legacy_);
    }
    if (num_errors_ > errors_.size()) {
      errors_.push_back(absl::StrCat(rows_.label, ": and ",
                                     num_errors_ - errors_.size(),
                                     " more cells with errors"));
    }
    if (!errors_.empty()) {
      return absl::InvalidArgumentError(absl::StrJoin(errors_, "\n"));
    }
    if (dialect_ == CsvDialect::kPyTorchLegacy) {
      RETURN_IF_ERROR(ConvertLegacy(&rows_, whole_backwards_));
    } else {
      RETURN_IF_ERROR(CheckNotLegacy(rows_));
    }
    return std::move(rows_);
  }

 private:
  void Error(absl::string_view at, absl::string_view what) {
    if (++num_errors_ > kMaxErrors) return;
    errors_.push_back(absl::StrCat(rows_.label, ":", rows_.program.ranks.size(),
                                   ":", Column(at), ": ", what));
  }

  int32_t Column(absl::string_view at) const {
    return static_cast<int32_t>(at.data() - line_.data()) + 1;
  }

  void ParseRow() {
    int32_t step = 0;
    for (absl::string_view cell : absl::StrSplit(line_, ',')) {
      const absl::string_view text = absl::StripAsciiWhitespace(cell);
      int32_t& idle = rows_.first_idle_column.back();
      if (!text.empty()) {
        ParseCell(text, step);
      } else if (idle < 0) {
        idle = Column(cell);
      }
      ++step;
    }
  }

  void ParseCell(absl::string_view text, int32_t step) {
    absl::string_view inside = text;
    if (!absl::ConsumePrefix(&inside, "(")) {
      Take(text, step);
      return;
    }
    const size_t end = inside.find(')');
    if (end == absl::string_view::npos || inside.substr(end + 1) != kOverlap) {
      Error(
          text,
          absl::StrCat(
              "expected ", kOverlap,
              " after the actions in parentheses, as in (0F7;7B3)OVERLAP_F_B"));
      return;
    }
    inside = inside.substr(0, end);
    const std::vector<absl::string_view> parts = absl::StrSplit(inside, ';');
    if (parts.size() != 2) {
      Error(text, absl::StrCat("overlaps ", parts.size(),
                               " actions, expected two, as in "
                               "(0F7;7B3)OVERLAP_F_B"));
      return;
    }
    if (Take(absl::StripAsciiWhitespace(parts[0]), step)) {
      rows_.program.ranks.back().back().with_next = true;
    }
    Take(absl::StripAsciiWhitespace(parts[1]), step);
  }

  bool Take(absl::string_view text, int32_t step) {
    absl::StatusOr<CommAction> action = ParseCommAction(text);
    const std::string whole = WholeBackwardOfLegacy(text);
    if (!action.ok() && !whole.empty()) {
      action = ParseCommAction(whole);
      const int32_t rank = static_cast<int32_t>(rows_.places.size()) - 1;
      const int32_t position = static_cast<int32_t>(rows_.places.back().size());
      if (legacy_.column == 0) {
        legacy_ = {rank, Column(text), std::string(text)};
      }
      whole_backwards_.push_back({rank, position});
    }
    if (!action.ok()) {
      Error(text, action.status().message());
      return false;
    }
    rows_.program.ranks.back().push_back(*action);
    rows_.places.back().push_back({step, Column(text)});
    return true;
  }

  const CsvDialect dialect_;
  ScheduleRows rows_;
  absl::string_view line_;
  std::vector<std::string> errors_;
  size_t num_errors_ = 0;
  LegacySign legacy_;
  std::vector<LegacyPlace> whole_backwards_;
};

template <typename Actions, typename Overlaps>
void AppendRow(const Actions& actions, const Overlaps& overlaps,
               std::string* text) {
  bool inside = false;
  const char* separator = "";
  for (const auto& action : actions) {
    const bool opens = !inside && overlaps(action);
    absl::StrAppend(text, separator, opens ? "(" : "", ToString(action));
    if (inside) absl::StrAppend(text, ")", kOverlap);
    inside = opens;
    separator = opens ? ";" : ",";
  }
  *text += '\n';
}

}  // namespace

bool ScheduleRows::has_transfers() const {
  return std::any_of(
      program.ranks.begin(), program.ranks.end(), [](const auto& actions) {
        return std::any_of(
            actions.begin(), actions.end(),
            [](const CommAction& action) { return !IsScheduled(action.op); });
      });
}

Place ScheduleRows::InFile(Place pass) const {
  const std::vector<CommAction>& row = program.ranks[pass.rank];
  int32_t left = pass.position;
  for (int32_t i = 0; i < std::ssize(row); ++i) {
    if (IsScheduled(row[i].op) && left-- == 0) return {pass.rank, i};
  }
  return {};
}

std::string ScheduleRows::NameOf(Place action) const {
  return absl::StrCat(label, ":", action.rank + 1, ":",
                      places[action.rank][action.position].column);
}

absl::StatusOr<ScheduleRows> ParseScheduleRows(absl::string_view label,
                                               absl::string_view text,
                                               CsvDialect dialect) {
  return Parser(label, dialect).Parse(text);
}

absl::StatusOr<std::vector<std::vector<Action>>> ParseCsv(
    absl::string_view label, absl::string_view text) {
  ASSIGN_OR_RETURN(const ScheduleRows rows, ParseScheduleRows(label, text));
  for (size_t rank = 0; rank < rows.program.ranks.size(); ++rank) {
    const std::vector<CommAction>& actions = rows.program.ranks[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      if (IsScheduled(actions[i].op)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          label, ":", rank + 1, ":", rows.places[rank][i].column, ": '",
          ToString(actions[i]), "' is a transfer, expected only passes"));
    }
  }
  return PassesOf(rows.program);
}

std::string PrintCsv(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    AppendRow(
        actions, [](const Action& action) { return action.overlaps_next; },
        &text);
  }
  return text;
}

std::string PrintCsv(const CommProgram& program) {
  std::string text;
  for (const std::vector<CommAction>& actions : program.ranks) {
    AppendRow(
        actions,
        [](const CommAction& action) {
          return action.with_next && IsScheduled(action.op);
        },
        &text);
  }
  return text;
}

absl::Status CheckPyTorchReads(const Schedule& schedule) {
  const Action* span = nullptr;
  const Action* channel = nullptr;
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    for (const Action& action : actions) {
      if (action.num_microbatches > 1 && span == nullptr) span = &action;
      if (!IsCompute(action.op) && channel == nullptr) channel = &action;
    }
  }
  std::vector<std::string> lines;
  const auto add = [&](const std::string& what) {
    lines.push_back(absl::StrCat(schedule.name, ": ", what));
  };
  if (span != nullptr) {
    add(absl::StrCat(ToString(*span),
                     " covers several microbatches: PyTorch requires one "
                     "action per microbatch"));
  }
  if (channel != nullptr) {
    add(absl::StrCat(ToString(*channel),
                     " moves activations to the host or back: PyTorch has no "
                     "such action"));
  }
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    const std::vector<int> ranks = schedule.RanksOf(stage);
    if (ranks.size() < 2) continue;
    add(absl::StrCat("stage ", stage, " is replicated on ranks ",
                     absl::StrJoin(ranks, " and "),
                     ": PyTorch runs a stage on one rank"));
    break;
  }
  if (schedule.forward_only) {
    add("has no backward: PyTorch rejects a file without backwards");
  }
  if (!schedule.flush) {
    add("has no flush: PyTorch steps the optimizer once, after all "
        "microbatches");
  }
  if (lines.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrJoin(lines, "\n"));
}

}  // namespace weir::schedules
