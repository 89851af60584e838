// SPDX-License-Identifier: Apache-2.0
// The automatic orders of Zero Bubble Pipeline Parallelism (Qi et al., 2024,
// section 3.1 and appendix G): a heuristic that fills gaps with weight
// gradients under a memory limit, tried with every combination of its choices.
#include <algorithm>
#include <optional>

#include "schedules/limits.h"
#include "schedules/systems/generators.h"
#include "schedules/systems/pass_placer.h"
#include "schedules/systems/zero_bubble_costs.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kOne = "zb-1p";
constexpr absl::string_view kTwo = "zb-2p";
constexpr absl::string_view kZeroBubbleAutoPaper =
    "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024";

// Open choices of the heuristic.
struct ZeroBubbleAutoChoices {
  // During its warm-up, a stage runs only forwards that end before its first
  // gradient arrives. False: one more, which delays the first I.
  bool stay_ready_for_first_input;
  // A stage may skip its forward of a round to run its I earlier.
  bool hold_forwards_back;
  // A gap too short for a W is filled even if the rank is not the busiest.
  bool fill_harmless_gaps;
};

class ZeroBubbleAutoAttempt {
 public:
  ZeroBubbleAutoAttempt(const ScheduleSpec& spec, const std::vector<int>& route,
                        double memory_limit,
                        const ZeroBubbleAutoChoices& choices)
      : num_stages_(spec.num_ranks),
        num_microbatches_(spec.num_microbatches),
        hop_(spec.costs.hop),
        choices_(choices),
        placer_(spec, route, memory_limit) {}

  // Runs round by round, one per microbatch: a forward on every stage that may
  // run one, then an I on every stage.
  void Run() {
    WarmUp();
    RoundOfInputs();
    for (int k = 1; k < num_microbatches_; ++k) {
      RoundOfForwards();
      RoundOfInputs();
    }
    for (int stage = 0; stage < num_stages_; ++stage) PutAllWeights(stage);
  }

  PassPlacer& placer() { return placer_; }

 private:
  int num_forwards(int stage) const { return placer_.num(Op::kForward, stage); }
  double duration(Op op, int stage) const {
    return placer_.duration(op, stage);
  }

  void WarmUp() {
    for (int stage = 0; stage < num_stages_; ++stage) {
      placer_.Put(Op::kForward, stage);
    }
    const std::vector<int> extra = ExtraForwards();
    for (int stage = 0; stage < num_stages_; ++stage) {
      for (int i = 0; i < extra[stage]; ++i) placer_.Put(Op::kForward, stage);
    }
  }

  // Returns the number of forwards after the first and before the first I, by
  // stage.
  std::vector<int> ExtraForwards() const {
    std::vector<int> extra(num_stages_, 0);
    const int last = num_stages_ - 1;
    double first_input_end =
        placer_.free_at(last) + duration(Op::kBackwardInput, last);
    for (int stage = last - 1; stage >= 0; --stage) {
      const double gradient_at = first_input_end + hop_;
      const double forward = duration(Op::kForward, stage);
      double ready = placer_.free_at(stage);
      const auto has_time = [&] {
        return choices_.stay_ready_for_first_input
                   ? placer_.AtMost(ready + forward, gradient_at)
                   : placer_.Less(ready, gradient_at);
      };
      while (1 + extra[stage] < num_microbatches_ &&
             placer_.HasRoomForForwards(stage, extra[stage] + 1) &&
             has_time()) {
        ++extra[stage];
        ready += forward;
      }
      first_input_end =
          std::max(ready, gradient_at) + duration(Op::kBackwardInput, stage);
    }
    KeepAhead(&extra);
    return extra;
  }

  // Limits every stage's warm-up to fewer forwards than the previous stage's,
  // unless that has run all its forwards.
  void KeepAhead(std::vector<int>* extra) const {
    for (int stage = 1; stage < num_stages_; ++stage) {
      const int before = (*extra)[stage - 1];
      int& own = (*extra)[stage];
      if (own < before) continue;
      if (own == before && 1 + own == num_microbatches_) continue;
      own = std::max(before - 1, 0);
    }
  }

  void RoundOfForwards() {
    std::vector<bool> takes(num_stages_);
    for (int stage = num_stages_ - 1; stage >= 0; --stage) {
      // A stage does not move further ahead of one that is held back.
      const bool next_takes = stage + 1 == num_stages_ || takes[stage + 1];
      takes[stage] = next_takes && num_forwards(stage) < num_microbatches_ &&
                     !IsHeldBack(stage);
    }
    for (int stage = 0; stage < num_stages_; ++stage) {
      if (!takes[stage]) continue;
      placer_.MakeRoomForForward(stage);
      FillGap(Op::kForward, stage);
      placer_.Put(Op::kForward, stage);
    }
  }

