// SPDX-License-Identifier: Apache-2.0
// One step of a pipeline schedule, with PyTorch's text form: 2F0 is the forward
// of microbatch 0 in stage 2. Beyond PyTorch's: 2B0-3 is one backward of the
// microbatches 0 to 3 together, 2O0 and 2R0 move activations to the host and
// back.
#ifndef WEIR_SCHEDULES_ACTION_H_
#define WEIR_SCHEDULES_ACTION_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

enum class Op : uint8_t {
  kForward,         // F
  kBackward,        // B: input and weight gradient in one piece
  kBackwardInput,   // I: gradient of the stage's input
  kBackwardWeight,  // W: gradient of the stage's weights
  // These two occupy no compute: each has a channel of its own, on which it
  // starts after the rank's action before it and the channel's last transfer.
  kOffload,  // O: the forward's activations go to the host
  kReload,   // R: and come back before the backward
};
inline constexpr int kNumOps = 6;

char Letter(Op op);

// Occupies the rank's compute stream.
inline bool IsCompute(Op op) { return op <= Op::kBackwardWeight; }
// Makes the gradient of the stage's input.
inline bool MakesInputGradient(Op op) {
  return op == Op::kBackward || op == Op::kBackwardInput;
}
// Leaves nothing of the microbatch's weight gradient to do.
inline bool CompletesGradient(Op op) {
  return op == Op::kBackward || op == Op::kBackwardWeight;
}

inline constexpr int kMaxSpan = 65'535;  // microbatches in one action

struct Action {
  Op op;
  int32_t stage;       // 0..num_stages-1, over all chunks
  int32_t microbatch;  // 0..num_batches*num_microbatches-1, over all batches
  // Consecutive microbatches from `microbatch` on that it does in one piece.
  uint16_t num_microbatches = 1;
  // Runs together with the rank's next action: a forward and a B or I, either
  // first (PyTorch's OVERLAP_F_B). Both start when both can, and end together.
  bool overlaps_next = false;

  int32_t last_microbatch() const { return microbatch + num_microbatches - 1; }
  bool operator==(const Action&) const = default;
};

// Prints "2F0", "2B0-3".
std::string ToString(const Action& action);

// Parses "2F0" or "2B0-3"; the whole text must be one action.
absl::StatusOr<Action> ParseAction(absl::string_view text);

}  // namespace weir

#endif  // WEIR_SCHEDULES_ACTION_H_
