// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "calibrate/profile/software.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/cluster_changes.h"
#include "scenarios/cluster/degraded_links.h"
#include "scenarios/cluster/dragonfly.h"
#include "scenarios/cluster/slow_parts.h"

namespace weir::scenarios {
namespace {

constexpr int kMaxNics = 1024;
constexpr int kMaxSockets = 8;
constexpr int kMaxRails = 1024;
constexpr int kMaxLeavesPerGroup = 1024;
// Far beyond any real link; keeps SimGrid's arithmetic accurate.
constexpr double kMinBytesPerSecond = 1;
constexpr double kMaxBytesPerSecond = 1e18;
constexpr double kMaxLatencySeconds = 10;

void CheckBandwidth(Problems& problems, const std::string& field,
                    double bytes_per_second) {
  if (!std::isfinite(bytes_per_second) || bytes_per_second <= 0) {
    problems.CheckPositive(field, bytes_per_second);
  } else {
    problems.CheckRange(field, bytes_per_second, kMinBytesPerSecond,
                        kMaxBytesPerSecond);
  }
}

void CheckLatency(Problems& problems, const std::string& field,
                  double seconds) {
  problems.CheckRange(field, seconds, 0, kMaxLatencySeconds);
}

// Returns true if the node has the GPU; otherwise adds a problem.
bool CheckGpu(Problems& problems, const std::string& field, uint32_t gpu,
              uint32_t num_gpus) {
  if (gpu < num_gpus) return true;
  problems.Add(field, absl::StrCat("is GPU ", gpu, ", but the node has ",
                                   num_gpus, " (0 to ", num_gpus - 1, ")"));
  return false;
}

// Returns the GPUs reachable from `start`. Requires: edges are in range.
std::vector<bool> ReachedFrom(int start, int num_gpus,
                              const std::set<std::pair<int, int>>& edges) {
  std::vector<std::vector<int>> neighbours(num_gpus);
  for (const auto& [a, b] : edges) {
    neighbours[a].push_back(b);
    neighbours[b].push_back(a);
  }
  std::vector<bool> reached(num_gpus);
  std::vector<int> open = {start};
  reached[start] = true;
  while (!open.empty()) {
    const int gpu = open.back();
    open.pop_back();
    for (const int next : neighbours[gpu]) {
      if (reached[next]) continue;
      reached[next] = true;
      open.push_back(next);
    }
  }
  return reached;
}

void CheckMesh(Problems& problems, const std::string& path, const Node& node) {
  const NvLinkMesh& mesh = node.nv_link_mesh();
  CheckBandwidth(problems, absl::StrCat(path, ".bytes_per_second_per_link"),
                 mesh.bytes_per_second_per_link());
  CheckLatency(problems, absl::StrCat(path, ".latency_seconds"),
               mesh.latency_seconds());
  if (mesh.edges().empty()) {
    problems.Add(absl::StrCat(path, ".edges"), "is empty, expected edges");
  }
  if (node.num_gpus() > kMaxGpusPerMesh) {
    problems.Add(path,
                 absl::StrCat("joins ", node.num_gpus(),
                              " GPUs, expected at most ", kMaxGpusPerMesh));
    return;
  }
  std::set<std::pair<int, int>> edges;
  for (int i = 0; i < mesh.edges_size(); ++i) {
    const NvLinkMesh::Edge& edge = mesh.edges(i);
    const std::string field = absl::StrFormat("%s.edges[%d]", path, i);
    const bool a_known =
        CheckGpu(problems, field + ".a", edge.a(), node.num_gpus());
    const bool b_known =
        CheckGpu(problems, field + ".b", edge.b(), node.num_gpus());
    problems.CheckRange(field + ".num_links", edge.num_links(), 1, 1024);
    if (!a_known || !b_known) continue;
    if (edge.a() == edge.b()) {
      problems.Add(field, absl::StrCat("joins GPU ", edge.a(),
                                       " to itself, expected two GPUs"));
    } else if (!edges.insert(std::minmax<int>(edge.a(), edge.b())).second) {
      problems.Add(field,
                   absl::StrCat("joins GPUs ", edge.a(), " and ", edge.b(),
                                " again, expected one edge with num_links"));
    }
  }
  if (node.has_pcie() || node.num_gpus() == 0) return;
  const std::vector<bool> reached = ReachedFrom(0, node.num_gpus(), edges);
  const auto lost = std::find(reached.begin(), reached.end(), false);
  if (lost != reached.end()) {
    problems.Add(path,
                 absl::StrCat("does not connect GPU ", lost - reached.begin(),
                              " with GPU 0, and the node has no pcie"));
  }
}

void CheckPcie(Problems& problems, const std::string& path, const Node& node) {
  const PcieTree& pcie = node.pcie();
  std::vector<bool> listed(node.num_gpus());
  std::set<uint32_t> sockets;
  for (int i = 0; i < pcie.switches_size(); ++i) {
    const std::string field = absl::StrFormat("%s.switches[%d]", path, i);
    const PcieTree::Switch& pcie_switch = pcie.switches(i);
    if (pcie_switch.gpus().empty()) {
      problems.Add(field + ".gpus", "is empty, expected GPU numbers");
    }
    problems.CheckRange(field + ".socket", pcie_switch.socket(), 0,
                        kMaxSockets - 1);
    sockets.insert(pcie_switch.socket());
    for (int k = 0; k < pcie_switch.gpus_size(); ++k) {
      const uint32_t gpu = pcie_switch.gpus(k);
      const std::string gpu_field = absl::StrFormat("%s.gpus[%d]", field, k);
      if (!CheckGpu(problems, gpu_field, gpu, node.num_gpus())) continue;
      if (listed[gpu]) {
        problems.Add(gpu_field, absl::StrCat("is GPU ", gpu,
                                             " again, expected "
                                             "each GPU under one switch"));
      }
      listed[gpu] = true;
    }
  }
  const auto missing = std::find(listed.begin(), listed.end(), false);
  if (missing != listed.end()) {
    problems.Add(path + ".switches",
                 absl::StrCat("do not list GPU ", missing - listed.begin(),
                              ", expected every GPU of the node"));
  }
  CheckBandwidth(problems, path + ".gpu_bytes_per_second",
                 pcie.gpu_bytes_per_second());
  CheckBandwidth(problems, path + ".uplink_bytes_per_second",
                 pcie.uplink_bytes_per_second());
  if (sockets.size() > 1 || pcie.socket_bytes_per_second() != 0) {
    CheckBandwidth(problems, path + ".socket_bytes_per_second",
                   pcie.socket_bytes_per_second());
  }
  CheckLatency(problems, path + ".latency_seconds", pcie.latency_seconds());
}

void CheckNics(Problems& problems, const std::string& path, const Node& node) {
  if (node.nics_size() > kMaxNics) {
    problems.Add(path + ".nics",
                 absl::StrCat("has ", node.nics_size(),
                              " entries, expected at most ", kMaxNics));
    return;
  }
  std::vector<bool> served(node.num_gpus());
  for (int i = 0; i < node.nics_size(); ++i) {
    const Nic& nic = node.nics(i);
    const std::string field = absl::StrFormat("%s.nics[%d]", path, i);
    CheckBandwidth(problems, field + ".bytes_per_second",
                   nic.bytes_per_second());
    problems.CheckRange(field + ".rail", nic.rail(), 0, kMaxRails - 1);
    std::set<uint32_t> listed;
    for (int k = 0; k < nic.gpus_size(); ++k) {
      const std::string gpu_field = absl::StrFormat("%s.gpus[%d]", field, k);
      if (!CheckGpu(problems, gpu_field, nic.gpus(k), node.num_gpus()))
        continue;
      if (!listed.insert(nic.gpus(k)).second) {
        problems.Add(gpu_field, absl::StrCat("is GPU ", nic.gpus(k),
                                             " again, expected it once"));
      }
      served[nic.gpus(k)] = true;
    }
    if (nic.gpus().empty()) std::fill(served.begin(), served.end(), true);
  }
  const auto missing = std::find(served.begin(), served.end(), false);
  if (node.nics_size() > 0 && missing != served.end()) {
    problems.Add(path + ".nics",
                 absl::StrCat("do not serve GPU ", missing - served.begin(),
                              ", expected every GPU of the "
                              "node to have one"));
  }
}

void CheckNode(Problems& problems, const std::string& path, const Node& node,
               bool needs_device) {
  problems.CheckRange(path + ".num_gpus", node.num_gpus(), 1, kMaxGpusPerNode);
  if (needs_device && node.device().empty()) {
    problems.Add(path + ".device", "is empty, expected a device profile");
  }
  // The checks below allocate tables of num_gpus entries.
  if (node.num_gpus() < 1 || node.num_gpus() > kMaxGpusPerNode) return;
  if (node.has_nv_switch() && node.has_nv_link_mesh()) {
    problems.Add(path, "has nv_switch and nv_link_mesh, expected one of them");
  }
  if (node.num_gpus() > 1 && !node.has_nv_switch() &&
      !node.has_nv_link_mesh() && !node.has_pcie()) {
    problems.Add(path, absl::StrCat("has ", node.num_gpus(),
                                    " GPUs and no link between them, expected "
                                    "nv_switch, nv_link_mesh or pcie"));
  }
  if (node.has_nv_switch()) {
    CheckBandwidth(problems, path + ".nv_switch.bytes_per_second",
                   node.nv_switch().bytes_per_second());
    CheckLatency(problems, path + ".nv_switch.latency_seconds",
                 node.nv_switch().latency_seconds());
  }
  if (node.has_nv_link_mesh())
    CheckMesh(problems, path + ".nv_link_mesh", node);
  if (node.has_pcie()) CheckPcie(problems, path + ".pcie", node);
  CheckNics(problems, path, node);
}

void CheckDragonfly(Problems& problems, const Fabric& fabric) {
  const Dragonfly& dragonfly = fabric.dragonfly();
  problems.CheckRange("fabric.dragonfly.leaves_per_group",
                      dragonfly.leaves_per_group(), 1, kMaxLeavesPerGroup);
  if (fabric.nodes_per_leaf() == 0) {
    problems.Add("fabric.dragonfly",
                 "is given without nodes_per_leaf, expected the number of "
                 "nodes below each switch");
  }
  if (fabric.rail_optimized()) {
    problems.Add("fabric.dragonfly",
                 "is given with rail_optimized, expected one of them");
  }
  if (dragonfly.local_bytes_per_second() != 0) {
    CheckBandwidth(problems, "fabric.dragonfly.local_bytes_per_second",
                   dragonfly.local_bytes_per_second());
  }
  if (dragonfly.global_bytes_per_second() == 0) return;
  CheckBandwidth(problems, "fabric.dragonfly.global_bytes_per_second",
                 dragonfly.global_bytes_per_second());
  if (fabric.oversubscription() > 1) {
    problems.Add("fabric.oversubscription",
                 absl::StrFormat("is %.12g with dragonfly.global_bytes_per_"
                                 "second, expected one of them",
                                 fabric.oversubscription()));
  }
}

void CheckFabric(Problems& problems, const Fabric& fabric) {
  CheckLatency(problems, "fabric.latency_seconds", fabric.latency_seconds());
  CheckLatency(problems, "fabric.hop_latency_seconds",
               fabric.hop_latency_seconds());
  const double ratio = fabric.oversubscription();
  if (ratio != 0) {
    problems.CheckRange("fabric.oversubscription", ratio, 1, 1e6);
  }
  if (ratio > 1 && fabric.nodes_per_leaf() == 0) {
    problems.Add("fabric.oversubscription",
                 absl::StrFormat("is %.12g without nodes_per_leaf: one switch "
                                 "has no uplinks to oversubscribe",
                                 ratio));
  }
  if (fabric.has_dragonfly()) CheckDragonfly(problems, fabric);
  if (!Routing_IsValid(fabric.routing())) {
    problems.Add("fabric.routing",
                 absl::StrCat("is ", static_cast<int>(fabric.routing()),
                              ", expected ROUTING_ADAPTIVE, ROUTING_ECMP or "
                              "ROUTING_VALIANT"));
  }
  if (fabric.has_dragonfly()) {
    if (fabric.routing() == ROUTING_ADAPTIVE ||
        fabric.routing() == ROUTING_ECMP) {
      problems.Add("fabric.routing",
                   absl::StrCat("is ", Routing_Name(fabric.routing()),
                                ", expected ROUTING_VALIANT, or none for "
                                "minimal routes, in a dragonfly"));
    }
  } else if (fabric.routing() == ROUTING_ECMP && fabric.nodes_per_leaf() == 0) {
    problems.Add("fabric.routing",
                 "is ROUTING_ECMP, expected ROUTING_ADAPTIVE for a network "
                 "without leaf switches under a spine");
  }
  if (fabric.routing() == ROUTING_VALIANT && !fabric.has_dragonfly()) {
    problems.Add(
        "fabric.routing",
        "is ROUTING_VALIANT, expected ROUTING_ADAPTIVE or ROUTING_ECMP "
        "for a network that is not a dragonfly");
  }
  problems.CheckRange("fabric.uplinks_per_leaf", fabric.uplinks_per_leaf(), 0,
                      kMaxUplinks);
}

std::string RailsOf(const Node& node) {
  std::set<uint32_t> rails;
  for (const Nic& nic : node.nics()) rails.insert(nic.rail());
  return absl::StrCat("{", absl::StrJoin(rails, ", "), "}");
}

void CheckBetweenNodes(Problems& problems, const Cluster& cluster) {
  for (int i = 0; i < cluster.groups_size(); ++i) {
    const Node& node = cluster.groups(i).node();
    const std::string field = absl::StrFormat("groups[%d].node.nics", i);
    if (node.nics().empty()) {
      problems.Add(field,
                   "is empty, expected a NIC where there are several nodes");
    } else if (cluster.fabric().rail_optimized() &&
               RailsOf(node) != RailsOf(cluster.groups(0).node())) {
      problems.Add(field, absl::StrCat("have rails ", RailsOf(node),
                                       ", expected those of groups[0] ",
                                       RailsOf(cluster.groups(0).node()),
                                       " with fabric.rail_optimized"));
    }
  }
  if (!cluster.has_fabric()) {
    problems.Add("fabric", "is missing, required for several nodes");
  }
}

// Returns the number of links that scenarios/cluster/network.cc creates,
// without those of leaf switches.
double LinksPerNode(const Node& node) {
  double links = 2.0 * node.nics_size();
  if (node.has_nv_switch()) links += 2.0 * node.num_gpus();
  if (node.has_nv_link_mesh()) links += 2.0 * node.nv_link_mesh().edges_size();
  if (node.has_pcie()) {
    links += 2.0 * node.num_gpus() + 2.0 * node.pcie().switches_size() +
             kMaxSockets * kMaxSockets;
  }
  return links;
}

void CheckTotals(Problems& problems, const Cluster& cluster) {
  double num_nodes = 0, num_gpus = 0, num_links = 0;
  for (const NodeGroup& group : cluster.groups()) {
    num_nodes += group.count();
    num_gpus += 1.0 * group.count() * group.node().num_gpus();
    num_links += group.count() * LinksPerNode(group.node());
  }
  const Fabric& fabric = cluster.fabric();
  if (fabric.nodes_per_leaf() > 0 &&
      fabric.dragonfly().leaves_per_group() > 0) {
    num_links +=
        NumDragonflyLinks(std::ceil(num_nodes / fabric.nodes_per_leaf()),
                          fabric.dragonfly().leaves_per_group());
  }
  if (fabric.routing() == ROUTING_ECMP && fabric.nodes_per_leaf() > 0 &&
      !cluster.groups().empty()) {
    std::set<uint32_t> rails = {0};
    if (fabric.rail_optimized()) {
      for (const Nic& nic : cluster.groups(0).node().nics()) {
        rails.insert(nic.rail());
      }
    }
    num_links += std::ceil(num_nodes / fabric.nodes_per_leaf()) * 2.0 *
                 static_cast<double>(rails.size()) * UplinksPerLeaf(cluster);
  }
  if (num_gpus > kMaxGpus) {
    problems.Add("groups", absl::StrFormat("have %.0f GPUs, expected at most "
                                           "%d",
                                           num_gpus, kMaxGpus));
  } else if (num_links > kMaxLinks) {
    problems.Add("groups", absl::StrFormat("have %.0f links, expected at most "
                                           "%d",
                                           num_links, kMaxLinks));
  }
  if (num_nodes > 1) CheckBetweenNodes(problems, cluster);
}

}  // namespace

absl::Status ValidateCluster(absl::string_view label, const Cluster& cluster) {
  Problems problems(label);
  if (cluster.groups().empty()) {
    problems.Add("groups", "is empty, expected a group of nodes");
  }
  for (int i = 0; i < cluster.groups_size(); ++i) {
    const NodeGroup& group = cluster.groups(i);
    const std::string path = absl::StrFormat("groups[%d]", i);
    if (group.count() == 0) {
      problems.Add(path + ".count", "is 0, expected at least 1 node");
    }
    CheckNode(problems, path + ".node", group.node(), !cluster.plain_links());
  }
  if (cluster.has_fabric()) CheckFabric(problems, cluster.fabric());
  CheckTotals(problems, cluster);
  calibrate::CheckSoftware("software", cluster.software(), &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  RETURN_IF_ERROR(CheckDegradedLinks(label, cluster));
  return CheckSlowParts(label, cluster);
}

}  // namespace weir::scenarios
