// SPDX-License-Identifier: Apache-2.0
#include "schedules/action.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "schedules/limits.h"

namespace weir {
namespace {

std::optional<Op> OpOf(char letter) {
  for (Op op :
       {Op::kForward, Op::kBackward, Op::kBackwardInput, Op::kBackwardWeight}) {
    if (Letter(op) == letter) return op;
  }
  return std::nullopt;
}

// Takes the digits at the front of `text`, nothing when there are none or they
// name an index that no schedule can have.
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

absl::Status NotAnAction(absl::string_view text) {
  constexpr size_t kMaxShown = 24;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", absl::CHexEscape(text.substr(0, kMaxShown)),
      text.size() > kMaxShown ? "..." : "",
      "' is not an action, expected <stage><F, B, I or W><microbatch> such as "
      "2F0, both below ",
      kMaxActions));
}

}  // namespace

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
  }
  return '?';
}

std::string ToString(const Action& action) {
  const char letter = Letter(action.op);
  return absl::StrCat(action.stage, absl::string_view(&letter, 1),
                      action.microbatch);
}

absl::StatusOr<Action> ParseAction(absl::string_view text) {
  absl::string_view rest = text;
  const std::optional<int32_t> stage = ConsumeIndex(&rest);
  if (!stage || rest.empty()) return NotAnAction(text);
  const std::optional<Op> op = OpOf(rest[0]);
  rest.remove_prefix(1);
  const std::optional<int32_t> microbatch = ConsumeIndex(&rest);
  if (!op || !microbatch || !rest.empty()) return NotAnAction(text);
  return Action{*op, *stage, *microbatch};
}

}  // namespace weir
