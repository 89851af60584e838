// SPDX-License-Identifier: Apache-2.0
// Clusters. A valid cluster has a finite route between any two GPUs, rings over
// any group, a description, and a text form that parses to the same value. An
// invalid one gives an error with a message.
#include <cmath>
#include <numeric>
#include <set>

#include "base/textproto.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/describe_cluster.h"
#include "scenarios/cluster/network.h"
#include "tests/fuzz/generate_cluster.h"
#include "tests/fuzz/target.h"

namespace weir::fuzz {
namespace {

void CheckRoute(const scenarios::Network& network, int from, int to) {
  const scenarios::Route route = network.RouteBetween(from, to);
  REQUIRE(std::isfinite(route.latency_seconds) && route.latency_seconds >= 0);
  REQUIRE(from != to || route.links.empty());
  REQUIRE((from == to) ==
          (network.WireBetween(from, to) == scenarios::Wire::kNone));
  std::set<int32_t> links;
  for (const int32_t link : route.links) {
    REQUIRE(link >= 0 && link < std::ssize(network.links()));
    REQUIRE(network.links()[link].bytes_per_second > 0);
    REQUIRE(std::isfinite(network.links()[link].bytes_per_second));
    REQUIRE(links.insert(link).second);
  }
}

void CheckRings(const scenarios::Network& network, std::vector<int> gpus) {
  const std::vector<scenarios::Ring> rings = network.RingsOver(gpus);
  REQUIRE(rings.empty() == (gpus.size() < 2));
  const std::set<int32_t> members(gpus.begin(), gpus.end());
  for (const scenarios::Ring& ring : rings) {
    REQUIRE(ring.gpus.size() == gpus.size());
    REQUIRE(std::set<int32_t>(ring.gpus.begin(), ring.gpus.end()) == members);
  }
}

void CheckTextForm(const Cluster& cluster) {
  const std::string text = PrintTextProto(cluster);
  Cluster again;
  REQUIRE_OK(ParseTextProto("again", text, &again));
  REQUIRE_THAT(PrintTextProto(again) == text, text);
}

void Use(const Cluster& cluster, Choices* choices) {
  const scenarios::Network network(cluster);
  const int num_gpus = scenarios::NumGpus(cluster);
  REQUIRE(network.num_gpus() == num_gpus);
  for (int i = 0; i < 8; ++i) {
    CheckRoute(network, choices->Int(0, num_gpus - 1),
               choices->Int(0, num_gpus - 1));
  }
  std::vector<int> gpus(num_gpus);
  std::iota(gpus.begin(), gpus.end(), 0);
  choices->Shuffle(&gpus);
  gpus.resize(choices->Int(1, std::min(num_gpus, 16)));
  CheckRings(network, gpus);
  const double bisection = scenarios::BisectionBytesPerSecond(cluster);
  REQUIRE(std::isfinite(bisection) && bisection >= 0);
  REQUIRE((bisection == 0) == (scenarios::NumNodes(cluster) == 1));
  REQUIRE(!scenarios::DescribeCluster(cluster).empty());
  REQUIRE(!scenarios::ClusterJson(cluster).dump().empty());
}

}  // namespace

bool RunInput(Choices* choices) {
  const Cluster cluster = GenerateCluster({}, choices);
  CheckTextForm(cluster);
  const absl::Status status = scenarios::ValidateCluster("fuzz", cluster);
  if (!status.ok()) {
    REQUIRE(absl::IsInvalidArgument(status) && !status.message().empty());
    return false;
  }
  Use(cluster, choices);
  return true;
}

}  // namespace weir::fuzz
