// SPDX-License-Identifier: Apache-2.0
#include "cli/schedule_input.h"

#include "base/status_macros.h"
#include "cli/chunks.h"
#include "schedules/options.h"
#include "schedules/registry.h"
#include "schedules/validate.h"

namespace weir {
namespace {

ScheduleSpec SpecOf(const ScheduleKind& kind, const Scenario& flags) {
  const auto or_else = [](uint32_t value, int fallback) {
    return value == 0 ? fallback : static_cast<int>(value);
  };
  ScheduleSpec spec;
  spec.num_ranks = or_else(flags.parallelism().pipeline(), 4);
  spec.num_microbatches = or_else(flags.num_microbatches(), 8);
  // Without flush one batch shows only the start.
  spec.num_batches = or_else(flags.num_batches(), kind.flush ? 1 : 3);
  spec.num_chunks = or_else(flags.parallelism().chunks(), 1);
  return spec;
}

}  // namespace

absl::StatusOr<Schedule> ScheduleFromFlags(const Flags& flags) {
  const Scenario& shape = flags.scenario.overrides;
  ASSIGN_OR_RETURN(const ScheduleKind* kind, FindScheduleKind(flags.name));
  ASSIGN_OR_RETURN(ScheduleSpec spec,
                   WithOptionsOf(flags.name, *kind, SpecOf(*kind, shape)));
  if (shape.parallelism().chunks() == 0) {
    spec.num_chunks = LegalChunks(*kind, spec);
  }
  if (shape.num_microbatches() == 0) {
    spec.num_microbatches = LegalMicrobatches(*kind, spec);
  }
  ASSIGN_OR_RETURN(Schedule schedule, GenerateSchedule(kind->name, spec));
  RETURN_IF_ERROR(ValidateSchedule(schedule));
  return schedule;
}

}  // namespace weir