  // Returns true if the stage should run no forward in this round: the next
  // stage has one in reserve, and this stage would delay the gradient.
  bool IsHeldBack(int stage) const {
    if (!choices_.hold_forwards_back || stage + 1 == num_stages_ ||
        num_forwards(stage) < num_forwards(stage + 1) + 2) {
      return false;
    }
    const double ready = placer_.free_at(stage);
    const double gradient_at = placer_.free_at(stage + 1) +
                               duration(Op::kForward, stage + 1) +
                               duration(Op::kBackwardInput, stage + 1) + hop_;
    if (placer_.AtMost(gradient_at, ready)) return true;
    const double with_forward = ready + duration(Op::kForward, stage) +
                                placer_.WeightsBeforeForward(stage) *
                                    duration(Op::kBackwardWeight, stage);
    if (placer_.AtMost(with_forward, gradient_at)) return false;
    return IsHarmless(stage, gradient_at - ready);
  }

  void RoundOfInputs() {
    for (int stage = num_stages_ - 1; stage >= 0; --stage) {
      FillGap(Op::kBackwardInput, stage);
      // No stage waits for the first stage's I.
      if (stage == 0 && num_forwards(0) == num_microbatches_) PutAllWeights(0);
      placer_.Put(Op::kBackwardInput, stage);
    }
  }

  // Puts W into the gap before the stage's next F or I.
  void FillGap(Op op, int stage) {
    const double arrival = placer_.Arrival(op, stage);
    const double weight = duration(Op::kBackwardWeight, stage);
    while (placer_.HasWeight(stage) &&
           placer_.AtMost(placer_.free_at(stage) + weight, arrival)) {
      placer_.PutWeight(stage);
    }
    const double gap = arrival - placer_.free_at(stage);
    if (!placer_.HasWeight(stage) || !placer_.Less(0, gap)) return;
    if (choices_.fill_harmless_gaps || !IsHarmless(stage, gap)) {
      placer_.PutWeight(stage);
    }
  }

  // Returns true if the stage can be idle for this long without becoming the
  // busiest.
  bool IsHarmless(int stage, double gap) const {
    return placer_.AtMost(placer_.span(stage) + gap, placer_.longest_span());
  }

  void PutAllWeights(int stage) {
    while (placer_.HasWeight(stage)) placer_.PutWeight(stage);
  }

  int num_stages_;
  int num_microbatches_;
  double hop_;
  ZeroBubbleAutoChoices choices_;
  PassPlacer placer_;
};

Schedule GenerateZeroBubbleAuto(absl::string_view name,
                                const ScheduleSpec& spec) {
  Schedule schedule = EmptySchedule(name, spec);
  Problems problems(name);  // stays empty: check() has read the option
  const double memory_limit =
      MemoryLimit(spec, (name == kTwo ? 2 : 1) * spec.num_ranks, 1, &problems);
  std::optional<double> best;
  for (bool ready : {true, false}) {
    for (bool hold : {true, false}) {
      for (bool fill : {true, false}) {
        ZeroBubbleAutoAttempt attempt(spec, schedule.routes[0], memory_limit,
                                      {ready, hold, fill});
        attempt.Run();
        PassPlacer& placer = attempt.placer();
        if (best && !placer.Less(placer.longest_span(), *best)) continue;
        best = placer.longest_span();
        schedule.rank_actions = placer.TakeActions();
      }
    }
  }
  return schedule;
}

absl::Status CheckZeroBubbleAuto(absl::string_view name,
                                 const ScheduleSpec& spec) {
  Problems problems(name);
  CheckLimits(spec, &problems, /*num_passes=*/3);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  CheckCosts(spec, &problems);
  MemoryLimit(spec, spec.num_ranks, 1, &problems);
  return problems.ToStatus();
}

}  // namespace

ScheduleKind ZeroBubble1pKind() {
  return {.name = kOne,
          .aliases = {"zero-bubble-1p", "zb1p"},
          .paper = kZeroBubbleAutoPaper,
          .constraints = "chunks is 1, num_batches is 1",
          .summary =
              "order found from the costs within the memory of 1F1B, flush; "
              "one weight version",
          .flush = true,
          .splits_backward = true,
          .uses_costs = true,
          .options = {{kMemoryLimit, "pipeline", kMemoryLimitSummary}},
          .check =
              [](const ScheduleSpec& spec) {
                return CheckZeroBubbleAuto(kOne, spec);
              },
          .generate =
              [](const ScheduleSpec& spec) {
                return GenerateZeroBubbleAuto(kOne, spec);
              }};
}

ScheduleKind ZeroBubble2pKind() {
  return {.name = kTwo,
          .aliases = {"zero-bubble-2p", "zb2p"},
          .paper = kZeroBubbleAutoPaper,
          .constraints = "chunks is 1, num_batches is 1",
          .summary =
              "order found from the costs within twice the memory of 1F1B, "
              "almost no bubble, flush; one weight version",
          .flush = true,
          .splits_backward = true,
          .uses_costs = true,
          .options = {{kMemoryLimit, "2 * pipeline", kMemoryLimitSummary}},
          .check =
              [](const ScheduleSpec& spec) {
                return CheckZeroBubbleAuto(kTwo, spec);
              },
          .generate =
              [](const ScheduleSpec& spec) {
                return GenerateZeroBubbleAuto(kTwo, spec);
              }};
}

}  // namespace weir::schedules
