// SPDX-License-Identifier: Apache-2.0
#include "results/report/resources.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace weir::results {
namespace {

using Json = nlohmann::ordered_json;
using Kernel = RunResources::Kernel;

// Sums over the kernels of one part.
struct PartSum {
  double count = 0, flops = 0, bytes = 0, seconds = 0;
};

// Returns the FLOP per second that the limits of the device allow.
double Roof(double flops, double bytes, double peak, double bandwidth) {
  return bytes > 0 ? std::min(peak, flops / bytes * bandwidth) : peak;
}

Json RatioOrNull(double value, double limit) {
  return limit > 0 ? Json(value / limit) : Json();
}

Json PartsJson(const RunResources& run, double peak) {
  std::map<std::string, PartSum> sums;
  double seconds = 0;
  for (const Kernel& kernel : run.kernels) {
    PartSum& sum = sums[kernel.part];
    sum.count += kernel.count;
    sum.flops += kernel.count * kernel.flops;
    sum.bytes += kernel.count * kernel.bytes;
    sum.seconds += kernel.count * kernel.seconds;
    seconds += kernel.count * kernel.seconds;
  }
  std::vector<std::pair<std::string, PartSum>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) {
                     return a.second.seconds > b.second.seconds;
                   });
  Json parts = Json::array();
  for (const auto& [part, sum] : sorted) {
    if (!(sum.seconds > 0)) continue;
    const double flops_rate = sum.flops / sum.seconds;
    const double bytes_rate = sum.bytes / sum.seconds;
    const double roof =
        Roof(sum.flops, sum.bytes, peak, run.memory_bytes_per_second);
    parts.push_back(
        {{"part", part},
         {"count", sum.count},
         {"seconds", sum.seconds},
         {"seconds_ratio", sum.seconds / seconds},
         {"flops_per_second", flops_rate},
         {"flops_ratio", RatioOrNull(flops_rate, peak)},
         {"bytes_per_second", bytes_rate},
         {"bytes_ratio", RatioOrNull(bytes_rate, run.memory_bytes_per_second)},
         {"roof_ratio",
          sum.flops > 0 ? RatioOrNull(flops_rate, roof) : Json()}});
  }
  return parts;
}

Json RooflineJson(const RunResources& run) {
  if (run.kernels.empty()) return Json();
  double peak = 0;
  Json peaks = Json::array();
  for (const RunResources::Peak& one : run.peaks) {
    if (!(one.flops_per_second > 0)) continue;
    peak = std::max(peak, one.flops_per_second);
    peaks.push_back(
        {{"format", one.format}, {"flops_per_second", one.flops_per_second}});
  }
  Json kernels = Json::array();
  for (const Kernel& kernel : run.kernels) {
    if (!(kernel.seconds > 0)) continue;
    kernels.push_back({{"part", kernel.part},
                       {"flops", kernel.flops},
                       {"bytes", kernel.bytes},
                       {"seconds", kernel.seconds},
                       {"count", kernel.count}});
  }
  return {{"device", run.device},
          {"peaks", peaks},
          {"memory_bytes_per_second", run.memory_bytes_per_second},
          {"parts", PartsJson(run, peak)},
          {"kernels", kernels}};
}

Json LinksJson(const RunResources& run) {
  if (run.links.empty()) return Json();
  Json links = Json::array();
  for (const RunResources::Link& link : run.links) {
    const std::vector<double>& over_time = link.utilization;
    const double sum = std::accumulate(over_time.begin(), over_time.end(), 0.0);
    links.push_back(
        {{"name", link.name},
         {"bytes_per_second", link.bytes_per_second},
         {"num_pairs", link.num_pairs},
         {"transfer_bytes", link.transfer_bytes},
         {"collective_bytes", link.collective_bytes},
         {"host_bytes", link.host_bytes},
         {"mean",
          over_time.empty() ? 0 : sum / static_cast<double>(over_time.size())},
         {"peak", over_time.empty()
                      ? 0
                      : *std::max_element(over_time.begin(), over_time.end())},
         {"utilization", over_time}});
  }
  return {{"from_seconds", run.from_seconds},
          {"interval_seconds", run.interval_seconds},
          {"num_left_out", run.num_links_left_out},
          {"links", links}};
}

}  // namespace

Json RooflineSection(std::span<const RunResources> runs) {
  Json all = Json::array();
  for (const RunResources& run : runs) all.push_back(RooflineJson(run));
  return {{"type", "roofline"}, {"runs", all}};
}

Json SharedLinksSection(std::span<const RunResources> runs) {
  Json all = Json::array();
  for (const RunResources& run : runs) all.push_back(LinksJson(run));
  return {{"type", "shared_links"}, {"runs", all}};
}

}  // namespace weir::results
