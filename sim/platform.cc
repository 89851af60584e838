// SPDX-License-Identifier: Apache-2.0
#include "sim/platform.h"

#include <algorithm>
#include <simgrid/s4u.hpp>
// clang-format off
#include <simgrid/version.h>  // after s4u.hpp, whose macros it needs
#if SIMGRID_VERSION < 40000
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#endif
// clang-format on
#include <string>
#include <unordered_set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace weir {
namespace {

namespace sg4 = simgrid::s4u;

// The few calls whose names changed after 3.32.
#if SIMGRID_VERSION < 40000
sg4::NetZone* MakeZone() { return sg4::create_empty_zone("weir"); }
sg4::Host* MakeHost(sg4::NetZone* zone, const std::string& name) {
  return zone->create_host(name, 1.0)->seal();
}
sg4::Link* MakeLink(sg4::NetZone* zone, const std::string& name,
                    double bytes_per_second) {
  return zone->create_link(name, bytes_per_second);
}
template <typename Callback>
void SetLatency(sg4::NetZone* zone, Callback callback) {
  zone->get_network_model()->set_lat_factor_cb(callback);
}
#else
sg4::NetZone* MakeZone() {
  return sg4::Engine::get_instance()->get_netzone_root()->add_netzone_empty(
      "weir");
}
sg4::Host* MakeHost(sg4::NetZone* zone, const std::string& name) {
  return zone->add_host(name, 1.0)->seal();
}
sg4::Link* MakeLink(sg4::NetZone* zone, const std::string& name,
                    double bytes_per_second) {
  return zone->add_link(name, bytes_per_second);
}
template <typename Callback>
void SetLatency(sg4::NetZone* zone, Callback callback) {
  zone->set_latency_factor_cb(callback);
}
#endif

// SimGrid shares a link in inverse proportion to the sum of link latencies on
// each route. One latency of 1 on every route makes the shares equal; the real
// latency then comes from the callback below. The links that carry it must be
// such that every route has exactly one: the first of each route, or the last.
enum class Weight { kFirst, kLast, kOwnLink };

bool EveryRouteHasOne(const std::vector<GpuPair>& pairs,
                      const std::vector<bool>& weighted) {
  for (const GpuPair& pair : pairs) {
    int count = 0;
    for (int32_t link : pair.route.links) count += weighted[link];
    if (count != 1) return false;
  }
  return true;
}

Weight ChooseWeight(const std::vector<GpuPair>& pairs, size_t num_links,
                    std::vector<bool>* weighted) {
  for (Weight weight : {Weight::kFirst, Weight::kLast}) {
    weighted->assign(num_links, false);
    for (const GpuPair& pair : pairs) {
      (*weighted)[weight == Weight::kFirst ? pair.route.links.front()
                                           : pair.route.links.back()] = true;
    }
    if (EveryRouteHasOne(pairs, *weighted)) return weight;
  }
  weighted->assign(num_links, false);
  return Weight::kOwnLink;
}

}  // namespace

void ConfigureSimGrid() {
  LinkNoDetach();
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("network/TCP-gamma:1e30");
#if SIMGRID_VERSION < 40000
  sg4::Engine::set_config("surf/precision:1e-12");
#else
  sg4::Engine::set_config("precision/timing:1e-12");
#endif
}

Platform BuildPlatform(std::span<const Link> links,
                       const std::vector<GpuPair>& pairs) {
  Platform platform;
  sg4::NetZone* zone = MakeZone();  // SimGrid cannot run without one
  if (pairs.empty()) {
    zone->seal();
    return platform;
  }
  int num_gpus = 0;
  for (const GpuPair& pair : pairs) {
    num_gpus = std::max({num_gpus, pair.from + 1, pair.to + 1});
  }
  platform.hosts.assign(num_gpus, nullptr);

  std::vector<bool> weighted;
  const Weight weight = ChooseWeight(pairs, links.size(), &weighted);
  std::vector<sg4::Link*> made(links.size(), nullptr);
  absl::flat_hash_map<std::pair<const sg4::Host*, const sg4::Host*>, double>
      latency_seconds;
  for (const GpuPair& pair : pairs) {
    for (int gpu : {pair.from, pair.to}) {
      if (platform.hosts[gpu] == nullptr) {
        platform.hosts[gpu] = MakeHost(zone, absl::StrCat("gpu", gpu));
      }
    }
    std::vector<sg4::LinkInRoute> route;
    if (weight == Weight::kOwnLink) {
      // Far above any real rate, so that it never limits.
      sg4::Link* own = MakeLink(
          zone, absl::StrCat("weight.", pair.from, ".", pair.to), 1e18);
      route.emplace_back(own->set_latency(1.0)->seal());
    }
    for (int32_t link : pair.route.links) {
      if (made[link] == nullptr) {
        const Link& spec = links[link];
        made[link] = MakeLink(zone, absl::StrCat(link, ".", spec.name),
                              spec.bytes_per_second)
                         ->set_latency(weighted[link] ? 1.0 : 0.0)
                         ->seal();
      }
      route.emplace_back(made[link]);
    }
    sg4::Host* from = platform.hosts[pair.from];
    sg4::Host* to = platform.hosts[pair.to];
    zone->add_bypass_route(from->get_netpoint(), to->get_netpoint(), nullptr,
                           nullptr, route);
    latency_seconds[{from, to}] = pair.route.latency_seconds;
  }
  SetLatency(zone, [latencies = std::move(latency_seconds)](
                       double, const sg4::Host* from, const sg4::Host* to,
                       const std::vector<sg4::Link*>&,
                       const std::unordered_set<sg4::NetZone*>&) {
    return latencies.at({from, to});
  });
  zone->seal();
  return platform;
}

}  // namespace weir
