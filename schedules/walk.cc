// SPDX-License-Identifier: Apache-2.0
#include "schedules/walk.h"

#include <algorithm>

namespace weir::schedules {
namespace {

class Walk {
 public:
  Walk(const Schedule& schedule, const Dependencies& dependencies)
      : schedule_(schedule),
        dependencies_(dependencies),
        num_run_(schedule.num_ranks, 0) {}

  // Runs until no action can run.
  void Run(const std::function<void(int, int32_t)>& visit) {
    // Ranks whose next action may be able to run. A rank is added again
    // whenever an action that it may wait for has run, so none is missed.
    for (int rank = schedule_.num_ranks; rank-- > 0;) ready_.push_back(rank);
    while (!ready_.empty()) {
      const int rank = ready_.back();
      ready_.pop_back();
      while (RunNext(rank, visit)) {
      }
    }
  }

  std::vector<int32_t> num_run() && { return std::move(num_run_); }

 private:
  bool CanRun(Place place) const {
    const auto awaited = dependencies_.Awaited(
        schedule_.rank_actions[place.rank][place.position], place);
    return std::all_of(awaited.begin(), awaited.end(), [&](Place other) {
      return num_run_[other.rank] > other.position;
    });
  }

  // Runs the next action of a rank, with the one that it overlaps, if possible.
  bool RunNext(int rank, const std::function<void(int, int32_t)>& visit) {
    const std::vector<Action>& actions = schedule_.rank_actions[rank];
    const int32_t first = num_run_[rank];
    if (first == std::ssize(actions)) return false;
    const bool pair =
        actions[first].overlaps_next && first + 1 < std::ssize(actions);
    if (!CanRun({rank, first}) || (pair && !CanRun({rank, first + 1}))) {
      return false;
    }
    for (int32_t position = first; position <= first + pair; ++position) {
      visit(rank, position);
      ++num_run_[rank];
    }
    for (int32_t position = first; position <= first + pair; ++position) {
      for (Place next : dependencies_.Released(actions[position])) {
        if (next.rank != rank) ready_.push_back(next.rank);
      }
    }
    return true;
  }

  const Schedule& schedule_;
  const Dependencies& dependencies_;
  std::vector<int32_t> num_run_;
  std::vector<int> ready_;
};

}  // namespace

std::vector<int32_t> WalkSchedule(
    const Schedule& schedule, const Dependencies& dependencies,
    const std::function<void(int rank, int32_t position)>& visit) {
  Walk walk(schedule, dependencies);
  walk.Run(visit);
  return std::move(walk).num_run();
}

double WalkTimes::makespan() const {
  double last = 0;
  for (const auto& ends : end) {
    for (double seconds : ends) last = std::max(last, seconds);
  }
  return last;
}

double WalkTimes::span() const {
  double longest = 0;
  for (size_t rank = 0; rank < end.size(); ++rank) {
    if (end[rank].empty()) continue;
    longest = std::max(
        longest, *std::max_element(end[rank].begin(), end[rank].end()) -
                     *std::min_element(start[rank].begin(), start[rank].end()));
  }
  return longest;
}

WalkTimes TimedWalk(const Schedule& schedule, const PassCosts& costs) {
  const Dependencies dependencies(schedule);
  WalkTimes times;
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    times.start.emplace_back(actions.size());
    times.end.emplace_back(actions.size());
  }
  // Times at which each stream of a rank is free: compute, offloads, reloads.
  std::vector<double> compute(schedule.num_ranks), offload(schedule.num_ranks),
      reload(schedule.num_ranks);
  const auto ready_at = [&](const Action& action, Place place) {
    double ready = compute[place.rank];
    for (Place other : dependencies.Awaited(action, place)) {
      const double hop = other.rank == place.rank ? 0 : costs.hop;
      ready = std::max(ready, times.end[other.rank][other.position] + hop);
    }
    return ready;
  };
  WalkSchedule(schedule, dependencies, [&](int rank, int32_t position) {
    const std::vector<Action>& actions = schedule.rank_actions[rank];
    const Action& action = actions[position];
    if (position > 0 && actions[position - 1].overlaps_next) return;
    double start = ready_at(action, {rank, position});
    double seconds = costs.duration(action);
    if (action.overlaps_next) {
      const Action& other = actions[position + 1];
      start = std::max(start, ready_at(other, {rank, position + 1}));
      seconds = costs.overlapped(action, other);
      times.start[rank][position + 1] = start;
      times.end[rank][position + 1] = start + seconds;
    }
    double& stream = IsCompute(action.op)        ? compute[rank]
                     : action.op == Op::kOffload ? offload[rank]
                                                 : reload[rank];
    start = std::max(start, stream);
    times.start[rank][position] = start;
    times.end[rank][position] = stream = start + seconds;
  });
  return times;
}

}  // namespace weir::schedules
