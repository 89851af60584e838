// SPDX-License-Identifier: Apache-2.0
// 1F1B with a flush: PipeDream-Flush (Narayanan et al., 2021, section 3.2),
// which frameworks call 1F1B.
#include "schedules/limits.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kOneFOneBName = "1f1b";

absl::Status CheckOneFOneB(const ScheduleSpec& spec) {
  Problems problems(kOneFOneBName);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  return problems.ToStatus();
}

Schedule GenerateOneFOneB(const ScheduleSpec& spec) {
  return OneFOneBSchedule(kOneFOneBName, spec);
}

}  // namespace

ScheduleKind PipeDreamFlushKind() {
  return {.name = kOneFOneBName,
          .aliases = {"pipedream-flush", "non-interleaved",
                      "forward-backward-pipelining-without-interleaving"},
          .paper =
              "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN "
              "Training, ICML 2021",
          .constraints = "chunks is 1, num_batches is 1",
          .summary = "1F1B with a flush after every batch; one weight version",
          .flush = true,
          .check = CheckOneFOneB,
          .generate = GenerateOneFOneB};
}

}  // namespace weir::schedules
