// SPDX-License-Identifier: Apache-2.0
// BitPipe (Wu et al., 2024): two V-shaped interleaved pipelines in opposite
// directions, each with its own copy of the weights.
#include "absl/strings/str_cat.h"
#include "schedules/limits.h"
#include "schedules/systems/generators.h"
#include "schedules/systems/slots.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kBitPipeName = "bitpipe";

absl::Status CheckBitPipe(const ScheduleSpec& spec) {
  Problems problems(kBitPipeName);
  CheckLimits(spec, &problems);
  CheckOneBatch(spec, &problems);
  CheckEvenChunks(spec, &problems);
  if (spec.num_ranks >= 1 && spec.num_ranks % 2 != 0) {
    problems.Add("pipeline", absl::StrCat("is ", spec.num_ranks,
                                          ", expected an even number"));
  }
  if (spec.num_microbatches == 1) {
    problems.Add("num_microbatches",
                 "is 1, expected 2 or more: at least one in each direction");
  }
  return problems.ToStatus();
}

Schedule GenerateBitPipe(const ScheduleSpec& spec) {
  Schedule schedule = EmptySchedule(kBitPipeName, spec);
  const std::vector<int> down = ZigZagRoute(spec);
  std::vector<int> up = down;
  for (int& rank : up) rank = spec.num_ranks - 1 - rank;
  schedule.routes = {down, up};
  schedule.microbatches_per_route_turn =
      spec.num_microbatches % 2 == 0 ? spec.num_microbatches / 2 : 1;
  OrderBySlots({.num_forwards = spec.num_ranks / 2}, &schedule);
  return schedule;
}

}  // namespace

ScheduleKind BitPipeKind() {
  return {.name = kBitPipeName,
          .aliases = {"bidirectional-interleaved"},
          .paper =
              "Wu et al., BitPipe: Bidirectional Interleaved Pipeline "
              "Parallelism for Accelerating Large Models Training, 2024",
          .constraints =
              "pipeline even, chunks even (the paper uses 2 per direction), "
              "num_microbatches >= 2, num_batches is 1",
          .summary =
              "two V-shaped 1F1B pipelines in opposite directions, each with "
              "its own copy of the weights, gradients reduced between the "
              "copies, flush; one weight version",
          .flush = true,
          .check = CheckBitPipe,
          .generate = GenerateBitPipe};
}

}  // namespace weir::schedules
