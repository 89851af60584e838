// SPDX-License-Identifier: Apache-2.0
#include "sim/report/shared_links.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace weir::sim {
namespace {

// Adds bytes that are moved evenly from `begin` to `end` to intervals of equal
// length, which are numbered from 0. Requires: 0 <= begin <= end.
void SpreadBytes(double begin, double end, double bytes, double interval,
                 std::vector<double>* by_interval) {
  const size_t last = by_interval->size() - 1;
  const auto at = [&](double seconds) {
    return std::min(last, static_cast<size_t>(seconds / interval));
  };
  const size_t first = at(begin), end_at = at(end);
  if (first == end_at || !(end > begin)) {
    (*by_interval)[first] += bytes;
    return;
  }
  const double rate = bytes / (end - begin);
  for (size_t i = first; i <= end_at; ++i) {
    const double from = i == first ? begin : static_cast<double>(i) * interval;
    const double to = i == end_at ? end : static_cast<double>(i + 1) * interval;
    (*by_interval)[i] += rate * (to - from);
  }
}

// Moves bytes above `capacity` to the nearest intervals that have room.
void LimitBytes(double capacity, std::vector<double>* by_interval) {
  std::vector<double>& bytes = *by_interval;
  const auto count = static_cast<int64_t>(bytes.size());
  for (int64_t i = 0; i < count; ++i) {
    double excess = bytes[i] - capacity;
    if (!(excess > 0)) continue;
    bytes[i] = capacity;
    for (int64_t d = 1; d < count && excess > 0; ++d) {
      for (const int64_t k : {i - d, i + d}) {
        if (k < 0 || k >= count || bytes[k] >= capacity) continue;
        const double moved = std::min(excess, capacity - bytes[k]);
        bytes[k] += moved;
        excess -= moved;
      }
    }
    bytes[i] += std::max(excess, 0.0);
  }
}

struct LinkSums {
  double transfer_bytes = 0, collective_bytes = 0, host_bytes = 0;
  std::vector<double> by_interval;

  double bytes() const {
    return transfer_bytes + collective_bytes + host_bytes;
  }
};

using Ends = std::pair<int32_t, int32_t>;

// Returns the pairs whose flows use each link. A pair of GPUs can have several
// pairs of the graph, one per latency.
std::map<int32_t, std::set<Ends>> PairsOfLinks(
    const TaskGraph& tasks, const scenarios::Network& network) {
  std::vector<bool> used(tasks.pairs.size());
  for (int32_t task = 0; task < tasks.num_tasks(); ++task) {
    if (!tasks.is_timer(task)) used[tasks.pair(task)] = true;
  }
  const int num_gpus = std::max(network.num_gpus(), 1);
  std::map<int32_t, std::set<Ends>> pairs;
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    const GpuPair& pair = tasks.pairs[i];
    for (const int32_t link : pair.route.links) {
      pairs[link].insert({pair.from % num_gpus, pair.to % num_gpus});
    }
  }
  return pairs;
}

}  // namespace

void FillSharedLinks(const scenarios::Network& network,
                     const PipelineGraph& graph, const Recording& recording,
                     Result* result) {
  const TaskGraph& tasks = graph.tasks;
  const double begin = result->timeline().from_seconds();
  const double seconds = result->makespan_seconds() - begin;
  if (!(seconds > 0)) return;
  const double interval = seconds / static_cast<double>(kSharedLinkIntervals);
  const auto pairs = PairsOfLinks(tasks, network);
  std::map<int32_t, LinkSums> sums;  // by link
  for (const auto& [link, of_link] : pairs) {
    if (of_link.size() > 1) sums[link].by_interval.resize(kSharedLinkIntervals);
  }
  const auto starts = recording.start_seconds();
  const auto ends = recording.end_seconds();
  for (int32_t task = 0; task < tasks.num_tasks() && !sums.empty(); ++task) {
    if (tasks.is_timer(task) || ends[task] < begin) continue;
    const scenarios::Route& route = tasks.pairs[tasks.pair(task)].route;
    const double moves =
        std::min(starts[task] + route.latency_seconds, ends[task]);
    const double from = std::max(moves, begin);
    const double took = ends[task] - moves;
    const double bytes =
        tasks.amount(task) * (took > 0 ? (ends[task] - from) / took : 1);
    for (const int32_t link : route.links) {
      const auto at = sums.find(link);
      if (at == sums.end()) continue;
      LinkSums& sum = at->second;
      (task < graph.ranges.end_of_actions   ? sum.host_bytes
       : task < graph.ranges.end_of_gathers ? sum.collective_bytes
                                            : sum.transfer_bytes) += bytes;
      SpreadBytes(from - begin, ends[task] - begin, bytes, interval,
                  &sum.by_interval);
    }
  }
  std::vector<int32_t> order;
  for (const auto& [link, sum] : sums) order.push_back(link);
  const auto busy_seconds = [&](int32_t link) {
    return sums[link].bytes() / network.links()[link].bytes_per_second;
  };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return busy_seconds(a) > busy_seconds(b);
  });
  LinkUse* shared = result->mutable_link_use();
  shared->set_interval_seconds(interval);
  if (order.size() > kMostSharedLinks) {
    shared->set_num_left_out(
        static_cast<uint32_t>(order.size() - kMostSharedLinks));
    order.resize(kMostSharedLinks);
  }
  for (const int32_t link : order) {
    const scenarios::Link& physical = network.links()[link];
    LinkSums& sum = sums[link];
    LinkUse::Link* out = shared->add_links();
    out->set_name(physical.name);
    out->set_bytes_per_second(physical.bytes_per_second);
    out->set_num_pairs(static_cast<uint32_t>(pairs.at(link).size()));
    out->set_transfer_bytes(sum.transfer_bytes);
    out->set_collective_bytes(sum.collective_bytes);
    out->set_host_bytes(sum.host_bytes);
    LimitBytes(interval * physical.bytes_per_second, &sum.by_interval);
    for (const double bytes : sum.by_interval) {
      out->add_utilization(bytes / (interval * physical.bytes_per_second));
    }
  }
}

}  // namespace weir::sim
