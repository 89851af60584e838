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

// A small shape that is legal for the kind.
inline ScheduleSpec LegalSpec(const ScheduleKind& kind) {
  for (int p : {3, 4}) {
    for (int m : {6, 4, 8}) {
      for (int v : {1, 2}) {
        const ScheduleSpec spec = {p, m, v, kind.flush ? 1 : 3};
        if (kind.check(spec).ok()) return spec;
      }
    }
  }
  return {};
}

}  // namespace weir

#endif  // WEIR_TESTS_SCHEDULES_TEST_SCHEDULES_H_
