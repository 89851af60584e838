// SPDX-License-Identifier: Apache-2.0
// Whether the ranks' orders can be executed together, and who waits for whom
// when they cannot.
#ifndef WEIR_SCHEDULES_DEADLOCK_H_
#define WEIR_SCHEDULES_DEADLOCK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schedules/comm_program.h"
#include "schedules/dependencies.h"
#include "schedules/schedule.h"
#include "schedules/transfers.h"

namespace weir {

// How a program's transfers are executed.
enum class TransferRule {
  // A send is done when it is posted; a receive and everything behind it waits
  // for the send. What PyTorch's dry run assumes.
  kBuffered,
  // A rank has one communication stream beside its passes. A transfer begins
  // when the one before it has ended and what it sends is made, and ends once
  // both sides have begun: PyTorch's runtime on one NCCL communicator.
  kOneStream,
  // As kOneStream, and the passes wait too: blocking sends and receives, or
  // blocking batches of them (Megatron-LM).
  kBlocking,
};

struct Wait {
  Place at;               // the action that waits
  Place awaited;          // for this one
  int32_t batch = 1;      // actions posted together, from `at` on
  bool to_begin = false;  // for it to begin, not to end: they must meet
};

// Who stands still, the shortest cycle of waits; empty: everything runs.
struct Standstill {
  std::vector<Wait> cycle;
  // With a clock: F, I and W take 1, transfers nothing.
  double end = 0;
  // The send that one stream holds back longest behind a receive.
  Place held_send, held_by;
  double held = 0;
};

// REQUIRES: as Dependencies.
Standstill RunSchedule(const Schedule& schedule);

// REQUIRES: LinkProgram found no fault but kCrossed and kLate.
Standstill RunProgram(const CommProgram& program, const Links& links,
                      TransferRule rule, bool clock = false);

// "rank 0 waits at position 1 (0B0) for 1B0 at position 2 of rank 1; rank 1
// waits ...", cut after 16.
std::string CycleText(const CommProgram& program,
                      const std::vector<Wait>& cycle);

// OK, or FailedPrecondition "deadlock: <CycleText>".
// REQUIRES: as Dependencies.
absl::Status CheckExecutable(const Schedule& schedule);

}  // namespace weir

#endif  // WEIR_SCHEDULES_DEADLOCK_H_
