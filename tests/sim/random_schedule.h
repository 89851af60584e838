// SPDX-License-Identifier: Apache-2.0
// Random schedules with unusual orders and all features of schedules: several
// routes, spans, split backwards, overlapped pairs, offloads.
#ifndef WEIR_TESTS_SIM_RANDOM_SCHEDULE_H_
#define WEIR_TESTS_SIM_RANDOM_SCHEDULE_H_

#include <random>

#include "schedules/schedule.h"
#include "tests/random_source.h"

namespace weir::sim {

// Returns a valid schedule that depends only on the state of `random`.
schedules::Schedule RandomSchedule(std::mt19937* random);
schedules::Schedule RandomSchedule(RandomSource* source);

}  // namespace weir::sim

#endif  // WEIR_TESTS_SIM_RANDOM_SCHEDULE_H_
