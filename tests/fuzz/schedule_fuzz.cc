// SPDX-License-Identifier: Apache-2.0
// Any bytes as an action and as a schedule file: errors come back as Status,
// and what parses prints and parses back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "schedules/schedule_json.h"
#include "schedules/schedule_text.h"
#include "schedules/semantics.h"
#include "schedules/timeline.h"
#include "schedules/validate.h"

namespace weir {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void FuzzAction(absl::string_view text) {
  absl::StatusOr<Action> action = ParseAction(text);
  if (!action.ok()) return;
  absl::StatusOr<Action> again = ParseAction(ToString(*action));
  Require(again.ok() && *again == *action);
}

void FuzzSchedule(absl::string_view text) {
  auto rows = ParseCsv("fuzz", text);
  if (!rows.ok()) return;
  absl::StatusOr<Schedule> schedule = ScheduleFromRows("fuzz", *rows);
  if (!schedule.ok() || !ValidateSchedule(*schedule).ok()) return;
  auto again = ParseCsv("fuzz", PrintCsv(*schedule));
  Require(again.ok() && *again == schedule->rank_actions);
  DrawTimeline(*schedule);
  absl::StatusOr<Semantics> semantics = InterpretSchedule(*schedule);
  if (semantics.ok()) ScheduleJson(*schedule, *semantics);
}

}  // namespace
}  // namespace weir

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  weir::FuzzAction(text);
  weir::FuzzSchedule(text);
  return 0;
}
