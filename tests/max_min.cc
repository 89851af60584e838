// SPDX-License-Identifier: Apache-2.0
#include "tests/max_min.h"

#include <algorithm>
#include <limits>

namespace weir::max_min {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Returns the rates of the active flows. Raises all rates equally, freezes the
// flows on the link that fills first, and repeats.
std::vector<double> Rates(const std::vector<double>& capacities,
                          const std::vector<Flow>& flows,
                          const std::vector<bool>& active) {
  std::vector<double> rates(flows.size(), 0), left = capacities;
  std::vector<bool> open = active;
  while (true) {
    std::vector<int> users(capacities.size(), 0);
    for (size_t f = 0; f < flows.size(); ++f) {
      if (!open[f]) continue;
      for (size_t link : flows[f].links) ++users[link];
    }
    double share = kNever;
    size_t bottleneck = 0;
    for (size_t link = 0; link < capacities.size(); ++link) {
      if (users[link] > 0 && left[link] / users[link] < share) {
        share = left[link] / users[link];
        bottleneck = link;
      }
    }
    if (share == kNever) return rates;
    for (size_t f = 0; f < flows.size(); ++f) {
      const auto& links = flows[f].links;
      if (!open[f] ||
          std::find(links.begin(), links.end(), bottleneck) == links.end()) {
        continue;
      }
      open[f] = false;
      rates[f] = share;
      for (size_t link : links) left[link] -= share;
    }
  }
}

}  // namespace

std::vector<double> EndSeconds(const std::vector<double>& capacities,
                               const std::vector<Flow>& flows) {
  const size_t n = flows.size();
  std::vector<double> left(n), end(n, kNever);
  std::vector<bool> active(n, false);
  for (size_t f = 0; f < n; ++f) left[f] = flows[f].bytes;
  double now = 0;
  for (size_t done = 0; done < n;) {
    const std::vector<double> rates = Rates(capacities, flows, active);
    double next = kNever;
    size_t event = 0;
    for (size_t f = 0; f < n; ++f) {
      double at = kNever;
      if (active[f]) {
        at = now + left[f] / rates[f];
      } else if (end[f] == kNever) {
        at = flows[f].ready_seconds + flows[f].latency_seconds;
      }
      if (at < next) {
        next = at;
        event = f;
      }
    }
    for (size_t f = 0; f < n; ++f) {
      if (active[f]) left[f] -= rates[f] * (next - now);
    }
    now = next;
    active[event] = !active[event];
    if (!active[event]) {
      end[event] = now;
      ++done;
    }
  }
  return end;
}

}  // namespace weir::max_min
