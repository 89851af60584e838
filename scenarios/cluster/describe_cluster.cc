// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/describe_cluster.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "calibrate/profile/software.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/degraded_links.h"
#include "scenarios/cluster/dragonfly.h"
#include "scenarios/cluster/node_wiring.h"

namespace weir::scenarios {
namespace {

std::string Rate(double bytes_per_second) {
  static constexpr std::pair<double, const char*> kUnits[] = {
      {1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}};
  for (const auto& [unit, name] : kUnits) {
    if (bytes_per_second >= unit)
      return absl::StrFormat("%.4g %s", bytes_per_second / unit, name);
  }
  return absl::StrFormat("%.4g B/s", bytes_per_second);
}

std::string Latency(double seconds) {
  return absl::StrFormat("%.4g us", seconds * 1e6);
}

std::string Plural(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// Returns the matrix of NVLinks, or "" if it is too wide for a line.
std::string MeshPicture(const NodeWiring& wiring) {
  const int n = wiring.num_gpus();
  if (n > 16) return "";
  std::string text = absl::StrFormat("%14s", "to");
  for (int to = 0; to < n; ++to) absl::StrAppendFormat(&text, "%3d", to);
  text += "\n";
  for (int from = 0; from < n; ++from) {
    absl::StrAppendFormat(&text, "%14s", absl::StrCat("gpu", from));
    for (int to = 0; to < n; ++to) {
      const int lanes = wiring.mesh_lanes[from * n + to];
      absl::StrAppendFormat(&text, "%3s",
                            from == to   ? "-"
                            : lanes == 0 ? "."
                                         : absl::StrCat(lanes));
    }
    text += "\n";
  }
  return text;
}

std::string NvLinkText(const NodeWiring& wiring) {
  const Node& node = wiring.node;
  if (node.has_nv_switch()) {
    return absl::StrCat("  NVLink  switch, ",
                        Rate(node.nv_switch().bytes_per_second()),
                        " per GPU each way, ",
                        Latency(node.nv_switch().latency_seconds()), "\n");
  }
  if (!node.has_nv_link_mesh()) return "";
  const NvLinkMesh& mesh = node.nv_link_mesh();
  int64_t num_links = 0;
  for (const auto& edge : mesh.edges()) num_links += edge.num_links();
  return absl::StrCat("  NVLink  mesh of ", Plural(num_links, "link"), ", ",
                      Rate(mesh.bytes_per_second_per_link()), " each way, ",
                      Latency(mesh.latency_seconds()), "\n",
                      MeshPicture(wiring));
}

// Returns one line per PCIe switch with the GPUs and NICs below it.
std::string PcieText(const NodeWiring& wiring) {
  if (!wiring.node.has_pcie()) return "";
  const PcieTree& pcie = wiring.node.pcie();
  std::string text =
      absl::StrCat("  PCIe    GPU ", Rate(pcie.gpu_bytes_per_second()),
                   ", uplink ", Rate(pcie.uplink_bytes_per_second()));
  if (wiring.num_sockets > 1) {
    absl::StrAppend(&text, ", between sockets ",
                    Rate(pcie.socket_bytes_per_second()));
  }
  absl::StrAppend(&text, ", ", Latency(pcie.latency_seconds()),
                  " per switch\n");
  text = WrapText(text, 8);
  for (int socket = 0; socket < wiring.num_sockets; ++socket) {
    std::vector<std::string> below;
    for (int i = 0; i < pcie.switches_size(); ++i) {
      if (wiring.switch_socket[i] != socket) continue;
      std::string line = absl::StrCat("pcie", i, " ---");
      for (const uint32_t gpu : pcie.switches(i).gpus())
        absl::StrAppend(&line, " gpu", gpu);
      for (size_t nic = 0; nic < wiring.nic_switch.size(); ++nic) {
        if (wiring.nic_switch[nic] == i) absl::StrAppend(&line, " nic", nic);
      }
      below.push_back(line);
    }
    for (size_t nic = 0; nic < wiring.nic_switch.size(); ++nic) {
      if (wiring.nic_switch[nic] < 0 && wiring.nic_socket[nic] == socket)
        below.push_back(absl::StrCat("nic", nic));
    }
    for (size_t i = 0; i < below.size(); ++i) {
      absl::StrAppendFormat(&text, "%14s %s- %s\n",
                            i == 0 ? absl::StrCat("socket", socket) : "",
                            i == 0 ? "-+" : " +", below[i]);
    }
  }
  return text;
}

// Returns one line per kind of NIC.
std::string NicText(const NodeWiring& wiring) {
  std::map<std::pair<double, int>, int> kinds;
  for (const Nic& nic : wiring.node.nics()) {
    const int num_gpus =
        nic.gpus().empty() ? wiring.num_gpus() : nic.gpus_size();
    ++kinds[{nic.bytes_per_second(), num_gpus}];
  }
  std::string text;
  for (const auto& [kind, count] : kinds) {
    absl::StrAppendFormat(&text, "  NICs    %d x %s (%.4g Gb/s), %s %s\n",
                          count, Rate(kind.first), kind.first * 8 / 1e9,
                          kind.second == 1 ? "of" : "shared by",
                          Plural(kind.second, "GPU"));
  }
  return text;
}

// Returns the rates and numbers of the links between leaf switches.
std::string DragonflyText(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric();
  const DragonflyLinks dragonfly(cluster);
  const double hop = fabric.hop_latency_seconds();
  const int64_t num_local =
      static_cast<int64_t>(dragonfly.links().size()) -
      int64_t{1} * dragonfly.num_groups() * (dragonfly.num_groups() - 1);
  std::string text = absl::StrCat(
      "fabric: dragonfly of ", Plural(dragonfly.num_groups(), "group"),
      ", each of ", fabric.dragonfly().leaves_per_group(), " switches with ",
      Plural(fabric.nodes_per_leaf(), "node"), ", ",
      Latency(fabric.latency_seconds()), ", each further switch ",
      Latency(hop));
  absl::StrAppend(&text, "; in groups ", Plural(num_local / 2, "link"), " of ",
                  Rate(dragonfly.local_bytes_per_second()));
  if (dragonfly.num_groups() > 1) {
    absl::StrAppend(&text, ", between groups ",
                    Plural(int64_t{1} * dragonfly.num_groups() *
                               (dragonfly.num_groups() - 1) / 2,
                           "link"),
                    " of ", Rate(dragonfly.global_bytes_per_second()),
                    " each way");
  }
  if (fabric.oversubscription() > 1) {
    absl::StrAppendFormat(&text, ", oversubscribed %.4g:1",
                          fabric.oversubscription());
  }
  return WrapText(absl::StrCat(text, "\n"));
}

std::string FabricText(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric();
  if (fabric.has_dragonfly()) return DragonflyText(cluster);
  std::string text = "fabric: ";
  if (fabric.nodes_per_leaf() == 0) {
    absl::StrAppend(&text, "one switch, ", Latency(fabric.latency_seconds()));
  } else {
    absl::StrAppend(
        &text, "leaf switches of ", Plural(fabric.nodes_per_leaf(), "node"),
        ", ", Latency(fabric.latency_seconds()), ", over the spine ",
        Latency(fabric.latency_seconds() + fabric.hop_latency_seconds()));
  }
  if (fabric.rail_optimized()) absl::StrAppend(&text, ", rail-optimized");
  if (fabric.oversubscription() > 1) {
    absl::StrAppendFormat(&text, ", oversubscribed %.4g:1",
                          fabric.oversubscription());
  } else {
    absl::StrAppend(&text, ", non-blocking");
  }
  return WrapText(absl::StrCat(text, "\n"));
}

// Returns the number of nodes on the first side of the bisection. A dragonfly
// is cut between whole groups, or whole switches if it has one group, as evenly
// as possible; another network in the middle.
int64_t NodesOfFirstSide(const Cluster& cluster) {
  const int64_t num_nodes = NumNodes(cluster);
  const Fabric& fabric = cluster.fabric();
  int64_t whole = 1;
  if (fabric.has_dragonfly()) {
    const int64_t per_leaf = fabric.nodes_per_leaf();
    const int64_t per_group = per_leaf * fabric.dragonfly().leaves_per_group();
    if (num_nodes > per_group) {
      whole = per_group;
    } else if (num_nodes > per_leaf) {
      whole = per_leaf;
    }
  }
  // Rounds num_nodes / (2 whole); only the last group may be smaller.
  return (num_nodes + whole - 1) / (2 * whole) * whole;
}

// Returns the rate of the links of a dragonfly from the first nodes to the
// rest. Requires: these are whole leaf switches, or a part of the only one.
double DragonflyCut(const Cluster& cluster, int64_t first_nodes) {
  const int64_t nodes_per_leaf = cluster.fabric().nodes_per_leaf();
  if (first_nodes < nodes_per_leaf) {
    return std::numeric_limits<double>::infinity();
  }
  const int64_t first_leaves = first_nodes / nodes_per_leaf;
  const DragonflyLinks dragonfly(cluster);
  double cut = 0;
  for (const LeafLink& link : dragonfly.links()) {
    if (link.from < first_leaves && link.to >= first_leaves) {
      cut += link.bytes_per_second;
    }
  }
  return cut;
}

}  // namespace

double BisectionBytesPerSecond(const Cluster& cluster) {
  const int64_t half = NodesOfFirstSide(cluster);
  double first = 0, rest = 0;
  int64_t node = 0;
  for (const NodeGroup& group : cluster.groups()) {
    double node_bytes_per_second = 0;
    for (const Nic& nic : group.node().nics())
      node_bytes_per_second += nic.bytes_per_second();
    const int64_t in_first = std::clamp<int64_t>(half - node, 0, group.count());
    first += in_first * node_bytes_per_second;
    rest += (group.count() - in_first) * node_bytes_per_second;
    node += group.count();
  }
  const double bisection = std::min(first, rest);
  const Fabric& fabric = cluster.fabric();
  if (fabric.has_dragonfly()) {
    return std::min(bisection, DragonflyCut(cluster, half));
  }
  const bool over_spine =
      fabric.nodes_per_leaf() > 0 && half >= fabric.nodes_per_leaf();
  return over_spine ? bisection / std::max(1.0, fabric.oversubscription())
                    : bisection;
}

std::string DescribeCluster(const Cluster& cluster) {
  const int num_nodes = NumNodes(cluster);
  std::string text = absl::StrCat(
      cluster.name().empty() ? "cluster" : EscapeLine(cluster.name()), ": ",
      Plural(num_nodes, "node"), ", ", Plural(NumGpus(cluster), "GPU"), "\n");
  for (const NodeGroup& group : cluster.groups()) {
    const NodeWiring wiring = WireNode(group.node());
    absl::StrAppend(
        &text, "\n", group.count(), " x ",
        group.node().name().empty() ? "node" : EscapeLine(group.node().name()),
        ": ", Plural(group.node().num_gpus(), "GPU"), " (",
        group.node().device().empty() ? "of the scenario's profile"
                                      : EscapeLine(group.node().device()),
        ")\n", NvLinkText(wiring), PcieText(wiring), NicText(wiring));
  }
  if (num_nodes > 1) {
    const int64_t first = NodesOfFirstSide(cluster);
    absl::StrAppend(&text, "\n", FabricText(cluster),
                    "bisection: ", Rate(BisectionBytesPerSecond(cluster)),
                    " in each direction between ", first, " and ",
                    num_nodes - first, " nodes\n");
  }
  for (const SlowPart& part : cluster.slow()) {
    absl::StrAppend(&text, "slow: ",
                    part.has_gpu()        ? absl::StrCat("gpu", part.gpu())
                    : part.has_all_gpus() ? "all GPUs"
                    : part.has_leaf()
                        ? absl::StrCat("uplinks of leaf ", part.leaf())
                        : EscapeLine(part.link()),
                    " at ", FormatPercent(part.speed()), " of its speed\n");
  }
  if (cluster.fabric().routing() == ROUTING_ECMP) {
    absl::StrAppend(&text, "routing: ECMP, each pair of GPUs over one of ",
                    Plural(UplinksPerLeaf(cluster), "uplink"), " of a leaf\n");
  }
  if (cluster.fabric().routing() == ROUTING_VALIANT) {
    absl::StrAppend(&text,
                    "routing: Valiant, messages between groups through a "
                    "third one\n");
  }
  for (const FailedLink& failed : cluster.failed()) {
    absl::StrAppend(&text, "failed: ", EscapeLine(TextOf(failed)), "\n");
  }
  for (const BackgroundTraffic& traffic : cluster.background()) {
    absl::StrAppend(&text, "background traffic: ", EscapeLine(TextOf(traffic)),
                    " of its rate\n");
  }
  if (cluster.plain_links()) {
    absl::StrAppend(
        &text,
        "\nplain links: messages cost only latency and bytes / bandwidth\n");
  }
  const std::string software = calibrate::SoftwareText(cluster.software());
  if (!software.empty()) absl::StrAppend(&text, "\nsoftware: ", software, "\n");
  return text;
}

}  // namespace weir::scenarios
