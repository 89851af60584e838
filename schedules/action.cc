// SPDX-License-Identifier: Apache-2.0
#include "schedules/action.h"

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

std::optional<Op> OpOf(char letter) {
  for (int op = 0; op < kNumScheduledOps; ++op) {
    if (Letter(static_cast<Op>(op)) == letter) return static_cast<Op>(op);
  }
  return std::nullopt;
}

absl::Status NotAnAction(absl::string_view text) {
  constexpr size_t kMaxShown = 24;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", absl::CHexEscape(text.substr(0, kMaxShown)),
      text.size() > kMaxShown ? "..." : "",
      "' is not an action, expected <stage><F, B, I, W, O or R><microbatch> "
      "such as 2F0, or <first>-<last> microbatch such as 2B0-3, all below ",
      kMaxActions));
}

}  // namespace

std::optional<int32_t> ConsumeIndex(absl::string_view* text) {
  int64_t value = 0;
  size_t length = 0;
  while (length < text->size() && absl::ascii_isdigit((*text)[length])) {
    value = value * 10 + ((*text)[length++] - '0');
    if (value >= kMaxActions) return std::nullopt;
  }
  if (length == 0) return std::nullopt;
  text->remove_prefix(length);
  return static_cast<int32_t>(value);
}

char Letter(Op op) {
  switch (op) {
    case Op::kForward:
      return 'F';
    case Op::kBackward:
      return 'B';
    case Op::kBackwardInput:
      return 'I';
    case Op::kBackwardWeight:
      return 'W';
    case Op::kOffload:
      return 'O';
    case Op::kReload:
      return 'R';
    case WEIR_UNSCHEDULED_OPS:
      break;
  }
  return '?';
}

std::string ToString(const Action& action) {
  const char letter = Letter(action.op);
  std::string text = absl::StrCat(action.stage, absl::string_view(&letter, 1),
                                  action.microbatch);
  if (action.num_microbatches > 1) {
    absl::StrAppend(&text, "-", action.last_microbatch());
  }
  return text;
}

absl::StatusOr<Action> ParseAction(absl::string_view text) {
  absl::string_view rest = text;
  const std::optional<int32_t> stage = ConsumeIndex(&rest);
  if (!stage || rest.empty()) return NotAnAction(text);
  const std::optional<Op> op = OpOf(rest[0]);
  rest.remove_prefix(1);
  const std::optional<int32_t> microbatch = ConsumeIndex(&rest);
  if (!op || !microbatch) return NotAnAction(text);
  Action action{*op, *stage, *microbatch};
  if (absl::ConsumePrefix(&rest, "-")) {
    const std::optional<int32_t> last = ConsumeIndex(&rest);
    if (!last || *last <= *microbatch || *last - *microbatch >= kMaxSpan) {
      return NotAnAction(text);
    }
    action.num_microbatches = static_cast<uint16_t>(*last - *microbatch + 1);
  }
  if (!rest.empty()) return NotAnAction(text);
  return action;
}

}  // namespace weir::schedules
