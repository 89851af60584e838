// SPDX-License-Identifier: Apache-2.0
// Schedules for tests: generated, or written as rows of text.
#ifndef WEIR_TESTS_SCHEDULES_TEST_SCHEDULES_H_
#define WEIR_TESTS_SCHEDULES_TEST_SCHEDULES_H_

#include "absl/strings/string_view.h"
#include "schedules/registry.h"
#include "schedules/schedule_text.h"

namespace weir {

// REQUIRES: the kind exists and the spec is legal for it.
inline Schedule Generated(absl::string_view name, const ScheduleSpec& spec) {
  return GenerateSchedule(name, spec).value();
}

// REQUIRES: the text parses and every stage is on one rank.
inline Schedule FromText(absl::string_view text) {
  return ScheduleFromRows("test", ParseCsv("test", text).value()).value();
}

}  // namespace weir

#endif  // WEIR_TESTS_SCHEDULES_TEST_SCHEDULES_H_
