// SPDX-License-Identifier: Apache-2.0
#include "schedules/interop/legacy_dialect.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weir::schedules {
namespace {

using Key = std::pair<int32_t, int32_t>;  // stage, microbatch

Key KeyOf(const CommAction& action) {
  return {action.stage, action.microbatch};
}

std::string Where(const ScheduleRows& rows, size_t rank, int32_t column) {
  return absl::StrCat(rows.label, ":", rank + 1, ":", column);
}

// Returns the first action with this op; column 0 if there is none.
LegacySign FirstOf(const ScheduleRows& rows, Op op) {
  for (size_t rank = 0; rank < rows.places.size(); ++rank) {
    const std::vector<CommAction>& actions = rows.program.ranks[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].op != op) continue;
      return {static_cast<int32_t>(rank), rows.places[rank][i].column,
              ToString(actions[i])};
    }
  }
  return {};
}

absl::Status Mixed(const ScheduleRows& rows, const std::string& where,
                   const std::string& what) {
  const LegacySign today = FirstOf(rows, Op::kBackwardInput);
  return absl::InvalidArgumentError(absl::StrCat(
      where, ": ", what, ", but '", today.text, "' at ",
      Where(rows, today.rank, today.column),
      " is in the current dialect, expected one dialect per file"));
}

}  // namespace

std::string WholeBackwardOfLegacy(absl::string_view text) {
  const size_t at = text.find("BW");
  if (at == absl::string_view::npos) return "";
  return absl::StrCat(text.substr(0, at), "B", text.substr(at + 2));
}

absl::Status LegacyError(const ScheduleRows& rows, const LegacySign& sign) {
  const std::string where = Where(rows, sign.rank, sign.column);
  if (FirstOf(rows, Op::kBackwardInput).column > 0) {
    return Mixed(
        rows, where,
        absl::StrCat("'", sign.text, "' is in PyTorch's dialect of 2024"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      where, ": '", sign.text,
      "' is in PyTorch's dialect of 2024, in which B is the input gradient "
      "(now I) and BW the whole backward (now B); expected the current "
      "dialect, or --dialect pytorch-legacy to convert it"));
}

absl::Status CheckNotLegacy(const ScheduleRows& rows) {
  if (FirstOf(rows, Op::kBackwardWeight).column == 0 ||
      FirstOf(rows, Op::kBackward).column == 0) {
    return absl::OkStatus();
  }
  // Sorted sets of pairs.
  std::vector<Key> inputs, wholes;
  for (const auto& actions : rows.program.ranks) {
    for (const CommAction& action : actions) {
      if (action.op == Op::kBackwardInput) inputs.push_back(KeyOf(action));
      if (action.op == Op::kBackward) wholes.push_back(KeyOf(action));
    }
  }
  std::sort(inputs.begin(), inputs.end());
  std::sort(wholes.begin(), wholes.end());
  const auto holds = [](const std::vector<Key>& keys,
                        const CommAction& action) {
    return std::binary_search(keys.begin(), keys.end(), KeyOf(action));
  };
  for (size_t rank = 0; rank < rows.places.size(); ++rank) {
    const std::vector<CommAction>& actions = rows.program.ranks[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      const CommAction& action = actions[i];
      if (action.op != Op::kBackwardWeight || holds(inputs, action) ||
          !holds(wholes, action)) {
        continue;
      }
      LegacySign sign = {static_cast<int32_t>(rank),
                         rows.places[rank][i].column, ToString(action)};
      absl::StrAppend(&sign.text, " next to ", action.stage, "B",
                      action.microbatch);
      return LegacyError(rows, sign);
    }
  }
  return absl::OkStatus();
}

absl::Status ConvertLegacy(ScheduleRows* rows,
                           const std::vector<LegacyPlace>& whole_backwards) {
  const LegacySign today = FirstOf(*rows, Op::kBackwardInput);
  if (today.column > 0) {
    return Mixed(*rows, Where(*rows, today.rank, today.column),
                 "the dialect of 2024 has no I");
  }
  size_t next = 0;  // whole_backwards are in file order
  for (size_t rank = 0; rank < rows->places.size(); ++rank) {
    std::vector<CommAction>& actions = rows->program.ranks[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      const bool whole =
          next < whole_backwards.size() &&
          whole_backwards[next].rank == static_cast<int32_t>(rank) &&
          whole_backwards[next].position == static_cast<int32_t>(i);
      if (whole) {
        ++next;
      } else if (actions[i].op == Op::kBackward) {
        actions[i].op = Op::kBackwardInput;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace weir::schedules
