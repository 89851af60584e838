// SPDX-License-Identifier: Apache-2.0
#include "plan/replay/replay_times.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace weir::plan {
namespace {

using Interval = std::pair<double, double>;

// Returns the union of the intervals, sorted and disjoint.
std::vector<Interval> Union(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> united;
  for (const Interval& next : intervals) {
    if (united.empty() || next.first > united.back().second) {
      united.push_back(next);
    } else {
      united.back().second = std::max(united.back().second, next.second);
    }
  }
  return united;
}

double Overlap(const Interval& a, const Interval& b) {
  return std::max(0.0,
                  std::min(a.second, b.second) - std::max(a.first, b.first));
}

double SecondsIn(const std::vector<Interval>& united, const Interval& window) {
  double seconds = 0;
  for (const Interval& one : united) seconds += Overlap(one, window);
  return seconds;
}

// Returns the time of the window outside the intervals.
double SecondsOutside(const std::vector<Interval>& united,
                      const Interval& window) {
  double seconds = 0, until = window.first;
  for (const Interval& one : united) {
    seconds += Overlap({until, one.first}, window);
    until = std::max(until, one.second);
  }
  return seconds + Overlap({until, window.second}, window);
}

std::vector<Interval> PassesOf(const schedules::Schedule& schedule,
                               const calibrate::StepRecord& step, int rank) {
  std::vector<Interval> passes;
  const auto& actions = schedule.rank_actions[rank];
  for (size_t i = 0; i < actions.size(); ++i) {
    if (!schedules::IsCompute(actions[i].op)) continue;
    const calibrate::ActionRecord& record = step.ranks[rank].actions[i];
    passes.emplace_back(record.start_seconds, record.end_seconds);
  }
  return passes;
}

std::vector<Interval> BusyOf(const schedules::Schedule& schedule,
                             const calibrate::StepRecord& step, int rank) {
  std::vector<Interval> busy = PassesOf(schedule, step, rank);
  for (const calibrate::UpdateRecord& update : step.ranks[rank].updates) {
    busy.emplace_back(update.start_seconds, update.end_seconds);
  }
  return Union(std::move(busy));
}

// Intervals in which messages to a rank were in flight, keyed by whether they
// carry a gradient, the sending stage, and the microbatch.
using Arrivals = std::map<std::tuple<bool, int, int>, Interval>;

Arrivals ArrivalsAt(const calibrate::StepRecord& step, int rank) {
  Arrivals arrivals;
  for (const calibrate::TransferRecord& transfer : step.transfers) {
    if (transfer.to_rank != rank) continue;
    arrivals[{transfer.gradient, transfer.stage, transfer.microbatch}] = {
        transfer.start_seconds, transfer.end_seconds};
  }
  return arrivals;
}

// Returns the end of a batch's last backward (last forward if forward-only) in
// the stage where the batch ends.
double BatchEnd(const schedules::Schedule& schedule,
                const calibrate::StepRecord& step, int batch) {
  const int stage = schedule.forward_only ? schedule.num_stages - 1 : 0;
  double end = 0;
  for (int rank : schedule.RanksOf(stage)) {
    const auto& actions = schedule.rank_actions[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      const schedules::Action& action = actions[i];
      const bool ends = schedule.forward_only
                            ? action.op == schedules::Op::kForward
                            : schedules::CompletesGradient(action.op);
      if (action.stage == stage && ends &&
          action.last_microbatch() / schedule.num_microbatches == batch) {
        end = std::max(end, step.ranks[rank].actions[i].end_seconds);
      }
    }
  }
  return end;
}

}  // namespace

ReplayWindow WindowOf(const schedules::Schedule& schedule,
                      const calibrate::StepRecord& step) {
  ReplayWindow window{0, step.makespan_seconds, schedule.num_batches};
  const int drain = (schedule.num_ranks + schedule.num_microbatches - 1) /
                    schedule.num_microbatches;
  const int last = schedule.num_batches - 1 - drain;
  if (schedule.flush || last < 1) return window;
  window.begin_seconds = BatchEnd(schedule, step, last / 2);
  window.end_seconds = BatchEnd(schedule, step, last);
  window.num_batches = last - last / 2;
  return window;
}

