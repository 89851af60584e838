// SPDX-License-Identifier: Apache-2.0
#include "results/import/operation_names.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "schedules/comm/comm_program.h"

namespace weir::results {
namespace {

struct TimerName {
  absl::string_view name;
  RecordedKind kind;
};
constexpr TimerName kTimerNames[] = {
    {"forward-compute", RecordedKind::kForward},
    {"backward-compute", RecordedKind::kBackward},
    {"forward-send", RecordedKind::kSendForward},
    {"forward-recv", RecordedKind::kReceiveForward},
    {"backward-send", RecordedKind::kSendBackward},
    {"backward-recv", RecordedKind::kReceiveBackward},
    {"params-all-gather", RecordedKind::kWeightGather},
    {"grads-reduce-scatter", RecordedKind::kGradientReduction},
    {"grads-all-reduce", RecordedKind::kGradientReduction},
    {"separate-grads-all-reduce", RecordedKind::kGradientReduction},
    {"layernorm-grads-all-reduce", RecordedKind::kNormReduction},
    {"embedding-grads-all-reduce", RecordedKind::kTiedReduction},
    {"optimizer-clip-main-grad", RecordedKind::kGradientClip},
    {"optimizer", RecordedKind::kOptimizerStep},
    {"gc", RecordedKind::kGarbageCollection},
};

std::optional<RecordedKind> KindOf(schedules::Op op) {
  switch (op) {
    case schedules::Op::kForward:
      return RecordedKind::kForward;
    case schedules::Op::kBackward:
      return RecordedKind::kBackward;
    case schedules::Op::kBackwardInput:
      return RecordedKind::kBackwardInput;
    case schedules::Op::kBackwardWeight:
      return RecordedKind::kBackwardWeight;
    case schedules::Op::kSendForward:
      return RecordedKind::kSendForward;
    case schedules::Op::kSendBackward:
      return RecordedKind::kSendBackward;
    case schedules::Op::kReceiveForward:
      return RecordedKind::kReceiveForward;
    case schedules::Op::kReceiveBackward:
      return RecordedKind::kReceiveBackward;
    case schedules::Op::kReduceGradient:
      return RecordedKind::kGradientReduction;
    case schedules::Op::kUnshard:
      return RecordedKind::kWeightGather;
    default:
      return std::nullopt;
  }
}

std::optional<NamedOperation> ParseAction(absl::string_view name) {
  const auto action = schedules::ParseCommAction(name);
  if (!action.ok()) return std::nullopt;
  const auto kind = KindOf(action->op);
  if (!kind.has_value()) return std::nullopt;
  NamedOperation operation;
  operation.kind = *kind;
  operation.stage = action->stage;
  operation.microbatch =
      IsPass(*kind) || IsMessage(*kind) ? action->microbatch : -1;
  return operation;
}

// "F3.0" or "F3.0.0".
std::optional<NamedOperation> ParseZeroBubble(absl::string_view name) {
  if (name.size() < 4 || !absl::StrContains("FBW", name[0])) {
    return std::nullopt;
  }
  const std::vector<absl::string_view> parts =
      absl::StrSplit(name.substr(1), '.');
  NamedOperation operation;
  int sequence_part = 0;
  if (parts.size() < 2 || parts.size() > 3 ||
      !absl::SimpleAtoi(parts[0], &operation.microbatch) ||
      !absl::SimpleAtoi(parts[1], &operation.chunk) ||
      operation.microbatch < 0 || operation.chunk < 0 ||
      (parts.size() == 3 && !absl::SimpleAtoi(parts[2], &sequence_part))) {
    return std::nullopt;
  }
  operation.kind = name[0] == 'F'   ? RecordedKind::kForward
                   : name[0] == 'B' ? RecordedKind::kBackward
                                    : RecordedKind::kBackwardWeight;
  operation.input_only = name[0] == 'B';
  return operation;
}

}  // namespace

std::optional<RecordedKind> ParseTimerName(absl::string_view name) {
  for (const TimerName& timer : kTimerNames) {
    if (timer.name == name) return timer.kind;
  }
  return std::nullopt;
}

std::optional<NamedOperation> ParseOperationName(absl::string_view name) {
  if (const auto kind = ParseTimerName(name); kind.has_value()) {
    NamedOperation operation;
    operation.kind = *kind;
    return operation;
  }
  if (absl::ConsumePrefix(&name, "PP:")) return ParseAction(name);
  for (const auto& [prefix, kind] : {std::pair<absl::string_view, RecordedKind>{
                                         "Forward ", RecordedKind::kForward},
                                     {"Backward ", RecordedKind::kBackward}}) {
    NamedOperation operation;
    operation.kind = kind;
    absl::string_view number = name;
    if (absl::ConsumePrefix(&number, prefix) &&
        absl::SimpleAtoi(number, &operation.microbatch) &&
        operation.microbatch >= 0) {
      return operation;
    }
  }
  return ParseZeroBubble(name);
}

}  // namespace weir::results
