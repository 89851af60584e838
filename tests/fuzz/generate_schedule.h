// SPDX-License-Identifier: Apache-2.0
// Generates requests for schedules of every kind, with their options.
#ifndef WEIR_TESTS_FUZZ_GENERATE_SCHEDULE_H_
#define WEIR_TESTS_FUZZ_GENERATE_SCHEDULE_H_

#include <string>

#include "schedules/registry.h"
#include "schedules/schedule.h"
#include "tests/fuzz/choices.h"

namespace weir::fuzz {

struct ScheduleRequest {
  std::string name;  // with options
  schedules::ScheduleSpec spec;
};

// Generates a request. Its kind accepts it unless many attempts failed.
ScheduleRequest GenerateScheduleRequest(Choices* choices);

// Generates ":option=value" for some of the options of a kind, or nothing.
std::string GenerateOptions(const schedules::ScheduleKind& kind, int num_ranks,
                            Choices* choices);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_GENERATE_SCHEDULE_H_