RecordedTimes TimesOf(const schedules::Schedule& schedule,
                      const calibrate::StepRecord& step, int rank,
                      const ReplayWindow& window) {
  const Interval part = {window.begin_seconds, window.end_seconds};
  const std::vector<Interval> busy = BusyOf(schedule, step, rank);
  RecordedTimes times;
  times.busy_seconds = SecondsIn(busy, part);
  times.idle_seconds = SecondsOutside(busy, part);

  const Arrivals arrivals = ArrivalsAt(step, rank);
  const auto& actions = schedule.rank_actions[rank];
  for (size_t i = 0; i < actions.size(); ++i) {
    const schedules::Action& action = actions[i];
    const bool forward = action.op == schedules::Op::kForward;
    if (!forward && !schedules::MakesInputGradient(action.op)) continue;
    const double start = step.ranks[rank].actions[i].start_seconds;
    // The rank was idle since the last busy interval before `start`.
    double idle_from = 0;
    for (const Interval& one : busy) {
      if (one.first >= start) break;
      idle_from = std::min(one.second, start);
    }
    std::vector<Interval> waits;
    for (int m = action.microbatch; m <= action.last_microbatch(); ++m) {
      const auto found =
          arrivals.find({!forward, action.stage + (forward ? -1 : 1), m});
      if (found == arrivals.end()) continue;
      const double from =
          std::max({idle_from, found->second.first, window.begin_seconds});
      const double to =
          std::min({start, found->second.second, window.end_seconds});
      if (to > from) waits.emplace_back(from, to);
    }
    times.exposed_seconds += SecondsIn(Union(std::move(waits)), part);
  }
  return times;
}

ReplaySpan SpanOf(const schedules::Schedule& schedule,
                  const calibrate::StepRecord& step, int rank) {
  const std::vector<Interval> passes = Union(PassesOf(schedule, step, rank));
  if (passes.empty()) return {};
  ReplaySpan span;
  span.seconds = passes.back().second - passes.front().first;
  span.idle_seconds =
      SecondsOutside(passes, {passes.front().first, passes.back().second});
  return span;
}

double PeakActivationMicrobatches(const schedules::Schedule& schedule,
                                  const calibrate::StepRecord& step, int rank) {
  // At equal times, releases are sorted before allocations.
  std::vector<std::pair<double, double>> events;
  const auto& actions = schedule.rank_actions[rank];
  for (size_t i = 0; i < actions.size(); ++i) {
    const schedules::Action& action = actions[i];
    const calibrate::ActionRecord& record = step.ranks[rank].actions[i];
    for (int m = action.microbatch; m <= action.last_microbatch(); ++m) {
      int num_here = 0;
      for (int stage = 0; stage < schedule.num_stages; ++stage) {
        num_here += schedule.rank_of(stage, m) == rank;
      }
      const double part = 1.0 / std::max(num_here, 1);
      if (action.op == schedules::Op::kForward ||
          action.op == schedules::Op::kReload) {
        events.emplace_back(record.start_seconds, part);
        if (schedule.forward_only) {
          events.emplace_back(record.end_seconds, -part);
        }
      } else if (schedules::MakesInputGradient(action.op) ||
                 action.op == schedules::Op::kOffload) {
        events.emplace_back(record.end_seconds, -part);
      }
    }
  }
  std::sort(events.begin(), events.end());
  double now = 0, peak = 0;
  for (const auto& [seconds, change] : events) {
    now += change;
    peak = std::max(peak, now);
  }
  return peak;
}

VersionsHeld VersionsOf(const schedules::Schedule& schedule,
                        const calibrate::StepRecord& step, int rank) {
  VersionsHeld held;
  const auto& actions = schedule.rank_actions[rank];
  for (int stage : schedule.StagesOf(rank)) {
    const std::vector<schedules::VersionUse>& uses = step.uses[stage];
    std::set<int> needed;  // older versions needed by actions from here on
    for (size_t i = actions.size(); i-- > 0;) {
      const schedules::Action& action = actions[i];
      if (action.stage != stage || !schedules::IsCompute(action.op)) continue;
      for (int m = action.microbatch; m <= action.last_microbatch(); ++m) {
        const schedules::VersionUse& use = uses[m];
        held.staleness = std::max<int>(held.staleness, use.staleness());
        if (action.op == schedules::Op::kForward)
          needed.insert(use.forward_version);
        if (schedules::MakesInputGradient(action.op))
          needed.insert(use.backward_version);
      }
      int newest = 0;
      const double start = step.ranks[rank].actions[i].start_seconds;
      for (const calibrate::UpdateRecord& update : step.ranks[rank].updates) {
        if (update.stage == stage && update.end_seconds <= start) {
          newest = std::max(newest, update.update + 1);
        }
      }
      const auto older =
          std::distance(needed.begin(), needed.lower_bound(newest));
      held.versions = std::max(held.versions, static_cast<int>(older) + 1);
    }
  }
  return held;
}

}  // namespace weir::plan
