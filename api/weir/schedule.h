// SPDX-License-Identifier: Apache-2.0
// Schedules: the order of the passes of each pipeline rank. A program can add
// generators of its own, which scenarios then name like weir's.
#ifndef WEIR_SCHEDULE_H_
#define WEIR_SCHEDULE_H_

#include <functional>
#include <string>
#include <vector>

#include "weir/error.h"

namespace weir::api {

enum class Op {
  kForward,         // F
  kBackward,        // B: input and weight gradient together
  kBackwardInput,   // I: gradient of the stage's input
  kBackwardWeight,  // W: gradient of the stage's weights
};

struct Pass {
  Op op = Op::kForward;
  int stage = 0;
  int microbatch = 0;
};

struct ScheduleShape {
  int num_ranks = 1;
  int num_chunks = 1;  // stages per rank
  int num_microbatches = 1;

  int num_stages() const { return num_ranks * num_chunks; }
};

// One batch. Every (stage, microbatch) has an F and then either a B or an I and
// a W, on the rank of the stage. Transfers follow from the passes. The
// optimizer steps after the last pass of a rank (with a flush, one weight
// version).
struct Schedule {
  std::vector<int> stage_ranks;                // [stage]
  std::vector<std::vector<Pass>> rank_passes;  // [rank], in order
};

// Returns the schedule of a shape. Must return the same one for the same shape.
// May throw an exception of type std::exception if it does not support a shape.
using ScheduleGenerator = std::function<Schedule(const ScheduleShape&)>;

// Makes a generator known under a name of letters, digits, '-' and '_', for the
// rest of the process. Every schedule that it returns is checked: for missing
// and repeated passes, for orders that no execution can follow.
// `splits_backward` states that schedules have I and W instead of B. Throws
// Error if the name is in use. Must not run at the same time as another
// function of the library.
void RegisterSchedule(const std::string& name, const std::string& summary,
                      bool splits_backward, ScheduleGenerator generator);

// Returns the names of all schedules, registered ones last.
std::vector<std::string> ScheduleNames();

// Returns a schedule by name ("zb-h1", "chimera:pipelines=4") for a shape. Only
// for schedules with a flush and one rank per stage; throws Error for others.
Schedule GenerateSchedule(const std::string& name, const ScheduleShape& shape);

}  // namespace weir::api

#endif  // WEIR_SCHEDULE_H_
