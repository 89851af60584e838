// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/check_utf8.h"
#include "calibrate/profile/software.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/degraded_links.h"
#include "scenarios/cluster/describe_cluster.h"
#include "scenarios/cluster/dragonfly.h"

namespace weir::scenarios {
namespace {

nlohmann::ordered_json NodeJson(const Node& node) {
  nlohmann::ordered_json json;
  json["name"] = Utf8(node.name());
  json["num_gpus"] = node.num_gpus();
  json["device"] = Utf8(node.device());
  if (node.has_nv_switch()) {
    json["nv_switch"]["bytes_per_second"] = node.nv_switch().bytes_per_second();
    json["nv_switch"]["latency_seconds"] = node.nv_switch().latency_seconds();
  }
  if (node.has_nv_link_mesh()) {
    auto& mesh = json["nv_link_mesh"];
    for (const auto& edge : node.nv_link_mesh().edges()) {
      mesh["edges"].push_back(
          {{"a", edge.a()}, {"b", edge.b()}, {"num_links", edge.num_links()}});
    }
    mesh["bytes_per_second_per_link"] =
        node.nv_link_mesh().bytes_per_second_per_link();
    mesh["latency_seconds"] = node.nv_link_mesh().latency_seconds();
  }
  if (node.has_pcie()) {
    auto& pcie = json["pcie"];
    for (const auto& pcie_switch : node.pcie().switches()) {
      pcie["switches"].push_back(
          {{"gpus", pcie_switch.gpus()}, {"socket", pcie_switch.socket()}});
    }
    pcie["gpu_bytes_per_second"] = node.pcie().gpu_bytes_per_second();
    pcie["uplink_bytes_per_second"] = node.pcie().uplink_bytes_per_second();
    pcie["socket_bytes_per_second"] = node.pcie().socket_bytes_per_second();
    pcie["latency_seconds"] = node.pcie().latency_seconds();
  }
  json["nics"] = nlohmann::ordered_json::array();
  for (const Nic& nic : node.nics()) {
    json["nics"].push_back({{"bytes_per_second", nic.bytes_per_second()},
                            {"gpus", nic.gpus()},
                            {"rail", nic.rail()}});
  }
  return json;
}

}  // namespace

nlohmann::ordered_json ClusterJson(const Cluster& cluster) {
  nlohmann::ordered_json json;
  json["name"] = Utf8(cluster.name());
  json["num_nodes"] = NumNodes(cluster);
  json["num_gpus"] = NumGpus(cluster);
  json["groups"] = nlohmann::ordered_json::array();
  for (const NodeGroup& group : cluster.groups()) {
    json["groups"].push_back(
        {{"count", group.count()}, {"node", NodeJson(group.node())}});
  }
  if (cluster.has_fabric()) {
    auto& fabric = json["fabric"];
    fabric["nodes_per_leaf"] = cluster.fabric().nodes_per_leaf();
    fabric["oversubscription"] =
        std::max(1.0, cluster.fabric().oversubscription());
    fabric["latency_seconds"] = cluster.fabric().latency_seconds();
    fabric["hop_latency_seconds"] = cluster.fabric().hop_latency_seconds();
    fabric["rail_optimized"] = cluster.fabric().rail_optimized();
    if (cluster.fabric().has_dragonfly()) {
      const DragonflyLinks links(cluster);
      auto& dragonfly = fabric["dragonfly"];
      dragonfly["leaves_per_group"] =
          cluster.fabric().dragonfly().leaves_per_group();
      dragonfly["num_groups"] = links.num_groups();
      dragonfly["local_bytes_per_second"] = links.local_bytes_per_second();
      dragonfly["global_bytes_per_second"] = links.global_bytes_per_second();
    }
  }
  if (cluster.plain_links()) json["plain_links"] = true;
  for (const SlowPart& part : cluster.slow()) {
    nlohmann::ordered_json slow;
    if (part.has_gpu()) slow["gpu"] = part.gpu();
    if (part.has_all_gpus()) slow["all_gpus"] = true;
    if (part.has_link()) slow["link"] = Utf8(part.link());
    if (part.has_leaf()) slow["leaf"] = part.leaf();
    slow["speed"] = part.speed();
    json["slow"].push_back(std::move(slow));
  }
  if (cluster.fabric().routing() == ROUTING_ECMP) {
    json["fabric"]["routing"] = "ecmp";
    json["fabric"]["uplinks_per_leaf"] = UplinksPerLeaf(cluster);
  }
  if (cluster.fabric().routing() == ROUTING_VALIANT) {
    json["fabric"]["routing"] = "valiant";
  }
  for (const FailedLink& failed : cluster.failed()) {
    json["failed"].push_back(Utf8(TextOf(failed)));
  }
  for (const BackgroundTraffic& traffic : cluster.background()) {
    json["background"].push_back(Utf8(TextOf(traffic)));
  }
  for (const auto& [name, version] :
       calibrate::VersionsOf(cluster.software())) {
    if (!version.empty())
      json["software"][absl::AsciiStrToLower(name)] = version;
  }
  json["bisection_bytes_per_second"] = BisectionBytesPerSecond(cluster);
  return json;
}

}  // namespace weir::scenarios
