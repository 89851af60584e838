// SPDX-License-Identifier: Apache-2.0
// One step of a pipeline schedule, with PyTorch's text form: 2F0 is the forward
// of microbatch 0 in stage 2.
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
};

char Letter(Op op);

struct Action {
  Op op;
  int32_t stage;       // 0..num_stages-1, over all chunks
  int32_t microbatch;  // 0..num_batches*num_microbatches-1, over all batches

  bool operator==(const Action&) const = default;
};

// Prints "2F0".
std::string ToString(const Action& action);

// Parses "2F0"; the whole text must be one action.
absl::StatusOr<Action> ParseAction(absl::string_view text);

}  // namespace weir

#endif  // WEIR_SCHEDULES_ACTION_H_
