// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "base/textproto.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/describe_cluster.h"
#include "scenarios/cluster/network.h"

namespace {

constexpr int kMaxGpusToWalk = 128;

void Require(bool fact) {
  if (!fact) std::abort();
}

void RequireSound(const weir::scenarios::Network& network,
                  const weir::scenarios::Route& route) {
  Require(std::isfinite(route.latency_seconds) && route.latency_seconds >= 0);
  for (const int link : route.links) {
    Require(link >= 0 && link < static_cast<int>(network.links().size()));
    Require(network.links()[link].bytes_per_second > 0);
  }
}

// Checks that a valid cluster has routes and rings and can be described.
void Use(const weir::Cluster& cluster) {
  Require(std::isfinite(weir::scenarios::BisectionBytesPerSecond(cluster)));
  const int num_gpus = weir::scenarios::NumGpus(cluster);
  if (num_gpus > 100000) return;
  Require(!weir::scenarios::DescribeCluster(cluster).empty());
  Require(!weir::scenarios::ClusterJson(cluster).dump().empty());
  const weir::scenarios::Network network(cluster);
  Require(network.num_gpus() == num_gpus);
  const int step = 1 + num_gpus / kMaxGpusToWalk;
  std::vector<int> gpus;
  for (int gpu = 0; gpu < num_gpus; gpu += step) gpus.push_back(gpu);
  for (const int from : gpus) {
    for (const int to : {gpus.front(), gpus[gpus.size() / 2], gpus.back()})
      RequireSound(network, network.RouteBetween(from, to));
  }
  const std::vector<weir::scenarios::Ring> rings = network.RingsOver(gpus);
  Require(rings.empty() == (gpus.size() < 2));
  for (const weir::scenarios::Ring& ring : rings)
    Require(ring.gpus.size() == gpus.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  weir::Cluster cluster;
  if (!weir::ParseTextProto("fuzz", text, &cluster).ok()) return 0;
  const absl::Status status = weir::scenarios::ValidateCluster("fuzz", cluster);
  if (status.ok()) {
    Use(cluster);
  } else {
    Require(!status.message().empty());
  }
  return 0;
}
