// SPDX-License-Identifier: Apache-2.0
// A step of a pipeline schedule, with PyTorch's text form: 2F0 is the forward
// of microbatch 0 in stage 2. Extensions of weir: 2B0-3 is one backward of
// microbatches 0 to 3 together, 2O0 and 2R0 move activations to the host and
// back.
#ifndef WEIR_SCHEDULES_ACTION_H_
#define WEIR_SCHEDULES_ACTION_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::schedules {

// What a rank does. A schedule has only the first kNumScheduledOps; the others
// follow from it when it is lowered to a communication program (comm/).
enum class Op : uint8_t {
  kForward,         // F
  kBackward,        // B: input and weight gradient together
  kBackwardInput,   // I: gradient of the stage's input
  kBackwardWeight,  // W: gradient of the stage's weights
  // These two use no compute stream. Each has its own channel, on which it
  // starts after the rank's preceding compute action and the channel's last
  // transfer.
  kOffload,  // O: moves the forward's activations to the host
  kReload,   // R: moves them back before the backward
  // These act on a whole stage and have no microbatch.
  kUnshard,         // UNSHARD: gathers the stage's sharded weights
  kReshard,         // RESHARD: frees the gathered copy
  kReduceGradient,  // REDUCE_GRAD: sums gradients over data-parallel ranks
  // Stage k sends activations to k+1 and gradients to k-1. A receive contains
  // the receiving stage: 2SEND_F0 matches 3RECV_F0.
  kSendForward,
  kReceiveForward,
  kSendBackward,
  kReceiveBackward,
};
inline constexpr int kNumScheduledOps = 6;
inline constexpr int kNumOps = 13;

// The ops that no schedule contains, for "case WEIR_UNSCHEDULED_OPS:". With it
// instead of "default:", a switch that misses a new scheduled op does not
// compile.
#define WEIR_UNSCHEDULED_OPS                                             \
  ::weir::schedules::Op::kUnshard : case ::weir::schedules::Op::kReshard \
      : case ::weir::schedules::Op::kReduceGradient                      \
      : case ::weir::schedules::Op::kSendForward                         \
      : case ::weir::schedules::Op::kReceiveForward                      \
      : case ::weir::schedules::Op::kSendBackward                        \
      : case ::weir::schedules::Op::kReceiveBackward

// Returns the letter of a scheduled op; '?' for another.
char Letter(Op op);

inline bool IsScheduled(Op op) { return op <= Op::kReload; }
inline bool IsSend(Op op) {
  return op == Op::kSendForward || op == Op::kSendBackward;
}
inline bool IsTransfer(Op op) { return op >= Op::kSendForward; }

// Returns true if the op occupies the rank's compute stream.
inline bool IsCompute(Op op) { return op <= Op::kBackwardWeight; }
// Returns true if the op computes the gradient of the stage's input.
inline bool MakesInputGradient(Op op) {
  return op == Op::kBackward || op == Op::kBackwardInput;
}
// Returns true if the op completes the microbatch's weight gradient.
inline bool CompletesGradient(Op op) {
  return op == Op::kBackward || op == Op::kBackwardWeight;
}

inline constexpr int kMaxSpan = 65'535;  // microbatches in one action

struct Action {
  Op op;               // IsScheduled
  int32_t stage;       // 0..num_stages-1, over all chunks
  int32_t microbatch;  // 0..num_batches*num_microbatches-1, over all batches
  // Number of consecutive microbatches, starting with `microbatch`, that the
  // action processes together.
  uint16_t num_microbatches = 1;
  // Overlaps the rank's next action: a forward and a B or I, in either order
  // (PyTorch's OVERLAP_F_B). Both start when both can, and end together.
  bool overlaps_next = false;

  int32_t last_microbatch() const { return microbatch + num_microbatches - 1; }
  bool operator==(const Action&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const Action& action) {
    // Names every field, so that a new one does not compile until it is here.
    const auto& [op, stage, microbatch, num_microbatches, overlaps_next] =
        action;
    return H::combine(std::move(state), op, stage, microbatch, num_microbatches,
                      overlaps_next);
  }
};

// Returns a text such as "2F0" or "2B0-3".
std::string ToString(const Action& action);

// Parses "2F0" or "2B0-3". The whole text must be a single action. Returns
// InvalidArgument otherwise.
absl::StatusOr<Action> ParseAction(absl::string_view text);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_ACTION_H_
