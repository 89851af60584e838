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
  const Dependencies& dependencies;
  std::vector<int32_t> num_run;  // [rank]

  bool IsBlocked(int rank) const {
    return num_run[rank] < std::ssize(schedule.rank_actions[rank]);
  }
  const Action& Blocked(int rank) const {
    return schedule.rank_actions[rank][num_run[rank]];
  }
  // The first action that a blocked rank waits for. REQUIRES: IsBlocked(rank).
  Place Awaits(int rank) const {
    const std::vector<Action>& actions = schedule.rank_actions[rank];
    for (int32_t position = num_run[rank]; position < std::ssize(actions);
         ++position) {
      for (Place other :
           dependencies.Awaited(actions[position], {rank, position})) {
        if (num_run[other.rank] <= other.position) return other;
      }
      if (!actions[position].overlaps_next) break;
    }
    return {};
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
      rank = standstill.Awaits(rank).rank;
    }
    if (walk_of[rank] != first) continue;
    std::vector<int> cycle;
    for (int next = rank; cycle.empty() || next != rank;
         next = standstill.Awaits(next).rank) {
      cycle.push_back(next);
    }
    if (shortest.empty() || cycle.size() < shortest.size()) shortest = cycle;
  }
  std::rotate(shortest.begin(),
              std::min_element(shortest.begin(), shortest.end()),
              shortest.end());
  return shortest;
}

std::string AwaitedText(const Standstill& standstill, int rank) {
  const Place awaited = standstill.Awaits(rank);
  return absl::StrCat(
      ToString(
          standstill.schedule.rank_actions[awaited.rank][awaited.position]),
      " at position ", awaited.position, " of rank ", awaited.rank);
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
  const Dependencies dependencies(schedule);
  const Standstill standstill = {
      schedule, dependencies,
      Replay(schedule, dependencies, [](int, int32_t) {})};
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    if (standstill.IsBlocked(rank)) return Deadlock(standstill);
  }
  return absl::OkStatus();
}

}  // namespace weir
