// SPDX-License-Identifier: Apache-2.0
#include "schedules/deadlock.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedules/replay.h"

namespace weir {
namespace {

// Where every rank stands once nothing can run any more.
struct Standstill {
  const Schedule& schedule;
  std::vector<int32_t> num_run;  // [rank]

  bool IsBlocked(int rank) const {
    return num_run[rank] < std::ssize(schedule.rank_actions[rank]);
  }
  const Action& Blocked(int rank) const {
    return schedule.rank_actions[rank][num_run[rank]];
  }
  // REQUIRES: IsBlocked(rank).
  int Awaits(int rank) const {
    return schedule.stage_rank[AwaitedAction(schedule, Blocked(rank))->stage];
  }
};

// Every blocked rank waits for one rank, so the cycles share no rank: following
// the waits from each rank finds them all.
std::vector<int> ShortestCycle(const Standstill& standstill) {
  const int num_ranks = standstill.schedule.num_ranks;
  std::vector<int> walk_of(num_ranks, -1);  // the walk that reached the rank
  std::vector<int> shortest;
  for (int first = 0; first < num_ranks; ++first) {
    if (!standstill.IsBlocked(first)) continue;
    int rank = first;
    while (walk_of[rank] < 0) {
      walk_of[rank] = first;
      rank = standstill.Awaits(rank);
    }
    if (walk_of[rank] != first) continue;
    std::vector<int> cycle;
    for (int next = rank; cycle.empty() || next != rank;
         next = standstill.Awaits(next)) {
      cycle.push_back(next);
    }
    if (shortest.empty() || cycle.size() < shortest.size()) shortest = cycle;
  }
  std::rotate(shortest.begin(),
              std::min_element(shortest.begin(), shortest.end()),
              shortest.end());
  return shortest;
}

// The awaited action as the schedule has it: I where the backward is split.
std::string AwaitedText(const Standstill& standstill, int rank) {
  const Schedule& schedule = standstill.schedule;
  const Action awaited = *AwaitedAction(schedule, standstill.Blocked(rank));
  const int other = schedule.stage_rank[awaited.stage];
  const std::vector<Action>& actions = schedule.rank_actions[other];
  const auto found = std::find_if(
      actions.begin() + standstill.num_run[other], actions.end(),
      [&](const Action& action) {
        return action.stage == awaited.stage &&
               action.microbatch == awaited.microbatch &&
               (action.op == Op::kForward) == (awaited.op == Op::kForward) &&
               action.op != Op::kBackwardWeight;
      });
  if (found == actions.end()) return ToString(awaited);
  return absl::StrCat(ToString(*found), " at position ",
                      found - actions.begin(), " of rank ", other);
}

absl::Status Deadlock(const Standstill& standstill) {
  // A long cycle is cut: its first waits show what went wrong.
  constexpr size_t kMaxShown = 16;
  const std::vector<int> cycle = ShortestCycle(standstill);
  std::vector<std::string> waits;
  for (size_t i = 0; i < cycle.size() && i < kMaxShown; ++i) {
    const int rank = cycle[i];
    waits.push_back(absl::StrCat("rank ", rank, " waits at position ",
                                 standstill.num_run[rank], " (",
                                 ToString(standstill.Blocked(rank)), ") for ",
                                 AwaitedText(standstill, rank)));
  }
  if (cycle.size() > kMaxShown) {
    waits.push_back(absl::StrCat("and ", cycle.size() - kMaxShown, " more"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("deadlock: ", absl::StrJoin(waits, "; ")));
}

}  // namespace

absl::Status CheckExecutable(const Schedule& schedule) {
  const Standstill standstill = {schedule,
                                 Replay(schedule, [](int, int32_t) {})};
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    if (standstill.IsBlocked(rank)) return Deadlock(standstill);
  }
  return absl::OkStatus();
}

}  // namespace weir
