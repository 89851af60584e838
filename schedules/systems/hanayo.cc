// SPDX-License-Identifier: Apache-2.0
// Hanayo (Liu et al., 2023, section 3): a microbatch runs down and up the ranks
// in waves, each with two chunks of every rank. This gives Chimera's second
// direction without a second copy of the weights.
#include "absl/strings/str_cat.h"
#include "schedules/limits.h"
#include "schedules/systems/generators.h"
#include "schedules/systems/slots.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kHanayoName = "hanayo";

absl::Status CheckHanayo(const ScheduleSpec& spec) {
  Problems problems(kHanayoName);
  CheckLimits(spec, &problems);
  CheckOneBatch(spec, &problems);
  CheckEvenChunks(spec, &problems);
  return problems.ToStatus();
}

Schedule GenerateHanayo(const ScheduleSpec& spec) {
  Schedule schedule = EmptySchedule(kHanayoName, spec);
  schedule.routes = {ZigZagRoute(spec)};
  OrderBySlots({.num_forwards = spec.num_ranks}, &schedule);
  return schedule;
}

}  // namespace

ScheduleKind HanayoKind() {
  return {.name = kHanayoName,
          .aliases = {"wave"},
          .paper =
              "Liu et al., Hanayo: Harnessing Wave-like Pipeline Parallelism "
              "for Enhanced Large Model Training Efficiency, SC 2023",
          .constraints = "chunks is two per wave, num_batches is 1",
          .summary =
              "1F1B in waves that go down and up the ranks, flush; one weight "
              "version",
          .flush = true,
          .check = CheckHanayo,
          .generate = GenerateHanayo};
}

}  // namespace weir::schedules
