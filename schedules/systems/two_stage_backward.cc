// SPDX-License-Identifier: Apache-2.0
// 2BP (Rae et al., 2024): known orders with a split backward. backward-p1 (I)
// replaces the backward. backward-p2 (W) is delayed until the stage would be
// idle, or until the end, where one W may process all remaining microbatches
// together.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schedules/limits.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kNaive = "2bp-naive";
constexpr absl::string_view kGPipe = "2bp-gpipe";
constexpr absl::string_view kOneFOneB1 = "2bp-1f1b-1";
constexpr absl::string_view kOneFOneB2 = "2bp-1f1b-2";

struct TwoStageBackwardOptions {
  bool fills_idle = false;
  bool concatenates = false;
};

TwoStageBackwardOptions ReadOptions(absl::string_view name,
                                    const ScheduleSpec& spec,
                                    Problems* problems) {
  TwoStageBackwardOptions options;
  // GPipe's input gradients leave no gap.
  options.fills_idle =
      name != kGPipe &&
      ChoiceOption(spec, "backward-p2", {"idle", "end"}, problems) == "idle";
  options.concatenates =
      ChoiceOption(spec, "concatenate", {"no", "yes"}, problems) == "yes";
  return options;
}

// Returns the number of microbatches per rank, 0 if any number is legal.
int MicrobatchesPerRank(absl::string_view name) {
  return name == kOneFOneB1 ? 1 : name == kOneFOneB2 ? 2 : 0;
}

absl::Status CheckTwoStageBackward(absl::string_view name,
                                   const ScheduleSpec& spec) {
  Problems problems(name);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  ReadOptions(name, spec, &problems);
  const int64_t expected =
      int64_t{MicrobatchesPerRank(name)} * std::max(spec.num_ranks, 0);
  if (expected > 0 && spec.num_microbatches >= 1 &&
      spec.num_microbatches != expected) {
    problems.Add("num_microbatches",
                 absl::StrCat("is ", spec.num_microbatches, ", expected ",
                              expected, " for pipeline ", spec.num_ranks));
  }
  return problems.ToStatus();
}

// Builds the order of a stage: its forwards and input gradients in a base
// order, and weight gradients where the stage would wait.
class TwoStageBackwardStageOrder {
 public:
  TwoStageBackwardStageOrder(int stage, const ScheduleSpec& spec,
                             TwoStageBackwardOptions options)
      : stage_(stage),
        num_ranks_(spec.num_ranks),
        num_microbatches_(spec.num_microbatches),
        options_(options) {
    actions_.reserve(3 * static_cast<size_t>(num_microbatches_));
  }

  // Runs one microbatch at a time through the whole pipeline.
  std::vector<Action> Naive() && {
    for (int k = 0; k < num_microbatches_; ++k) {
      if (stage_ > 0) FillIdle();
      Add(Op::kForward, k);
      // The first stage waits for no input: its idle time is between the
      // forward and its gradient.
      if (stage_ == 0) FillIdle();
      Add(Op::kBackwardInput, k);
    }
    return std::move(*this).WithTheRest();
  }

  std::vector<Action> GPipe() && {
    for (int k = 0; k < num_microbatches_; ++k) Add(Op::kForward, k);
    for (int k = num_microbatches_; k-- > 0;) Add(Op::kBackwardInput, k);
    return std::move(*this).WithTheRest();
  }

  // After its last forward, the stage waits for every gradient.
  std::vector<Action> OneForwardOneBackward() && {
    int num_forwards = 0;
    for (const Action& action :
         OneFOneB(stage_, num_ranks_ - 1 - stage_, num_microbatches_)) {
      if (action.op == Op::kForward) {
        ++num_forwards;
        Add(Op::kForward, action.microbatch);
        continue;
      }
      const bool waits = num_forwards == num_microbatches_ &&
                         actions_.back().op == Op::kBackwardInput;
      if (waits) FillIdle();
      Add(Op::kBackwardInput, action.microbatch);
    }
    return std::move(*this).WithTheRest();
  }

