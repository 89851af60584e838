// SPDX-License-Identifier: Apache-2.0
// PyTorch's ScheduleInterleavedZeroBubble: interleaved 1F1B with split
// backwards, based on ZB-H1 (Qi et al., Zero Bubble Pipeline Parallelism, 2024,
// section 2): the weight gradients of rank r are delayed by r passes and fill
// the bubble.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schedules/limits.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kInterleavedZbName = "interleaved-zb";

// Returns the number of equal rounds in which microbatches pass the chunks.
int NumRounds(const ScheduleSpec& spec) {
  return std::max(1, spec.num_microbatches / spec.num_ranks);
}

absl::Status CheckInterleavedZb(const ScheduleSpec& spec) {
  Problems problems(kInterleavedZbName);
  CheckLimits(spec, &problems);
  CheckOneBatch(spec, &problems);
  if (spec.num_ranks >= 1 && spec.num_microbatches >= 1 &&
      spec.num_microbatches % NumRounds(spec) != 0) {
    problems.Add("num_microbatches",
                 absl::StrCat("is ", spec.num_microbatches,
                              ", expected a multiple of the number of rounds, "
                              "num_microbatches / pipeline = ",
                              NumRounds(spec)));
  }
  return problems.ToStatus();
}

// Returns the i-th forward, input gradient or weight gradient of a rank.
Action InterleavedZbNthAction(Op op, int rank, int i,
                              const ScheduleSpec& spec) {
  const int round_size = spec.num_microbatches / NumRounds(spec);
  const int group = round_size * spec.num_chunks;
  const int chunk = i % group / round_size;
  const int turned = op == Op::kForward ? chunk : spec.num_chunks - 1 - chunk;
  return {op, turned * spec.num_ranks + rank,
          i / group * round_size + i % round_size};
}

std::vector<Action> RankActions(int rank, const ScheduleSpec& spec) {
  const int total = spec.num_microbatches * spec.num_chunks;
  const int round_size = spec.num_microbatches / NumRounds(spec);
  const int warmup = std::min(
      (spec.num_chunks - 1) * round_size + spec.num_ranks - 1 - rank, total);
  std::vector<Action> actions;
  actions.reserve(3 * static_cast<size_t>(total));
  int forward = 0;
  int weight = 0;
  const auto add = [&](Op op, int i) {
    actions.push_back(InterleavedZbNthAction(op, rank, i, spec));
  };
  while (forward < warmup) add(Op::kForward, forward++);
  for (int input = 0; input < total; ++input) {
    if (forward < total) add(Op::kForward, forward++);
    add(Op::kBackwardInput, input);
    if (input >= rank) add(Op::kBackwardWeight, weight++);
  }
  while (weight < total) add(Op::kBackwardWeight, weight++);
  return actions;
}

Schedule GenerateInterleavedZb(const ScheduleSpec& spec) {
  Schedule schedule = EmptySchedule(kInterleavedZbName, spec);
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    schedule.rank_actions[rank] = RankActions(rank, spec);
  }
  return schedule;
}

}  // namespace

ScheduleKind InterleavedZeroBubbleKind() {
  return {.name = kInterleavedZbName,
          .aliases = {"InterleavedZeroBubble"},
          .paper =
              "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, "
              "interleaved as in PyTorch",
          .constraints =
              "num_microbatches a multiple of num_microbatches / pipeline "
              "rounded down, num_batches is 1",
          .summary =
              "interleaved 1F1B with weight gradients in the bubbles, flush; "
              "one weight version",
          .flush = true,
          .splits_backward = true,
          .check = CheckInterleavedZb,
          .generate = GenerateInterleavedZb};
}

}  // namespace weir::schedules
