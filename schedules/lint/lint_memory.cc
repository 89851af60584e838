// SPDX-License-Identifier: Apache-2.0
#include "schedules/lint/lint_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weir::schedules {
namespace {

struct RankMemory {
  int64_t peak = 0;
  int32_t peak_position = -1;
  int64_t at_first_backward = -1;    // -1: no backward
  size_t warm_up_batch = 0;          // batch of the last forward before it
  std::vector<int64_t> batch_peaks;  // [batch], by the batch of the forwards
};

RankMemory WalkRank(const Schedule& schedule, int rank) {
  RankMemory memory;
  memory.batch_peaks.assign(schedule.num_batches, 0);
  int64_t held = 0;
  const std::vector<Action>& actions = schedule.rank_actions[rank];
  for (int32_t i = 0; i < std::ssize(actions); ++i) {
    const Action& action = actions[i];
    if (MakesInputGradient(action.op)) {
      if (memory.at_first_backward < 0) memory.at_first_backward = held;
      held -= action.num_microbatches;
    } else if (action.op == Op::kOffload) {
      held -= action.num_microbatches;
    } else if (action.op == Op::kForward || action.op == Op::kReload) {
      held += action.num_microbatches;
      const size_t batch = action.microbatch / schedule.num_microbatches;
      memory.batch_peaks[batch] = std::max(memory.batch_peaks[batch], held);
      if (memory.at_first_backward < 0) memory.warm_up_batch = batch;
      if (held <= memory.peak) continue;
      memory.peak = held;
      memory.peak_position = i;
    }
  }
  return memory;
}

// The most weight gradient inputs that a rank stores between I and W.
struct Deferred {
  int64_t peak = 0;
  Place place;
};

Deferred MostDeferred(const Schedule& schedule) {
  Deferred most;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    int64_t held = 0;
    const std::vector<Action>& actions = schedule.rank_actions[rank];
    for (int32_t i = 0; i < std::ssize(actions); ++i) {
      if (actions[i].op == Op::kBackwardInput) {
        held += actions[i].num_microbatches;
      } else if (actions[i].op == Op::kBackwardWeight) {
        held -= actions[i].num_microbatches;
      }
      if (held > most.peak) most = {held, {rank, i}};
    }
  }
  return most;
}

// Returns the number of consecutive batches, up to the last, whose peak exceeds
// that of the previous batch. Ignores batches that fill the pipeline before the
// first backward, because a deep pipeline may need several small ones.
int NumRising(const RankMemory& memory) {
  const std::vector<int64_t>& peaks = memory.batch_peaks;
  int rising = 0;
  for (size_t i = peaks.size();
       i-- > memory.warm_up_batch + 1 && peaks[i] > peaks[i - 1];) {
    ++rising;
  }
  return rising;
}

}  // namespace

std::vector<Finding> FindMemoryGrowth(const Schedule& schedule) {
  std::vector<Finding> findings;
  if (schedule.forward_only) return findings;
  const int64_t bound = 2LL * schedule.num_stages;
  RankMemory all, grown, rising;
  int all_rank = -1, grown_rank = -1, rising_rank = -1;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    RankMemory memory = WalkRank(schedule, rank);
    if (NumRising(memory) >= 3 && memory.peak > rising.peak) {
      rising = memory;
      rising_rank = rank;
    }
    if (memory.peak <= bound) continue;
    const bool grows =
        memory.peak - memory.at_first_backward > schedule.num_stages;
    RankMemory& worst = grows ? grown : all;
    if (memory.peak <= worst.peak) continue;
    worst = std::move(memory);
    (grows ? grown_rank : all_rank) = rank;
  }
  if (grown_rank >= 0) {
    findings.push_back(
        {.rule = "memory",
         .place = {grown_rank, grown.peak_position},
         .message = absl::StrCat(
             "rank ", grown_rank, " holds ", grown.at_first_backward,
             " activations when its backwards start and ", grown.peak,
             " later: memory grows with the number of microbatches, expected "
             "at most ",
             bound, " (2 x stages) in a steady state"),
         .advice = "run as many backwards as forwards after the warm-up"});
  }
  if (rising_rank >= 0) {
    findings.push_back(
        {.rule = "memory",
         .place = {rising_rank, rising.peak_position},
         .message = absl::StrCat("rank ", rising_rank,
                                 " holds more activations in every batch: ",
                                 absl::StrJoin(rising.batch_peaks, ", "),
                                 ", expected a constant number"),
         .advice = "run as many backwards as forwards in every batch"});
  }
  if (all_rank >= 0) {
    findings.push_back({.severity = Finding::Severity::kNote,
                        .rule = "memory-all",
                        .place = {all_rank, all.peak_position},
                        .message = absl::StrCat(
                            "rank ", all_rank, " holds ", all.peak,
                            " activations before its first backward, one for "
                            "every microbatch of its stages: as in GPipe, "
                            "memory grows with the number of microbatches"),
                        .advice = "an order such as 1f1b holds at most one per "
                                  "stage of the pipeline"});
  }
  const Deferred deferred = MostDeferred(schedule);
  if (deferred.peak > bound) {
    findings.push_back(
        {.severity = Finding::Severity::kNote,
         .rule = "memory-deferred",
         .place = deferred.place,
         .message = absl::StrCat(
             "rank ", deferred.place.rank, " keeps the inputs of ",
             deferred.peak, " weight gradients between I and W, more than ",
             bound,
             " (2 x stages): memory grows with the number of microbatches"),
         .advice = "run a W whenever the rank is idle, as zb-h1 does"});
  }
  return findings;
}

}  // namespace weir::schedules
