// SPDX-License-Identifier: Apache-2.0
// A schedule lowered to what every rank posts: passes and transfers in one
// order, in the words of PyTorch's compute_comms format (2F0, 2SEND_F0,
// 2UNSHARD). A Schedule never holds these: they are derived from it, or read
// from a file and checked against it.
#ifndef WEIR_SCHEDULES_COMM_PROGRAM_H_
#define WEIR_SCHEDULES_COMM_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/action.h"
#include "schedules/schedule.h"

namespace weir {

// The first ones are those of Op, with its values.
enum class CommOp : uint8_t {
  kForward,
  kBackward,
  kBackwardInput,
  kBackwardWeight,
  kOffload,
  kReload,
  // Of a whole stage, without a microbatch.
  kUnshard,         // UNSHARD: gathers its sharded weights
  kReshard,         // RESHARD: drops the gathered copy
  kReduceGradient,  // REDUCE_GRAD: sums its gradients over the data ranks
  // Stage k sends activations to k+1 and gradients to k-1; the peer's receive
  // names the peer's stage: 2SEND_F0 is met by 3RECV_F0.
  kSendForward,
  kReceiveForward,
  kSendBackward,
  kReceiveBackward,
};
inline constexpr int kNumCommOps = 13;

inline bool IsPass(CommOp op) { return op <= CommOp::kReload; }
inline bool IsSend(CommOp op) {
  return op == CommOp::kSendForward || op == CommOp::kSendBackward;
}
inline bool IsTransfer(CommOp op) { return op >= CommOp::kSendForward; }

struct CommAction {
  CommOp op;
  // Runs together with the rank's next action: an overlapped pair of passes, or
  // transfers that are posted as one batch.
  bool with_next = false;
  uint16_t num_microbatches = 1;
  int32_t stage = 0;
  int32_t microbatch = -1;  // -1 where the op has none

  int32_t last_microbatch() const { return microbatch + num_microbatches - 1; }
  bool operator==(const CommAction&) const = default;
};

struct CommProgram {
  std::vector<std::vector<CommAction>> ranks;  // [rank], in order
};

CommAction FromAction(const Action& action);
// REQUIRES: IsPass(action.op).
Action ToAction(const CommAction& action);

// The passes of the program in their order.
std::vector<std::vector<Action>> PassesOf(const CommProgram& program);

// The schedule's actions and nothing else.
CommProgram WithoutTransfers(const Schedule& schedule);

// Prints "2F0", "3SEND_B1", "0UNSHARD".
std::string ToString(const CommAction& action);

// Parses one action; the whole text must be one.
absl::StatusOr<CommAction> ParseCommAction(absl::string_view text);

}  // namespace weir

#endif  // WEIR_SCHEDULES_COMM_PROGRAM_H_
