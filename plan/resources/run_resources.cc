// SPDX-License-Identifier: Apache-2.0
#include "plan/resources/run_resources.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/textproto.h"
#include "results/validate.h"
#include "scenarios/scenario.h"
#include "sim/kernel_list.h"
#include "sim/prepare.h"

namespace weir::plan {
namespace {

using results::RunResources;

void AddKernels(const scenarios::ResolvedScenario& scenario,
                RunResources* resources) {
  const auto list = sim::ListKernels(scenario);
  if (!list.ok()) return;  // given or measured times
  resources->device = list->device;
  for (const auto& [format, rate] : list->peak_flops) {
    resources->peaks.push_back({format, rate});
  }
  resources->memory_bytes_per_second = list->memory_bytes_per_second;
  for (const sim::ListedKernel& kernel : list->kernels) {
    resources->kernels.push_back({kernel.part, kernel.flops, kernel.bytes,
                                  kernel.seconds, kernel.count});
  }
}

// Adds bytes that are sent evenly from `begin` to `end` to intervals of equal
// length, which are numbered from 0.
void Spread(double begin, double end, double bytes, double interval,
            std::vector<double>* by_interval) {
  const size_t last = by_interval->size() - 1;
  const auto at = [&](double seconds) {
    return std::min(last,
                    static_cast<size_t>(std::max(seconds / interval, 0.0)));
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

struct LinkSum {
  std::set<std::pair<int, int>> pairs;  // of GPUs
  double bytes = 0;
  std::vector<double> by_interval;
};

}  // namespace

void AddSharedLinks(const Result& result, const scenarios::Network& network,
                    RunResources* resources) {
  const Timeline::Transfers& transfers = result.timeline().transfers();
  const double begin = result.timeline().from_seconds();
  const double seconds = result.makespan_seconds() - begin;
  if (transfers.from_gpu_size() == 0 || !(seconds > 0)) return;
  const double interval = seconds / static_cast<double>(kLinkIntervals);
  std::map<std::pair<int, int>, scenarios::Route> routes;
  std::map<int32_t, LinkSum> sums;  // by link
  for (int i = 0; i < transfers.from_gpu_size(); ++i) {
    const std::pair<int, int> pair = {
        result.ranks(static_cast<int>(transfers.from_gpu(i))).gpu(),
        result.ranks(static_cast<int>(transfers.to_gpu(i))).gpu()};
    if (std::max(pair.first, pair.second) >= network.num_gpus()) return;
    auto route = routes.find(pair);
    if (route == routes.end()) {
      route =
          routes.emplace(pair, network.RouteBetween(pair.first, pair.second))
              .first;
    }
    for (const int32_t link : route->second.links) {
      LinkSum& sum = sums[link];
      sum.pairs.insert(pair);
      sum.bytes += transfers.bytes(i);
      sum.by_interval.resize(kLinkIntervals);
      Spread(transfers.start_seconds(i) - begin,
             transfers.end_seconds(i) - begin, transfers.bytes(i), interval,
             &sum.by_interval);
    }
  }
  std::vector<RunResources::Link> links;
  for (auto& [link, sum] : sums) {
    if (sum.pairs.size() < 2) continue;
    const scenarios::Link& physical = network.links()[link];
    for (double& bytes : sum.by_interval) {
      bytes /= interval * physical.bytes_per_second;
    }
    links.push_back({physical.name, physical.bytes_per_second, sum.pairs.size(),
                     sum.bytes, std::move(sum.by_interval)});
  }
  std::stable_sort(
      links.begin(), links.end(), [](const auto& a, const auto& b) {
        return a.bytes / a.bytes_per_second > b.bytes / b.bytes_per_second;
      });
  if (links.size() > kMostShownLinks) {
    resources->num_links_left_out = links.size() - kMostShownLinks;
    links.resize(kMostShownLinks);
  }
  resources->links = std::move(links);
  resources->from_seconds = begin;
  resources->interval_seconds = interval;
}

RunResources ResourcesOf(const Result& result) {
  RunResources resources;
  Scenario scenario;
  SilenceProtobuf();
  if (result.provenance().scenario().empty() || result.has_replay() ||
      !ParseTextProto("", result.provenance().scenario(), &scenario).ok()) {
    return resources;
  }
  const auto resolved = scenarios::ResolveScenario("", scenario);
  if (!resolved.ok()) return resources;
  AddKernels(*resolved, &resources);
  if (!resolved->given_costs && results::ValidateTimeline("", result).ok()) {
    AddSharedLinks(result, sim::NetworkOf(*resolved), &resources);
  }
  return resources;
}

}  // namespace weir::plan
