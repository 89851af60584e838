// SPDX-License-Identifier: Apache-2.0
// Draws a schedule as text. Every action has a column per unit of time (forward
// 1, backward 2, input and weight gradient 1 each, transfers free):
//
//   rank 0 |0123......aa4bb5cc.dd.ee.ff|
//   rank 1 |.012....aa3bb4cc5dd.ee.ff..|
//   digit: forward of that microbatch, letter: its backward, '.': idle
//
// If a rank has several stages, each has a row, in which ' ' is time in another
// stage of the rank. Digits and letters repeat from microbatch 10 on.
#ifndef WEIR_SCHEDULES_TIMELINE_H_
#define WEIR_SCHEDULES_TIMELINE_H_

#include <string>

#include "schedules/schedule.h"

namespace weir::schedules {

struct TimelineOptions {
  int max_columns = 160;  // wider pictures are cut, with a note
};

// Requires: ValidateSchedule(schedule) is OK.
std::string DrawTimeline(const Schedule& schedule,
                         const TimelineOptions& options = {});

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_TIMELINE_H_
