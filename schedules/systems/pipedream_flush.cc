// SPDX-License-Identifier: Apache-2.0
// 1F1B with a flush: PipeDream-Flush (Narayanan et al., 2021, section 3.2),
// which frameworks call 1F1B.
#include "schedules/limits.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kOneFOneBName = "1f1b";
constexpr int kMostAhead = 1000;

int AheadOf(const ScheduleSpec& spec, Problems* problems) {
  return IntOption(spec, "ahead", 0, 0, kMostAhead, problems);
}

absl::Status CheckOneFOneB(const ScheduleSpec& spec) {
  Problems problems(kOneFOneBName);
  AheadOf(spec, &problems);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  return problems.ToStatus();
}

Schedule GeneratePipeDreamFlush(const ScheduleSpec& spec) {
  Problems problems(kOneFOneBName);
  const int ahead = AheadOf(spec, &problems);
  return OneFOneBSchedule(kOneFOneBName, spec, [&](int stage) {
    return spec.num_ranks - 1 - stage + ahead;
  });
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
          .options = {{"ahead", "0",
                       "forwards that every rank runs ahead in addition, as "
                       "vocabulary parallelism needs for each of its "
                       "barriers"}},
          .check = CheckOneFOneB,
          .generate = GeneratePipeDreamFlush};
}

}  // namespace weir::schedules
