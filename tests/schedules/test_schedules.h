// SPDX-License-Identifier: Apache-2.0
// Schedules for tests: generated, or written as rows of text.
#ifndef WEIR_TESTS_SCHEDULES_TEST_SCHEDULES_H_
#define WEIR_TESTS_SCHEDULES_TEST_SCHEDULES_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/options.h"
#include "schedules/registry.h"
#include "schedules/semantics.h"
#include "schedules/validate.h"

namespace weir::schedules {

// Generates a schedule. Requires: the kind exists and the spec is legal for it.
inline Schedule Generated(absl::string_view name, const ScheduleSpec& spec) {
  return GenerateSchedule(name, spec).value();
}

// Parses a schedule. Requires: the text parses and every stage is on one rank.
inline Schedule FromText(absl::string_view text) {
  return ScheduleFromRows("test", ParseCsv("test", text).value()).value();
}

// Returns the semantics of a schedule, which must be valid.
inline Semantics Interpreted(const Schedule& schedule) {
  EXPECT_TRUE(ValidateSchedule(schedule).ok()) << ValidateSchedule(schedule);
  absl::StatusOr<Semantics> semantics = InterpretSchedule(schedule);
  EXPECT_TRUE(semantics.ok()) << semantics.status();
  return *std::move(semantics);
}

// Returns the largest number of microbatches of the rank whose forward has
// begun and whose B or I has not ended, in the order of its actions.
inline int InFlight(const Schedule& schedule, int rank) {
  int now = 0;
  int most = 0;
  for (const Action& action : schedule.rank_actions[rank]) {
    if (action.op == Op::kForward) now += action.num_microbatches;
    most = std::max(most, now);
    if (MakesInputGradient(action.op)) now -= action.num_microbatches;
  }
  return most;
}

// Returns every name of the registry, and names with options that change the
// versions of weights. Requires: the registry has these options.
inline std::vector<std::string> NamesWithOptions() {
  std::vector<std::string> names;
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    names.emplace_back(kind.name);
  }
  for (absl::string_view name :
       {"pipedream:vertical-sync=yes", "pipedream:replicas=2-1",
        "pipedream:replicas=1-2", "pipedream:replicas=2-2",
        "pipedream:replicas=3-2-1-1", "pipemare:correction=none",
        "pipemare:order=1f1b",
        "pipelined-backprop:mitigation=linear-prediction",
        "timeprest:ahead=minibatch"}) {
    const absl::StatusOr<const ScheduleKind*> kind = FindScheduleKind(name);
    EXPECT_TRUE(kind.ok() && WithOptionsOf(name, **kind, {}).ok()) << name;
    names.emplace_back(name);
  }
  return names;
}

// Returns all legal schedules of small shapes, with several batches if there is
// no flush.
inline std::vector<Schedule> SmallSchedules(absl::string_view name) {
  std::vector<Schedule> schedules;
  const ScheduleKind* kind = FindScheduleKind(name).value();
  for (int p : {1, 2, 3, 4, 7}) {
    for (int m : {1, 2, 3, 4, 6, 8, 16}) {
      for (int v : {1, 2, 3, 4}) {
        for (int batches : {1, 2, 4}) {
          if (kind->flush && batches > 1) continue;
          absl::StatusOr<Schedule> schedule =
              GenerateSchedule(name, {p, m, v, batches});
          if (schedule.ok()) schedules.push_back(*std::move(schedule));
        }
      }
    }
  }
  return schedules;
}

// Returns a schedule with a steady state that is small enough for mutating
// every action. Requires: one of the shapes is legal.
inline Schedule MutationSchedule(absl::string_view name) {
  const ScheduleKind* kind = FindScheduleKind(name).value();
  for (int p : {3, 4, 7, 2}) {
    for (int m : {6, 8, 4, 16}) {
      for (int v : {1, 2, 4}) {
        absl::StatusOr<Schedule> schedule =
            GenerateSchedule(name, {p, m, v, kind->flush ? 1 : 3});
        if (schedule.ok()) return *std::move(schedule);
      }
    }
  }
  return {};
}

// Returns a small spec that is valid for the kind.
inline ScheduleSpec LegalSpec(const ScheduleKind& kind) {
  for (int p : {3, 4}) {
    for (int m : {6, 4, 8}) {
      for (int v : {1, 2}) {
        ScheduleSpec spec = {p, m, v, kind.flush ? 1 : 3};
        if (kind.check(spec).ok()) return spec;
      }
    }
  }
  return {};
}

}  // namespace weir::schedules

#endif  // WEIR_TESTS_SCHEDULES_TEST_SCHEDULES_H_
