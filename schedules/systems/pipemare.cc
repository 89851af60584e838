// SPDX-License-Identifier: Apache-2.0
// PipeMare (Yang et al., 2021): no flush and no stash. A forward at stage i of
// p, counted from 1, reads weights that are (2(p-i)+1)/m updates older than
// those that its gradient updates (section 2); the backward reads the newest.
// T1 scales the learning rate of update k by delay^(min(k/K, 1) - 1), which
// costs neither time nor memory. T2 extrapolates the backward's weights to
// those of the forward, from an average of past updates (section 3.2).
#include "schedules/limits.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kPipeMareName = "pipemare";
constexpr absl::string_view kCorrection = "correction";
constexpr absl::string_view kOrder = "order";
constexpr absl::string_view kAnnealing = "annealing";  // K of T1

constexpr int kMostAnnealing = 1'000'000'000;

struct PipeMareChoices {
  bool corrects = true;  // T2
  bool is_cycle = true;  // the paper's delay, not 1F1B's
};

PipeMareChoices ChoicesOf(const ScheduleSpec& spec, Problems* problems) {
  return {.corrects =
              ChoiceOption(spec, kCorrection, {"t2", "none"}, problems) == "t2",
          .is_cycle = ChoiceOption(spec, kOrder, {"cycle", "1f1b"}, problems) ==
                      "cycle"};
}

absl::Status CheckPipeMare(const ScheduleSpec& spec) {
  Problems problems = CheckWithoutFlush(kPipeMareName, spec);
  const PipeMareChoices choices = ChoicesOf(spec, &problems);
  if (IntOption(spec, kAnnealing, 0, 0, kMostAnnealing, &problems) > 0 &&
      !choices.is_cycle) {
    problems.Add(kAnnealing,
                 "is above 0, expected 0 with order=1f1b: T1 divides by the "
                 "delay of a stage, which is 0 on the last stage");
  }
  return problems.ToStatus();
}

Schedule GeneratePipeMare(const ScheduleSpec& spec) {
  Problems none(kPipeMareName);
  const PipeMareChoices choices = ChoicesOf(spec, &none);
  // In the paper's model every stage runs one forward and one backward in each
  // cycle, so 2(p-1-s)+1 other gradients lie between the forward and the
  // backward of a microbatch. The same number of warm-up forwards gives that
  // distance.
  const auto warmup = [&](int stage) {
    const int ahead = spec.num_ranks - 1 - stage;
    return choices.is_cycle ? 2 * ahead + 1 : ahead;
  };
  Schedule schedule = OneFOneBSchedule(kPipeMareName, spec, warmup);
  schedule.flush = false;
  schedule.weights = {.microbatches_per_update = spec.num_microbatches,
                      .forward = WeightPolicy::ForwardRead::kLatest,
                      .backward = WeightPolicy::BackwardRead::kLatest};
  if (!choices.corrects) return schedule;
  schedule.weights.prediction = WeightPolicy::Prediction::kBackward;
  schedule.weights.estimate_buffers = 1;
  for (int stage = 0; stage < spec.num_ranks; ++stage) {
    schedule.weights.backward_distance.push_back(
        -static_cast<double>(warmup(stage)) / spec.num_microbatches);
  }
  return schedule;
}

}  // namespace

ScheduleKind PipeMareKind() {
  return {.name = kPipeMareName,
          .aliases = {"pipemare-t2"},
          .paper =
              "Yang et al., PipeMare: Asynchronous Pipeline Parallel DNN "
              "Training, MLSys 2021",
          .constraints = "chunks is 1",
          .summary =
              "no flush, no stash, update after every batch of m; one weight "
              "version, mean forward delay (2(p-1-s)+1)/m, backward delay 0",
          .flush = false,
          .repeats_microbatches = true,
          .options = {{kCorrection, "t2",
                       "t2: the backward estimates the weights of the forward; "
                       "none: it does not"},
                      {kOrder, "cycle",
                       "cycle: delay as in the paper; 1f1b: half of it"},
                      {kAnnealing, "0",
                       "number of updates over which T1 ramps up the learning "
                       "rates (needs no time or memory); 0: no T1"}},
          .check = CheckPipeMare,
          .generate = GeneratePipeMare};
}

}  // namespace weir::schedules
