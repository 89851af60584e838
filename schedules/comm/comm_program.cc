// SPDX-License-Identifier: Apache-2.0
#include "schedules/comm/comm_program.h"

#include <array>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "schedules/action_text.h"
#include "schedules/limits.h"

namespace weir::schedules {
namespace {

constexpr std::array<absl::string_view, kNumOps> kWords = {
    "F",       "B",           "I",      "W",      "O",      "R",     "UNSHARD",
    "RESHARD", "REDUCE_GRAD", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};

absl::string_view Word(Op op) { return kWords[static_cast<size_t>(op)]; }

bool HasMicrobatch(Op op) { return IsScheduled(op) || IsTransfer(op); }

// Consumes an op in capitals, such as "F" or "SEND_F".
std::optional<Op> ConsumeOp(absl::string_view* text) {
  size_t length = 0;
  while (length < text->size() &&
         (absl::ascii_isupper((*text)[length]) || (*text)[length] == '_')) {
    ++length;
  }
  for (int op = 0; op < kNumOps; ++op) {
    if (kWords[op] != text->substr(0, length)) continue;
    text->remove_prefix(length);
    return static_cast<Op>(op);
  }
  return std::nullopt;
}

absl::Status NotACommAction(absl::string_view text) {
  constexpr size_t kMaxShown = 24;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", absl::CHexEscape(text.substr(0, kMaxShown)),
      text.size() > kMaxShown ? "..." : "",
      "' is not an action, expected <stage><F, B, I, W, O, R, SEND_F, RECV_F, "
      "SEND_B or RECV_B><microbatch> such as 2F0, <first>-<last> microbatch "
      "such as 2B0-3, <stage><UNSHARD, RESHARD or REDUCE_GRAD>, or "
      "(0F7;7B3)OVERLAP_F_B, all numbers below ",
      kMaxActions));
}

}  // namespace

CommAction FromAction(const Action& action) {
  return {action.op, action.overlaps_next, action.num_microbatches,
          action.stage, action.microbatch};
}

Action ToAction(const CommAction& action) {
  return {action.op, action.stage, action.microbatch, action.num_microbatches,
          action.with_next};
}

std::vector<std::vector<Action>> PassesOf(const CommProgram& program) {
  std::vector<std::vector<Action>> rows(program.ranks.size());
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    for (const CommAction& action : program.ranks[rank]) {
      if (IsScheduled(action.op)) rows[rank].push_back(ToAction(action));
    }
  }
  return rows;
}

CommProgram WithoutTransfers(const Schedule& schedule) {
  CommProgram program;
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    std::vector<CommAction>& row = program.ranks.emplace_back();
    row.reserve(actions.size());
    for (const Action& action : actions) row.push_back(FromAction(action));
  }
  return program;
}

std::string ToString(const CommAction& action) {
  std::string text = absl::StrCat(action.stage, Word(action.op));
  if (action.microbatch >= 0) absl::StrAppend(&text, action.microbatch);
  if (action.num_microbatches > 1) {
    absl::StrAppend(&text, "-", action.last_microbatch());
  }
  return text;
}

absl::StatusOr<CommAction> ParseCommAction(absl::string_view text) {
  absl::string_view rest = text;
  const std::optional<int32_t> stage = ConsumeIndex(&rest);
  if (!stage) return NotACommAction(text);
  const std::optional<Op> op = ConsumeOp(&rest);
  if (!op) return NotACommAction(text);
  CommAction action{*op};
  action.stage = *stage;
  if (HasMicrobatch(*op)) {
    const std::optional<int32_t> microbatch = ConsumeIndex(&rest);
    if (!microbatch) return NotACommAction(text);
    action.microbatch = *microbatch;
    if (absl::ConsumePrefix(&rest, "-")) {
      const std::optional<int32_t> last = ConsumeIndex(&rest);
      if (!last || *last <= *microbatch || *last - *microbatch >= kMaxSpan) {
        return NotACommAction(text);
      }
      action.num_microbatches = static_cast<uint16_t>(*last - *microbatch + 1);
    }
  }
  if (!rest.empty()) return NotACommAction(text);
  return action;
}

}  // namespace weir::schedules
