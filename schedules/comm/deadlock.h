// SPDX-License-Identifier: Apache-2.0
// Determines whether the ranks' orders can be executed together and, if not,
// which actions wait for each other.
#ifndef WEIR_SCHEDULES_COMM_DEADLOCK_H_
#define WEIR_SCHEDULES_COMM_DEADLOCK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schedules/comm/comm_program.h"
#include "schedules/comm/transfers.h"
#include "schedules/dependencies.h"
#include "schedules/schedule.h"

namespace weir::schedules {

// The execution of a program's transfers.
enum class TransferRule {
  // A send is done when it is posted. A receive, and everything after it, waits
  // for the send. Assumed by PyTorch's dry run.
  kBuffered,
  // A rank has one communication stream, concurrent with its passes. A transfer
  // begins when the previous one has ended and its data is computed, and ends
  // when both sides have begun: PyTorch's runtime on one NCCL communicator.
  kOneStream,
  // Like kOneStream, but the passes wait, too: blocking sends and receives, or
  // blocking batches of them (Megatron-LM).
  kBlocking,
};

struct Wait {
  Place at;               // the waiting action
  Place awaited;          // the action that it waits for
  int32_t batch = 1;      // number of actions posted together, from `at` on
  bool to_begin = false;  // waits for the other's begin, not its end
};

// The result of a run: the shortest cycle of waits, empty if everything runs.
struct RunOutcome {
  std::vector<Wait> cycle;
  // End time if run with a clock: F, I and W take 1, B takes 2, transfers 0.
  double end = 0;
  // The send that waits longest in its stream after its data is computed, the
  // receive that it waits for, and the time that it waits.
  Place held_send, held_by;
  double held = 0;
};

// Requires: see Dependencies.
RunOutcome RunSchedule(const Schedule& schedule);

// Requires: LinkProgram found no fault except kCrossed and kLate.
RunOutcome RunProgram(const CommProgram& program, const Links& links,
                      TransferRule rule, bool clock = false);

// Returns "rank 0 waits at position 1 (0B0) for 1B0 at position 2 of rank 1;
// rank 1 waits ...", cut after 16 waits.
std::string CycleText(const CommProgram& program,
                      const std::vector<Wait>& cycle);

// Returns OK, or FailedPrecondition "deadlock: <CycleText>". Requires: see
// Dependencies.
absl::Status CheckExecutable(const Schedule& schedule);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_COMM_DEADLOCK_H_
