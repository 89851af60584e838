// SPDX-License-Identifier: Apache-2.0
// Matches the actions of a program: every send with its receive, every pass
// with its inputs.
#ifndef WEIR_SCHEDULES_COMM_TRANSFERS_H_
#define WEIR_SCHEDULES_COMM_TRANSFERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/comm/comm_program.h"
#include "schedules/dependencies.h"

namespace weir::schedules {

// The actions of a program are numbered rank by rank.
struct Links {
  // [rank]: its first action, and one entry for the end.
  std::vector<int32_t> first;
  // [action], -1 if there is none:
  //
  //   - for a send: its receive, and for a receive its send;
  //   - for a pass: the receive of its input.
  std::vector<int32_t> partner;
  // [action], -1 if there is none:
  //
  //   - for a pass: the pass of this rank that computes its input without a
  //     transfer;
  //   - for a send: the pass of this rank that computes its data.
  std::vector<int32_t> local;

  Place PlaceOf(int32_t action) const;
};

// A transfer that cannot work, with the place of the problem.
struct TransferFault {
  enum class Kind {
    kUnmatched,  // a send without a receive, or vice versa
    kTwice,      // a repeated transfer
    kSize,       // sender and receiver have different microbatches
    kNothing,    // sends data that its rank has not computed
    kMissing,    // a pass whose input is neither received nor local
    kLate,       // its input is received after the pass
    kUnused,     // received data that no pass of the rank needs
    kNoStage,    // the peer is before the first or after the last stage
    kItself,     // sent to its own rank
    kCrossed,    // a rank pair's k-th send is not its k-th receive
  };
  Kind kind;
  Place place;
  Place other;  // absent if there is none
  std::string message;
};

// Numbers of stages and microbatches in a program, which determine the size of
// tables.
struct ProgramShape {
  int num_stages = 0;
  int num_microbatches = 0;
};
ProgramShape ShapeOf(const CommProgram& program);

// Appends at most `limit` faults. Requires: stages x microbatches of the
// program fit in memory.
Links LinkProgram(const CommProgram& program, size_t limit,
                  std::vector<TransferFault>* faults);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_COMM_TRANSFERS_H_
