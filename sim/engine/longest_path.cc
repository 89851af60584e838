// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/longest_path.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace weir::sim {
namespace {

// Relative to the last end: two ways to sum the same seconds differ by less.
constexpr double kRounding = 1e-13;

constexpr double kForever = std::numeric_limits<double>::infinity();

// `index` identifies what runs from `begin` to `end`.
struct Interval {
  double begin, end;
  int32_t index;
};

void SortByBegin(std::vector<Interval>* intervals) {
  std::sort(
      intervals->begin(), intervals->end(),
      [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
}

// Returns flows that start before `horizon` while they move bytes, or from
// their start on; `index` is their pair. Allocates at once, since this
// determines the memory of large graphs.
std::vector<Interval> FlowsByBegin(const TaskGraph& graph,
                                   const Recording& recording,
                                   bool with_latency,
                                   double horizon = kForever) {
  const auto start = recording.start_seconds(), end = recording.end_seconds();
  const auto counts = [&](int32_t task) {
    return !graph.is_timer(task) && !std::isnan(end[task]) &&
           start[task] < horizon;
  };
  size_t num_flows = 0;
  for (int32_t task = 0; task < graph.num_tasks(); ++task) {
    if (counts(task)) ++num_flows;
  }
  std::vector<Interval> flows;
  flows.reserve(num_flows);
  for (int32_t task = 0; task < graph.num_tasks(); ++task) {
    if (!counts(task)) continue;
    const int32_t pair = graph.pair(task);
    flows.push_back(
        {start[task] +
             (with_latency ? 0 : graph.pairs[pair].route.latency_seconds),
         end[task], pair});
  }
  SortByBegin(&flows);
  return flows;
}

double LastEnd(const Recording& recording) {
  double last = 0;
  for (const double end : recording.end_seconds()) {
    if (end > last) last = end;
  }
  return last;
}

}  // namespace

std::vector<double> RatesAlone(const TaskGraph& graph,
                               std::span<const scenarios::Link> links) {
  std::vector<double> rates;
  rates.reserve(graph.pairs.size());
  for (const GpuPair& pair : graph.pairs) {
    double rate = std::numeric_limits<double>::infinity();
    const std::vector<int32_t>& route = pair.route.links;
    for (const int32_t link : route) {
      const auto times = std::count(route.begin(), route.end(), link);
      rate = std::min(
          rate, links[link].bytes_per_second / static_cast<double>(times));
    }
    rates.push_back(rate);
  }
  return rates;
}

absl::StatusOr<Recording> LongestPath(const TaskGraph& graph,
                                      std::span<const scenarios::Link> links) {
  const int32_t num_tasks = graph.num_tasks();
  Recording recording(num_tasks, !graph.slowdowns.curves.empty());
  if (!recording.valid()) {
    return absl::ResourceExhaustedError("the simulation ran out of memory");
  }
  const std::vector<double> rates = RatesAlone(graph, links);
  const auto start = recording.start_seconds(), end = recording.end_seconds();
  // Until a task has ended, its end is minus the number of predecessors that it
  // waits for, which needs no extra memory. Any order of ready tasks gives the
  // same times. Last in, first out stays on a GPU as long as possible and needs
  // little memory.
  std::vector<int32_t> ready;
  int64_t num_ended = 0;
  for (int32_t task = num_tasks - 1; task >= 0; --task) {
    const int32_t count = graph.num_predecessors()[task];
    end[task] = -count;
    if (count == 0) ready.push_back(task);
  }
  while (!ready.empty()) {
    const int32_t task = ready.back();
    ready.pop_back();
    ++num_ended;
    double seconds = graph.amount(task);
    if (!graph.is_timer(task)) seconds = SecondsAlone(graph, rates, task);
    const double ended = end[task] = start[task] + seconds;
    for (const int32_t successor : graph.successors(task)) {
      start[successor] = std::max(start[successor], ended);
      if (++end[successor] == 0) ready.push_back(successor);
    }
  }
  recording.set_num_ended(num_ended);
  if (recording.complete()) return recording;
  for (int32_t task = 0; task < num_tasks; ++task) {
    if (end[task] < 0) {
      start[task] = end[task] = std::numeric_limits<double>::quiet_NaN();
    }
  }
  return recording;
}

std::vector<int32_t> SharedLinks(const TaskGraph& graph,
                                 std::span<const scenarios::Link> links,
                                 const Recording& recording) {
  const double rounding = kRounding * LastEnd(recording);
  std::vector<double> used_until(links.size());
  std::vector<bool> shared(links.size());
  for (const Interval& flow :
       FlowsByBegin(graph, recording, /*with_latency=*/false)) {
    const std::vector<int32_t>& route = graph.pairs[flow.index].route.links;
    for (const int32_t link : route) {
      if (flow.begin < used_until[link] - rounding) shared[link] = true;
    }
    for (const int32_t link : route) {
      used_until[link] = std::max(used_until[link], flow.end);
    }
  }
  std::vector<int32_t> found;
  for (size_t link = 0; link < shared.size(); ++link) {
    if (shared[link]) found.push_back(static_cast<int32_t>(link));
  }
  return found;
}

double FirstSharedTime(const TaskGraph& graph,
                       std::span<const scenarios::Link> links,
                       const Recording& recording) {
  const double rounding = kRounding * LastEnd(recording);
  std::vector<double> used_until(links.size());
  for (const Interval& flow :
       FlowsByBegin(graph, recording, /*with_latency=*/false)) {
    for (const int32_t link : graph.pairs[flow.index].route.links) {
      if (flow.begin < used_until[link] - rounding) return flow.begin;
    }
    for (const int32_t link : graph.pairs[flow.index].route.links) {
      used_until[link] = std::max(used_until[link], flow.end);
    }
  }
  return std::numeric_limits<double>::infinity();
}

RestOfGraph RestAfter(const TaskGraph& graph, const Recording& recording,
                      double seconds) {
  RestOfGraph rest;
  rest.graph.pairs = graph.pairs;
  const auto end = recording.end_seconds();
  std::vector<int32_t> number(graph.num_tasks(), -1);
  for (int32_t task = 0; task < graph.num_tasks(); ++task) {
    if (end[task] < seconds) continue;
    number[task] =
        graph.is_timer(task)
            ? rest.graph.AddTimer(graph.amount(task))
            : rest.graph.AddFlow(graph.pair(task), graph.amount(task));
    rest.tasks.push_back(task);
  }
  // Adds a release for each task that a task outside the rest has delayed.
  std::vector<double> released(graph.num_tasks());
  for (int32_t task = 0; task < graph.num_tasks(); ++task) {
    for (const int32_t successor : graph.successors(task)) {
      if (number[task] >= 0) {
        rest.graph.AddEdge(number[task], number[successor]);
      } else if (number[successor] >= 0) {
        released[successor] = std::max(released[successor], end[task]);
      }
    }
  }
  for (int32_t task = 0; task < graph.num_tasks(); ++task) {
    if (number[task] < 0 || released[task] == 0) continue;
    rest.graph.AddEdge(rest.graph.AddTimer(released[task]), number[task]);
    rest.tasks.push_back(-1);
  }
  rest.graph.Finish();
  return rest;
}

namespace {

// Returns SlowsTimers of the tasks that begin before `horizon`.
bool SlowsTimersBefore(const TaskGraph& graph, const Recording& recording,
                       double horizon) {
  const Slowdowns& slowdowns = graph.slowdowns;
  const double rounding = kRounding * LastEnd(recording);
  const auto start = recording.start_seconds(), end = recording.end_seconds();
  const size_t num_gpus = slowdowns.factors.size();
  const auto is_slow = [&](int32_t gpu, size_t mover) {
    return slowdowns.factors[gpu][mover] != 1;
  };
  // Sorted by begin: timers, and flows with negative indices.
  std::vector<Interval> all =
      FlowsByBegin(graph, recording, /*with_latency=*/true, horizon);
  for (Interval& flow : all) flow.index = -1 - flow.index;
  for (int32_t task = 0; task < graph.num_tasks(); ++task) {
    if (slowdowns.timers[task].gpu >= 0 && end[task] > start[task] &&
        start[task] < horizon) {
      all.push_back({start[task], end[task], task});
    }
  }
  SortByBegin(&all);
  std::vector<double> computes_until(num_gpus), moves_until(num_gpus);
  for (const Interval& one : all) {
    if (one.index >= 0) {
      const int32_t gpu = slowdowns.timers[one.index].gpu;
      if (one.begin < moves_until[gpu] - rounding) return true;
      computes_until[gpu] = std::max(computes_until[gpu], one.end);
      continue;
    }
    const Slowdowns::Touch& touch = slowdowns.touches[-1 - one.index];
    for (const int32_t gpu : touch.gpus) {
      if (!is_slow(gpu, static_cast<size_t>(touch.mover))) continue;
      if (one.begin < computes_until[gpu] - rounding) return true;
      moves_until[gpu] = std::max(moves_until[gpu], one.end);
    }
  }
  return false;
}

}  // namespace

bool SlowsTimers(const TaskGraph& graph, const Recording& recording) {
  if (graph.slowdowns.timers.empty()) return false;
  if (!graph.slowdowns.curves.empty()) return true;
  // What slows timers down usually does so from the beginning, and sorting all
  // tasks takes long.
  const double last = LastEnd(recording);
  return SlowsTimersBefore(graph, recording, last / 64) ||
         SlowsTimersBefore(graph, recording, kForever);
}

}  // namespace weir::sim
