// SPDX-License-Identifier: Apache-2.0
// Who meets whom in a program: every send and its receive, every pass and what
// it needs.
#ifndef WEIR_SCHEDULES_TRANSFERS_H_
#define WEIR_SCHEDULES_TRANSFERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/comm_program.h"
#include "schedules/dependencies.h"

namespace weir {

// Actions of a program are numbered rank by rank.
struct Links {
  std::vector<int32_t> first;  // [rank]: its first action; and behind the last
  // [action], -1 where there is none:
  //  - of a send: its receive, and of a receive its send;
  //  - of a pass: the receive of its input;
  std::vector<int32_t> partner;
  //  - of a pass: the pass of this rank that makes its input without a
  //  transfer;
  //  - of a send: the pass of this rank that makes what it sends.
  std::vector<int32_t> local;

  Place PlaceOf(int32_t action) const;
};

// A transfer that cannot work, with the action to look at.
struct TransferFault {
  enum class Kind {
    kUnmatched,  // a send that nobody receives, or the other way round
    kTwice,      // the same transfer a second time
    kSize,       // sender and receiver name different microbatches
    kNothing,    // sends what its rank has not made, or after no pass
    kMissing,    // a pass whose input is neither received nor made here
    kLate,       // its input is received after the pass
    kUnused,     // received, and no pass of the rank takes it
    kNoStage,    // its other side would be before the first or after the last
    kItself,     // sent to the rank that sends
    kCrossed,    // the k-th send of a pair of ranks is not its k-th receive
  };
  Kind kind;
  Place place;
  Place other;  // where there is one
  std::string message;
};

// The number of microbatches that a program's tables need, and of its stages.
struct ProgramShape {
  int num_stages = 0;
  int num_microbatches = 0;
};
ProgramShape ShapeOf(const CommProgram& program);

// Appends what is wrong, at most `limit` faults.
// REQUIRES: stages x microbatches of the program fit in memory.
Links LinkProgram(const CommProgram& program, size_t limit,
                  std::vector<TransferFault>* faults);

}  // namespace weir

#endif  // WEIR_SCHEDULES_TRANSFERS_H_
