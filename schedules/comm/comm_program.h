// SPDX-License-Identifier: Apache-2.0
// A schedule lowered to the operations that each rank posts: passes and
// transfers in one order, with the names of PyTorch's compute_comms format
// (2F0, 2SEND_F0, 2UNSHARD). A Schedule does not contain transfers: they are
// derived from it, or read from a file and checked against it.
#ifndef WEIR_SCHEDULES_COMM_COMM_PROGRAM_H_
#define WEIR_SCHEDULES_COMM_COMM_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/action.h"
#include "schedules/schedule.h"

namespace weir::schedules {

struct CommAction {
  Op op;
  // Combined with the rank's next action: an overlapped pair of passes, or
  // transfers that are posted as one batch.
  bool with_next = false;
  uint16_t num_microbatches = 1;
  int32_t stage = 0;
  int32_t microbatch = -1;  // -1 if the op has none

  int32_t last_microbatch() const { return microbatch + num_microbatches - 1; }
  bool operator==(const CommAction&) const = default;
};

struct CommProgram {
  std::vector<std::vector<CommAction>> ranks;  // [rank], in order
};

CommAction FromAction(const Action& action);
// Requires: IsScheduled(action.op).
Action ToAction(const CommAction& action);

// Returns the passes of the program in their order.
std::vector<std::vector<Action>> PassesOf(const CommProgram& program);

// Returns the schedule's actions without transfers.
CommProgram WithoutTransfers(const Schedule& schedule);

// Returns a text such as "2F0", "3SEND_B1" or "0UNSHARD".
std::string ToString(const CommAction& action);

// Parses an action. The whole text must be a single action. Returns
// InvalidArgument otherwise.
absl::StatusOr<CommAction> ParseCommAction(absl::string_view text);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_COMM_COMM_PROGRAM_H_
