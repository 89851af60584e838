// SPDX-License-Identifier: Apache-2.0
// 1F1B without flush: PipeDream (Narayanan et al., 2019, section 3.3) updates
// after every microbatch and stashes the weights that a forward read;
// PipeDream-2BW (Narayanan et al., 2021, section 3.1) updates once per batch
// and reads everywhere the version before the newest a batch could see.
#include "absl/strings/str_cat.h"
#include "schedules/limits.h"
#include "schedules/systems/generators.h"

namespace weir {
namespace {

constexpr absl::string_view kPipeDream = "pipedream";
constexpr absl::string_view kTwoBufferedWeights = "pipedream-2bw";

Problems CheckWithoutFlush(absl::string_view name, const ScheduleSpec& spec) {
  Problems problems(name);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  return problems;
}

absl::Status CheckPipeDream(const ScheduleSpec& spec) {
  return CheckWithoutFlush(kPipeDream, spec).ToStatus();
}

absl::Status Check2BW(const ScheduleSpec& spec) {
  Problems problems = CheckWithoutFlush(kTwoBufferedWeights, spec);
  if (spec.num_microbatches >= 1 && spec.num_microbatches < spec.num_ranks) {
    problems.Add("num_microbatches",
                 absl::StrCat("is ", spec.num_microbatches,
                              ", expected at least pipeline, which is ",
                              spec.num_ranks));
  }
  return problems.ToStatus();
}

Schedule GeneratePipeDream(const ScheduleSpec& spec) {
  Schedule schedule = OneFOneBSchedule(kPipeDream, spec);
  schedule.flush = false;
  schedule.weights = {.microbatches_per_update = 1,
                      .forward = WeightPolicy::ForwardRead::kLatest,
                      .backward = WeightPolicy::BackwardRead::kSameAsForward};
  return schedule;
}

Schedule Generate2BW(const ScheduleSpec& spec) {
  Schedule schedule = OneFOneBSchedule(kTwoBufferedWeights, spec);
  schedule.flush = false;
  schedule.weights = {.microbatches_per_update = spec.num_microbatches,
                      .forward = WeightPolicy::ForwardRead::kDelayed,
                      .delay_updates = 1,
                      .backward = WeightPolicy::BackwardRead::kSameAsForward};
  return schedule;
}

}  // namespace

ScheduleKind PipeDreamKind() {
  return {.name = kPipeDream,
          .aliases = {"async-1f1b", "1f1b-async", "pipedream-stashing"},
          .paper =
              "Narayanan et al., PipeDream: Generalized Pipeline "
              "Parallelism for DNN Training, SOSP 2019",
          .constraints = "chunks is 1",
          .summary =
              "1F1B without flush, update after every microbatch; stage "
              "s of p holds p-s weight versions",
          .flush = false,
          .check = CheckPipeDream,
          .generate = GeneratePipeDream};
}

ScheduleKind PipeDream2BWKind() {
  return {.name = kTwoBufferedWeights,
          .aliases = {"2bw", "double-buffered-weights",
                      "forward-backward-pipelining-no-flushes"},
          .paper =
              "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN "
              "Training, ICML 2021",
          .constraints = "chunks is 1, num_microbatches >= pipeline",
          .summary =
              "1F1B without flush, update after every batch; two weight "
              "versions, delay 1",
          .flush = false,
          .check = Check2BW,
          .generate = Generate2BW};
}

}  // namespace weir
