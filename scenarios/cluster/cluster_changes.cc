// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/cluster_changes.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/dragonfly.h"

namespace weir::scenarios {
namespace {

constexpr uint32_t kUsualNodesPerLeaf = 16;
constexpr uint32_t kUsualLeavesPerGroup = 8;

// Returns the field as scenarios name it, and its option.
std::string NameOf(absl::string_view field) {
  return absl::StrCat("cluster_changes.", field);
}

// Keeps the first GPUs of a node, and the adapters and PCIe switches that they
// use.
void KeepGpus(uint32_t num_gpus, Node* node) {
  const auto keep = [&](google::protobuf::RepeatedField<uint32_t>* gpus) {
    gpus->erase(std::remove_if(gpus->begin(), gpus->end(),
                               [&](uint32_t gpu) { return gpu >= num_gpus; }),
                gpus->end());
  };
  auto* nics = node->mutable_nics();
  for (int i = nics->size() - 1; i >= 0; --i) {
    if (nics->at(i).gpus().empty()) continue;  // of all GPUs
    keep(nics->at(i).mutable_gpus());
    if (nics->at(i).gpus().empty()) nics->erase(nics->begin() + i);
  }
  auto* switches = node->mutable_pcie()->mutable_switches();
  for (int i = switches->size() - 1; i >= 0; --i) {
    keep(switches->at(i).mutable_gpus());
    if (switches->at(i).gpus().empty()) switches->erase(switches->begin() + i);
  }
  node->set_num_gpus(num_gpus);
}

// Puts the GPUs of several nodes under one NVLink switch. Every adapter keeps
// its GPUs; where rails matter, each gets a rail of its own.
void JoinNodes(uint32_t copies, bool rails, Node* node) {
  const Node one = *node;
  const uint32_t num_gpus = one.num_gpus();
  uint32_t num_rails = 0;
  for (const Nic& nic : one.nics())
    num_rails = std::max(num_rails, nic.rail() + 1);
  node->clear_nics();
  node->mutable_pcie()->clear_switches();
  for (uint32_t copy = 0; copy < copies; ++copy) {
    const uint32_t first = copy * num_gpus;
    for (Nic nic : one.nics()) {
      if (nic.gpus().empty()) {
        for (uint32_t gpu = 0; gpu < num_gpus; ++gpu) nic.add_gpus(gpu);
      }
      for (uint32_t& gpu : *nic.mutable_gpus()) gpu += first;
      if (rails) nic.set_rail(nic.rail() + copy * num_rails);
      *node->add_nics() = nic;
    }
    for (PcieTree::Switch pcie_switch : one.pcie().switches()) {
      for (uint32_t& gpu : *pcie_switch.mutable_gpus()) gpu += first;
      *node->mutable_pcie()->add_switches() = pcie_switch;
    }
  }
  node->set_num_gpus(copies * num_gpus);
}

// Returns the number of nodes in a domain; 1 if a node is a domain or larger,
// 0 after adding a problem.
uint32_t NodesPerDomain(const std::string& field, uint32_t domain,
                        const Node& node, Problems* problems) {
  const uint32_t num_gpus = node.num_gpus();
  if (!node.has_nv_switch()) {
    problems->Add(field, absl::StrCat("is ", domain,
                                      ", but the node has no nv_switch, "
                                      "expected a cluster with NVLink "
                                      "switches"));
    return 0;
  }
  if (domain <= num_gpus) return 1;
  if (num_gpus == 0 || domain > kMaxGpusPerNode || domain % num_gpus != 0) {
    std::string what = absl::StrFormat(
        "is %d, expected fewer than the %d GPUs of a node, or "
        "a multiple up to %d",
        domain, num_gpus, kMaxGpusPerNode);
    if (num_gpus > 0 && num_gpus <= kMaxGpusPerNode) {
      const uint32_t most = kMaxGpusPerNode / num_gpus * num_gpus;
      const uint32_t below = std::min(domain / num_gpus * num_gpus, most);
      absl::StrAppend(&what, "; nearest: ", below);
      if (below < most) absl::StrAppend(&what, " or ", below + num_gpus);
    }
    problems->Add(field, what);
    return 0;
  }
  return domain / num_gpus;
}

void ChangeDomains(uint32_t domain, Cluster* cluster, Problems* problems) {
  const bool rails = cluster->fabric().rail_optimized();
  for (int i = 0; i < cluster->groups_size(); ++i) {
    NodeGroup& group = *cluster->mutable_groups(i);
    Node* node = group.mutable_node();
    const bool has_pcie = node->has_pcie();
    const uint32_t nodes =
        NodesPerDomain(NameOf("nvlink_domain"), domain, *node, problems);
    if (nodes == 0) return;
    if (nodes > 1) {
      JoinNodes(nodes, rails, node);
      group.set_count((group.count() + nodes - 1) / nodes);
    } else {
      KeepGpus(domain, node);
    }
    if (!has_pcie) node->clear_pcie();
  }
}

// Sets the oversubscription of a fabric whose topology is final.
void SetOversubscription(double ratio, Fabric* fabric, Problems* problems) {
  const std::string field = NameOf("oversubscription");
  if (!(ratio >= 1 && ratio <= 1e6)) {
    problems->CheckRange(field, ratio, 1, 1e6);
  } else if (ratio > 1 && fabric->nodes_per_leaf() == 0) {
    problems->Add(field,
                  absl::StrFormat("is %.12g, but one switch has no uplinks to "
                                  "oversubscribe, expected leaf switches "
                                  "(--topology fat-tree, for example)",
                                  ratio));
  } else {
    fabric->set_oversubscription(ratio);
  }
}

void SetTopology(Topology topology, Fabric* fabric) {
  // Routing of one topology is not that of another.
  if (fabric->has_dragonfly() != (topology == DRAGONFLY) ||
      topology == ONE_SWITCH) {
    fabric->clear_routing();
  }
  fabric->set_rail_optimized(topology == RAIL_OPTIMIZED);
  if (topology != DRAGONFLY) fabric->clear_dragonfly();
  if (topology == ONE_SWITCH) {
    fabric->clear_nodes_per_leaf();
    fabric->clear_oversubscription();
    fabric->clear_hop_latency_seconds();
    return;
  }
  if (fabric->nodes_per_leaf() == 0) {
    fabric->set_nodes_per_leaf(kUsualNodesPerLeaf);
  }
  if (topology == DRAGONFLY && fabric->dragonfly().leaves_per_group() == 0) {
    fabric->mutable_dragonfly()->set_leaves_per_group(kUsualLeavesPerGroup);
  }
}

bool ChangesFabric(const ClusterChanges& changes) {
  return changes.topology() != TOPOLOGY_AS_GIVEN ||
         changes.oversubscription() != 0 || changes.nodes_per_leaf() > 0 ||
         changes.leaves_per_group() > 0 ||
         changes.routing() != ROUTING_UNSPECIFIED ||
         changes.uplinks_per_leaf() > 0;
}

}  // namespace

absl::Status ChangeCluster(absl::string_view label,
                           const ClusterChanges& changes, Cluster* cluster) {
  Problems problems(label);
  if (changes.nvlink_domain() > 0) {
    ChangeDomains(changes.nvlink_domain(), cluster, &problems);
  }
  if (!ChangesFabric(changes)) return problems.ToStatus();
  if (!cluster->has_fabric()) {
    problems.Add("",
                 "is a cluster without fabric, so cluster_changes cannot "
                 "change it (--topology, --oversubscription, --nodes-per-leaf, "
                 "--leaves-per-group, --routing, --uplinks-per-leaf), expected "
                 "one with a network between "
                 "nodes");
    return problems.ToStatus();
  }
  Fabric& fabric = *cluster->mutable_fabric();
  if (changes.topology() != TOPOLOGY_AS_GIVEN) {
    SetTopology(changes.topology(), &fabric);
  }
  if (changes.nodes_per_leaf() > 0) {
    if (changes.topology() == ONE_SWITCH) {
      problems.Add(NameOf("nodes_per_leaf"),
                   absl::StrCat("is ", changes.nodes_per_leaf(),
                                ", but one switch has no leaf switches"));
    }
    fabric.set_nodes_per_leaf(changes.nodes_per_leaf());
  }
  if (changes.leaves_per_group() > 0) {
    if (!fabric.has_dragonfly()) {
      problems.Add(NameOf("leaves_per_group"),
                   absl::StrCat("is ", changes.leaves_per_group(),
                                " in a network that is not a dragonfly, "
                                "expected topology dragonfly"));
      return problems.ToStatus();
    }
    fabric.mutable_dragonfly()->set_leaves_per_group(
        changes.leaves_per_group());
  }
  if (changes.routing() == ROUTING_VALIANT && !fabric.has_dragonfly()) {
    problems.Add(NameOf("routing"),
                 "is valiant, but the network is not a dragonfly, expected "
                 "topology dragonfly");
  } else if (changes.routing() == ROUTING_ECMP &&
             (fabric.has_dragonfly() || fabric.nodes_per_leaf() == 0)) {
    problems.Add(NameOf("routing"),
                 "is ecmp, but the network has no leaf switches under a spine, "
                 "expected topology fat-tree or rail-optimized");
  } else if (changes.routing() == ROUTING_ADAPTIVE && fabric.has_dragonfly()) {
    problems.Add(
        NameOf("routing"),
        "is adaptive, but the network is a dragonfly, expected valiant, "
        "or no routing for minimal routes");
  } else if (changes.routing() != ROUTING_UNSPECIFIED) {
    fabric.set_routing(changes.routing());
  }
  if (changes.uplinks_per_leaf() > 0) {
    problems.CheckRange(NameOf("uplinks_per_leaf"), changes.uplinks_per_leaf(),
                        1, kMaxUplinks);
    fabric.set_uplinks_per_leaf(changes.uplinks_per_leaf());
  }
  if (changes.oversubscription() != 0) {
    SetOversubscription(changes.oversubscription(), &fabric, &problems);
  }
  return problems.ToStatus();
}

absl::Status CheckEffectOfChanges(absl::string_view label,
                                  const ClusterChanges& changes,
                                  const Cluster& cluster) {
  Problems problems(label);
  const bool has_failed =
      std::any_of(cluster.failed().begin(), cluster.failed().end(),
                  [](const FailedLink& failed) { return failed.has_leaf(); });
  if (changes.uplinks_per_leaf() > 0 && !has_failed &&
      cluster.fabric().routing() != ROUTING_ECMP) {
    problems.Add(
        NameOf("uplinks_per_leaf"),
        absl::StrCat("is ", changes.uplinks_per_leaf(),
                     ", which has no effect on adaptive routing over links "
                     "that all work, expected --routing ecmp or failed links "
                     "of a leaf switch (--failed leaf:0=1)"));
  }
  if (changes.routing() == ROUTING_VALIANT) {
    const int num_groups = DragonflyLinks(cluster).num_groups();
    if (num_groups < 3) {
      problems.Add(
          NameOf("routing"),
          absl::StrCat("is valiant, which has no effect on a dragonfly of ",
                       num_groups, num_groups == 1 ? " group" : " groups",
                       ", expected at least 3 groups (more --nodes, or fewer "
                       "--nodes-per-leaf or --leaves-per-group)"));
    }
  }
  return problems.ToStatus();
}

}  // namespace weir::scenarios