 private:
  void Add(Op op, int k) {
    actions_.push_back({op, stage_, k});
    if (op == Op::kBackwardInput) ++num_inputs_;
  }

  void FillIdle() {
    if (!options_.fills_idle || num_weights_ == num_inputs_) return;
    Add(Op::kBackwardWeight, num_weights_++);
  }

  std::vector<Action> WithTheRest() && {
    while (num_weights_ < num_microbatches_) {
      const int span =
          options_.concatenates
              ? std::min(num_microbatches_ - num_weights_, kMaxSpan)
              : 1;
      Add(Op::kBackwardWeight, num_weights_);
      actions_.back().num_microbatches = static_cast<uint16_t>(span);
      num_weights_ += span;
    }
    return std::move(actions_);
  }

  int stage_;
  int num_ranks_;
  int num_microbatches_;
  TwoStageBackwardOptions options_;
  std::vector<Action> actions_;
  int num_inputs_ = 0;
  int num_weights_ = 0;
};

template <const absl::string_view& kName,
          std::vector<Action> (TwoStageBackwardStageOrder::*kOrder)() &&>
Schedule GenerateTwoStageBackward(const ScheduleSpec& spec) {
  Problems none(kName);
  const TwoStageBackwardOptions options = ReadOptions(kName, spec, &none);
  Schedule schedule = EmptySchedule(kName, spec);
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    schedule.rank_actions[rank] =
        (TwoStageBackwardStageOrder(rank, spec, options).*kOrder)();
  }
  return schedule;
}

template <const absl::string_view& kName,
          std::vector<Action> (TwoStageBackwardStageOrder::*kOrder)() &&>
ScheduleKind Kind(absl::string_view constraints, absl::string_view summary) {
  ScheduleKind kind = {
      .name = kName,
      .aliases = {},
      .paper = "Rae, Lee and Richings, 2BP: 2-Stage Backpropagation, 2024",
      .constraints = constraints,
      .summary = summary,
      .flush = true,
      .splits_backward = true,
      .options =
          {{"concatenate", "no",
            "yes: the weight gradients left at the end run as one action"}},
      .check =
          [](const ScheduleSpec& spec) {
            return CheckTwoStageBackward(kName, spec);
          },
      .generate = GenerateTwoStageBackward<kName, kOrder>};
  if (kName != kGPipe) {
    kind.options.push_back({"backward-p2", "idle",
                            "when weight gradients run: idle (when the stage "
                            "would wait, the rest at the end) or end"});
  }
  return kind;
}

}  // namespace

ScheduleKind TwoBpNaiveKind() {
  return Kind<kNaive, &TwoStageBackwardStageOrder::Naive>(
      "chunks is 1, num_batches is 1",
      "one microbatch at a time, weight gradients delayed, flush; one weight "
      "version");
}

ScheduleKind TwoBpGPipeKind() {
  return Kind<kGPipe, &TwoStageBackwardStageOrder::GPipe>(
      "chunks is 1, num_batches is 1",
      "all forwards, all input gradients, all weight gradients, flush; one "
      "weight version");
}

ScheduleKind TwoBp1F1B1Kind() {
  return Kind<kOneFOneB1, &TwoStageBackwardStageOrder::OneForwardOneBackward>(
      "num_microbatches equals pipeline, chunks is 1, num_batches is 1",
      "1F1B with weight gradients delayed, flush; one weight version");
}

ScheduleKind TwoBp1F1B2Kind() {
  return Kind<kOneFOneB2, &TwoStageBackwardStageOrder::OneForwardOneBackward>(
      "num_microbatches is twice pipeline, chunks is 1, num_batches is 1",
      "1F1B with weight gradients delayed, flush; one weight version");
}

}  // namespace weir::schedules
