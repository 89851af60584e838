// SPDX-License-Identifier: Apache-2.0
// TiMePReSt (Dutta et al., 2024): the forward of a minibatch goes through the
// pipeline as N microbatches, its backward as a whole, with the newest weights
// (nF1B). There is no stash. F and B of a minibatch read different versions;
// the paper calls their distance "version difference".
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schedules/limits.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kTiMePReStName = "timeprest";
constexpr absl::string_view kAhead = "ahead";

// Returns true if a stage is ahead of the next by a minibatch instead of a
// microbatch.
bool IsAheadByMinibatch(const ScheduleSpec& spec, Problems* problems) {
  return ChoiceOption(spec, kAhead, {"microbatch", "minibatch"}, problems) ==
         "minibatch";
}

absl::Status CheckTiMePReSt(const ScheduleSpec& spec) {
  Problems problems = CheckWithoutFlush(kTiMePReStName, spec);
  IsAheadByMinibatch(spec, &problems);
  if (spec.num_microbatches > kMaxSpan) {
    problems.Add("num_microbatches", absl::StrCat("is ", spec.num_microbatches,
                                                  ", expected at most ",
                                                  kMaxSpan, " per backward"));
  }
  return problems.ToStatus();
}

// Returns the order of a stage. Before the backward of minibatch u it runs the
// forwards of the minibatches up to u and of `ahead` more microbatches.
std::vector<Action> NFOneB(int stage, int64_t ahead, const ScheduleSpec& spec) {
  const int minibatch = spec.num_microbatches;
  const int total = minibatch * spec.num_batches;
  std::vector<Action> actions;
  actions.reserve(total + spec.num_batches);
  int forward = 0;
  for (int u = 0; u < spec.num_batches; ++u) {
    const int64_t before = (u + int64_t{1}) * minibatch + ahead;
    while (forward < std::min<int64_t>(before, total)) {
      actions.push_back({Op::kForward, stage, forward++});
    }
    actions.push_back({.op = Op::kBackward,
                       .stage = stage,
                       .microbatch = u * minibatch,
                       .num_microbatches = static_cast<uint16_t>(minibatch)});
  }
  return actions;
}

Schedule GenerateTiMePReSt(const ScheduleSpec& spec) {
  Problems none(kTiMePReStName);
  const int step = IsAheadByMinibatch(spec, &none) ? spec.num_microbatches : 1;
  Schedule schedule = EmptySchedule(kTiMePReStName, spec);
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    const int64_t ahead = int64_t{step} * (spec.num_ranks - 1 - rank);
    schedule.rank_actions[rank] = NFOneB(rank, ahead, spec);
  }
  schedule.flush = false;
  schedule.weights = {.microbatches_per_update = spec.num_microbatches,
                      .forward = WeightPolicy::ForwardRead::kLatest,
                      .backward = WeightPolicy::BackwardRead::kLatest};
  return schedule;
}

}  // namespace

ScheduleKind TiMePReStKind() {
  return {.name = kTiMePReStName,
          .aliases = {"nf1b"},
          .paper =
              "Dutta et al., TiMePReSt: Time and Memory Efficient Pipeline "
              "Parallel DNN Training with Removed Staleness, 2024",
          .constraints = "chunks is 1",
          .summary =
              "one forward per microbatch, one backward per minibatch with the "
              "newest weights, no flush, no stash; one weight version",
          .flush = false,
          .options = {{kAhead, "microbatch",
                       "how far a stage runs ahead of the next: microbatch, or "
                       "minibatch, which keeps all stages busy"}},
          .check = CheckTiMePReSt,
          .generate = GenerateTiMePReSt};
}

}  // namespace weir::schedules
