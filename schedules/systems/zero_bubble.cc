// SPDX-License-Identifier: Apache-2.0
// The two handcrafted orders of Zero Bubble Pipeline Parallelism (Qi et al.,
// 2024, section 2): the backward is split, and weight gradients are delayed.
#include <algorithm>

#include "schedules/limits.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kH1 = "zb-h1";
constexpr absl::string_view kH2 = "zb-h2";

// Collects the passes of a stage, each kind in order of microbatches.
struct ZeroBubbleStageOrder {
  int stage;
  int num_microbatches;
  std::vector<Action> actions = {};
  int num_forwards = 0, num_inputs = 0, num_weights = 0;

  ZeroBubbleStageOrder(int stage, int num_microbatches)
      : stage(stage), num_microbatches(num_microbatches) {
    actions.reserve(3 * static_cast<size_t>(num_microbatches));
  }
  void Forward() { actions.push_back({Op::kForward, stage, num_forwards++}); }
  // Does nothing if no forward is left.
  void MaybeForward() {
    if (num_forwards < num_microbatches) Forward();
  }
  void Input() { actions.push_back({Op::kBackwardInput, stage, num_inputs++}); }
  void Weight() {
    actions.push_back({Op::kBackwardWeight, stage, num_weights++});
  }
};

// ZB-H1: 1F1B's warm-up and memory. The W of stage s are delayed by s
// microbatches, so that they fill the gaps at the end.
std::vector<Action> H1Order(int stage, int num_ranks, int num_microbatches) {
  ZeroBubbleStageOrder order(stage, num_microbatches);
  const int warmup = std::min(num_ranks - 1 - stage, num_microbatches);
  for (int i = 0; i < warmup; ++i) order.Forward();
  for (int k = 0; k < num_microbatches; ++k) {
    order.MaybeForward();
    order.Input();
    // After the last forward, every I is followed by a W, delayed or not.
    if (k >= stage || k >= num_microbatches - warmup) order.Weight();
  }
  while (order.num_weights < num_microbatches) order.Weight();
  return std::move(order.actions);
}

// ZB-H2: forwards also fill the gap before the first backward, for twice the
// memory. The W of stage s are delayed by 2s microbatches.
std::vector<Action> H2Order(int stage, int num_ranks, int num_microbatches) {
  ZeroBubbleStageOrder order(stage, num_microbatches);
  const int warmup =
      std::min(2 * (num_ranks - 1 - stage) + 1, num_microbatches);
  for (int i = 0; i < warmup; ++i) order.Forward();
  for (int k = 0; k < num_microbatches; ++k) {
    order.Input();
    if (k >= 2 * stage) order.Weight();
    order.MaybeForward();
  }
  while (order.num_weights < num_microbatches) order.Weight();
  return std::move(order.actions);
}

absl::Status CheckZeroBubble(absl::string_view name, const ScheduleSpec& spec) {
  Problems problems(name);
  CheckLimits(spec, &problems, /*num_passes=*/3);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  return problems.ToStatus();
}

template <typename StageOrderOf>
Schedule GenerateZeroBubble(absl::string_view name, const ScheduleSpec& spec,
                            StageOrderOf order_of) {
  Schedule schedule = EmptySchedule(name, spec);
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    schedule.rank_actions[rank] =
        order_of(rank, spec.num_ranks, spec.num_microbatches);
  }
  return schedule;
}

}  // namespace

ScheduleKind ZeroBubbleH1Kind() {
  return {
      .name = kH1,
      .aliases = {"zero-bubble-h1"},
      .paper = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024",
      .constraints = "chunks is 1, num_batches is 1",
      .summary =
          "split backwards with the memory of 1F1B and a third of its bubble, "
          "flush; one weight version",
      .flush = true,
      .splits_backward = true,
      .check =
          [](const ScheduleSpec& spec) { return CheckZeroBubble(kH1, spec); },
      .generate =
          [](const ScheduleSpec& spec) {
            return GenerateZeroBubble(kH1, spec, H1Order);
          }};
}

ScheduleKind ZeroBubbleH2Kind() {
  return {
      .name = kH2,
      .aliases = {"zero-bubble-h2"},
      .paper = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024",
      .constraints = "chunks is 1, num_batches is 1",
      .summary =
          "split backwards with twice the memory of 1F1B and almost no bubble, "
          "flush; one weight version",
      .flush = true,
      .splits_backward = true,
      .check =
          [](const ScheduleSpec& spec) { return CheckZeroBubble(kH2, spec); },
      .generate =
          [](const ScheduleSpec& spec) {
            return GenerateZeroBubble(kH2, spec, H2Order);
          }};
}

}  // namespace weir::schedules
