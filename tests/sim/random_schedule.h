// SPDX-License-Identifier: Apache-2.0
// Schedules that nobody would want, with everything that a schedule can say:
// several routes, spans, split backwards, overlapped pairs, offloads.
#ifndef WEIR_TESTS_SIM_RANDOM_SCHEDULE_H_
#define WEIR_TESTS_SIM_RANDOM_SCHEDULE_H_

#include <random>

#include "schedules/schedule.h"
#include "tests/random_source.h"

namespace weir {

// A valid schedule; the same one for the same state of `random`.
Schedule RandomSchedule(std::mt19937* random);
Schedule RandomSchedule(RandomSource* source);

}  // namespace weir

#endif  // WEIR_TESTS_SIM_RANDOM_SCHEDULE_H_
