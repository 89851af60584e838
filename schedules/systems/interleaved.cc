// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B (Narayanan et al., 2021, section 2.2) in Megatron-LM's
// order.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schedules/limits.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kInterleavedName = "interleaved-1f1b";

absl::Status CheckInterleaved(const ScheduleSpec& spec) {
  Problems problems(kInterleavedName);
  CheckLimits(spec, &problems);
  CheckOneBatch(spec, &problems);
  if (spec.num_chunks == 1) {
    // For one chunk the formula gives twice 1F1B's warm-up, which is not
    // intended.
    problems.Add("chunks", "is 1, expected 2 or more (one chunk is 1f1b)");
  }
  if (spec.num_ranks >= 1 && spec.num_microbatches >= 1 &&
      spec.num_microbatches % spec.num_ranks != 0) {
    problems.Add("num_microbatches",
                 absl::StrCat("is ", spec.num_microbatches,
                              ", expected a multiple of pipeline, which is ",
                              spec.num_ranks));
  }
  return problems.ToStatus();
}

// Returns the i-th forward or backward of a rank. Microbatches pass a chunk in
// groups of num_ranks; backwards start with the last chunk.
Action InterleavedNthAction(Op op, int rank, int i, const ScheduleSpec& spec) {
  const int group = spec.num_ranks * spec.num_chunks;
  const int chunk = i % group / spec.num_ranks;
  const int microbatch = i / group * spec.num_ranks + i % spec.num_ranks;
  const int turned = op == Op::kForward ? chunk : spec.num_chunks - 1 - chunk;
  return {op, turned * spec.num_ranks + rank, microbatch};
}

int NumWarmup(int rank, const ScheduleSpec& spec) {
  const int total = spec.num_microbatches * spec.num_chunks;
  if (spec.num_microbatches == spec.num_ranks) return total;
  return std::min(
      2 * (spec.num_ranks - 1 - rank) + (spec.num_chunks - 1) * spec.num_ranks,
      total);
}

Schedule GenerateInterleaved(const ScheduleSpec& spec) {
  Schedule schedule = EmptySchedule(kInterleavedName, spec);
  const int total = spec.num_microbatches * spec.num_chunks;
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    // Build 1F1B over passes of chunks, then map these to stages and
    // microbatches.
    schedule.rank_actions[rank] =
        OneFOneB(/*stage=*/0, NumWarmup(rank, spec), total);
    for (Action& action : schedule.rank_actions[rank]) {
      action = InterleavedNthAction(action.op, rank, action.microbatch, spec);
    }
  }
  return schedule;
}

}  // namespace

ScheduleKind InterleavedKind() {
  return {.name = kInterleavedName,
          .aliases = {"interleaved", "megatron-interleaved", "virtual-pipeline",
                      "vpp", "forward-backward-pipelining-with-interleaving"},
          .paper =
              "Narayanan et al., Efficient Large-Scale Language Model "
              "Training on GPU Clusters Using Megatron-LM, SC 2021",
          .constraints =
              "chunks >= 2, num_microbatches a multiple of pipeline, "
              "num_batches is 1",
          .summary =
              "1F1B over several stages per rank, flush; one weight "
              "version",
          .flush = true,
          .check = CheckInterleaved,
          .generate = GenerateInterleaved};
}

}  // namespace weir::schedules
