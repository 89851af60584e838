// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/dragonfly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/describe_cluster.h"
#include "scenarios/cluster/network.h"

namespace weir::scenarios::dragonfly_test {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kRate = 10;

// Nodes of one GPU with an adapter of kRate.
Cluster Nodes(int num_nodes, int nodes_per_leaf, int leaves_per_group,
              const std::string& more = "") {
  Cluster cluster;
  const std::string text = absl::StrCat(
      "groups { count: ", num_nodes,
      " node { num_gpus: 1 device: \"d\" nics { bytes_per_second: ", kRate,
      " } } } fabric { latency_seconds: 1 hop_latency_seconds: 0.25 "
      "nodes_per_leaf: ",
      nodes_per_leaf, " dragonfly { leaves_per_group: ", leaves_per_group,
      " } ", more, "}");
  EXPECT_TRUE(ParseTextProto("test", text, &cluster).ok());
  const absl::Status status = ValidateCluster("test", cluster);
  EXPECT_TRUE(status.ok()) << status;
  return cluster;
}

TEST(DragonflyTest, HasTheLinksOfItsFormula) {
  for (const int p : {1, 2, 3}) {
    for (const int a : {1, 2, 4}) {
      for (const int g : {1, 2, 3, 6}) {
        const DragonflyLinks links(Nodes(p * a * g, p, a));
        EXPECT_EQ(links.num_leaves(), a * g);
        EXPECT_EQ(links.num_groups(), g);
        const int expected = g * a * (a - 1) + g * (g - 1);
        EXPECT_EQ(links.links().size(), static_cast<size_t>(expected));
        EXPECT_EQ(NumDragonflyLinks(a * g, a), expected);
      }
    }
  }
}

TEST(DragonflyTest, RatesCarryUniformTraffic) {
  const DragonflyLinks links(Nodes(24, 2, 4, "oversubscription: 2"));
  const double injected = 2 * kRate;  // a = 4, g = 3
  EXPECT_DOUBLE_EQ(links.global_bytes_per_second(), 4 * injected / 3 / 2);
  EXPECT_DOUBLE_EQ(links.local_bytes_per_second(),
                   injected / 12 + 2 * injected / 3);
}

// Switches of a route, with the first.
std::vector<int> LeavesOf(const DragonflyLinks& links,
                          const std::vector<int>& route) {
  std::vector<int> leaves;
  for (const int link : route) {
    if (leaves.empty()) leaves.push_back(links.links()[link].from);
    EXPECT_EQ(links.links()[link].from, leaves.back());
    leaves.push_back(links.links()[link].to);
  }
  return leaves;
}

TEST(DragonflyTest, RoutesAvoidFailedLinks) {
  // Groups of one switch: around over the third.
  DragonflyLinks three(Nodes(3, 1, 1));
  EXPECT_TRUE(three.Fail(0, 1));
  EXPECT_FALSE(three.Fail(0, 0));
  EXPECT_TRUE(three.connected());
  EXPECT_THAT(LeavesOf(three, three.RouteBetween(0, 1)), ElementsAre(0, 2, 1));
  EXPECT_THAT(LeavesOf(three, three.RouteBetween(1, 0)), ElementsAre(1, 2, 0));
  EXPECT_THAT(LeavesOf(three, three.RouteBetween(0, 2)), ElementsAre(0, 2));
  EXPECT_TRUE(three.Fail(2, 0));
  EXPECT_FALSE(three.connected());

  // Every pair still has a route, at most two links longer, without the link.
  DragonflyLinks links(Nodes(24, 1, 4));
  const DragonflyLinks whole = links;
  const LeafLink failed = links.links().back();
  ASSERT_TRUE(links.Fail(failed.from, failed.to));
  for (int from = 0; from < links.num_leaves(); ++from) {
    for (int to = 0; to < links.num_leaves(); ++to) {
      const std::vector<int> leaves =
          LeavesOf(links, links.RouteBetween(from, to));
      EXPECT_EQ(leaves.empty(), from == to);
      for (size_t i = 0; i + 1 < leaves.size(); ++i) {
        EXPECT_FALSE(leaves[i] == failed.from && leaves[i + 1] == failed.to);
        EXPECT_FALSE(leaves[i] == failed.to && leaves[i + 1] == failed.from);
      }
      EXPECT_LE(leaves.size(), whole.RouteBetween(from, to).size() + 3);
    }
  }
}

// Each choice is another third group; a way has at most two links between
// groups and no link twice.
TEST(DragonflyTest, ValiantRoutesPassAThirdGroup) {
  constexpr int kLeaves = 2, kGroups = 5;
  const DragonflyLinks links(Nodes(kLeaves * kGroups, 1, kLeaves));
  for (int from = 0; from < links.num_leaves(); ++from) {
    for (int to = 0; to < links.num_leaves(); ++to) {
      std::set<int> thirds;
      for (uint64_t choice = 0; choice < kGroups - 2; ++choice) {
        const std::vector<int> route = links.ValiantRoute(from, to, choice);
        const std::vector<int> leaves = LeavesOf(links, route);
        if (from / kLeaves == to / kLeaves) {
          EXPECT_EQ(route, links.RouteBetween(from, to));
          continue;
        }
        EXPECT_EQ(leaves.front(), from);
        EXPECT_EQ(leaves.back(), to);
        EXPECT_EQ(std::set<int>(route.begin(), route.end()).size(),
                  route.size());
        std::set<int> groups;
        for (const int leaf : leaves) groups.insert(leaf / kLeaves);
        ASSERT_EQ(groups.size(), 3u);
        groups.erase(from / kLeaves);
        groups.erase(to / kLeaves);
        thirds.insert(*groups.begin());
      }
      if (from / kLeaves != to / kLeaves) {
        EXPECT_EQ(thirds.size(), kGroups - 2u);
      }
    }
  }
}

// Each switch sends the same to each switch, itself included. No link then
// carries more than its rate, and those between groups exactly as much.
TEST(DragonflyTest, UniformTrafficFillsTheLinksBetweenGroups) {
  for (const int p : {1, 2}) {
    for (const int a : {1, 2, 3, 4}) {
      for (const int g : {2, 3, 5, 8}) {
        const DragonflyLinks links(Nodes(p * a * g, p, a));
        const int n = links.num_leaves();
        std::vector<double> loads(links.links().size());
        for (int from = 0; from < n; ++from) {
          for (int to = 0; to < n; ++to) {
            for (const int link : links.RouteBetween(from, to)) {
              loads[link] += p * kRate / n;
            }
          }
        }
        for (size_t i = 0; i < loads.size(); ++i) {
          const LeafLink& link = links.links()[i];
          if (link.from / a == link.to / a) {
            EXPECT_LE(loads[i], link.bytes_per_second * (1 + 1e-9));
          } else {
            EXPECT_NEAR(loads[i], link.bytes_per_second, 1e-9 * loads[i]);
          }
        }
      }
    }
  }
}

// Routes are chains of links from the first switch to the last, with at most
// one link between groups, also where the last group is not full.
TEST(DragonflyTest, RoutesAreMinimal) {
  for (const int num_nodes : {1, 7, 24, 29}) {
    const DragonflyLinks links(Nodes(num_nodes, 2, 4));
    const int n = links.num_leaves();
    for (int from = 0; from < n; ++from) {
      EXPECT_THAT(links.RouteBetween(from, from), IsEmpty());
      for (int to = 0; to < n; ++to) {
        const std::vector<int> route = links.RouteBetween(from, to);
        int at = from, num_global = 0;
        for (const int i : route) {
          const LeafLink& link = links.links()[i];
          EXPECT_EQ(link.from, at);
          at = link.to;
          num_global += link.from / 4 != link.to / 4;
        }
        EXPECT_EQ(at, to);
        EXPECT_EQ(num_global, from / 4 == to / 4 ? 0 : 1);
        EXPECT_LE(route.size(), 3u);
        EXPECT_EQ(links.RouteBetween(to, from).size(), route.size());
      }
    }
  }
}

TEST(DragonflyTest, RoutesOfTheNetworkPassItsLinks) {
  const Network network(Nodes(12, 1, 2));  // 6 groups of 2 switches
  const auto names = [&](int from, int to) {
    std::vector<std::string> result;
    for (const int link : network.RouteBetween(from, to).links) {
      result.push_back(network.links()[link].name);
    }
    return result;
  };
  EXPECT_THAT(names(0, 1),
              ElementsAre("node0.nic0.tx", "leaf0-leaf1", "node1.nic0.rx"));
  // Group 0 reaches group 2, its second other group, from its second switch;
  // group 2 reaches group 0, its first other group, from its first switch.
  EXPECT_THAT(names(0, 5),
              ElementsAre("node0.nic0.tx", "leaf0-leaf1", "leaf1-leaf4",
                          "leaf4-leaf5", "node5.nic0.rx"));
  EXPECT_DOUBLE_EQ(network.RouteBetween(0, 5).latency_seconds, 1 + 3 * 0.25);
  EXPECT_DOUBLE_EQ(network.RouteBetween(0, 1).latency_seconds, 1.25);
}

// (g / 2)^2 links between groups, for any number of groups.
TEST(DragonflyTest, BisectionIsThatOfItsLinksBetweenGroups) {
  for (const double ratio : {2.0, 3.0}) {
    for (const int g : {2, 4, 8}) {
      const Cluster cluster =
          Nodes(2 * 4 * g, 2, 4, absl::StrCat("oversubscription: ", ratio));
      const double global = 4 * 2 * kRate / g / ratio;
      EXPECT_NEAR(BisectionBytesPerSecond(cluster), g / 2 * (g / 2) * global,
                  1e-9 * global);
    }
  }
  // Half of the traffic of a half crosses, so balanced links carry half of
  // what the adapters send.
  EXPECT_NEAR(BisectionBytesPerSecond(Nodes(32, 2, 4)), 16 * kRate / 2, 1e-9);
}

// The last group may have fewer nodes.
TEST(DragonflyTest, BisectionCutsBetweenWholeGroups) {
  struct Case {
    int nodes, num_groups, first;
  };
  // Groups of 4 switches with 4 nodes.
  for (const Case& c :
       {Case{64, 4, 2}, Case{63, 4, 2}, Case{62, 4, 2}, Case{56, 4, 2},
        Case{49, 4, 2}, Case{48, 3, 1}, Case{47, 3, 1}, Case{36, 3, 1},
        Case{32, 2, 1}, Case{80, 5, 2}}) {
    const Cluster cluster = Nodes(c.nodes, 4, 4);
    const double global = 4 * 4 * kRate / c.num_groups;
    EXPECT_NEAR(BisectionBytesPerSecond(cluster),
                c.first * (c.num_groups - c.first) * global, 1e-9 * global)
        << c.nodes;
    EXPECT_THAT(DescribeCluster(cluster),
                HasSubstr(absl::StrCat("between ", 16 * c.first, " and ",
                                       c.nodes - 16 * c.first, " nodes")));
  }
  // The adapters of the smaller side limit 2 groups of 16 nodes and of 1.
  EXPECT_DOUBLE_EQ(BisectionBytesPerSecond(Nodes(17, 4, 4)), kRate);
  // A group of 3 switches is cut into 1 and 2, whose links carry 4 B / 3 each.
  EXPECT_NEAR(BisectionBytesPerSecond(Nodes(12, 4, 4)), 2 * 4 * kRate / 3,
              1e-9);
  EXPECT_DOUBLE_EQ(BisectionBytesPerSecond(Nodes(3, 4, 4)), kRate);
}

// Leaves with p nodes of rate B have uplinks of p B / R.
TEST(FatTreeTest, BisectionIsDividedByTheOversubscription) {
  for (const char* topology : {"", "rail_optimized: true"}) {
    for (const double ratio : {1.0, 2.0, 7.0}) {
      Cluster cluster;
      ASSERT_TRUE(
          ParseTextProto("test",
                         absl::StrCat("groups { count: 12 node { num_gpus: 1 "
                                      "device: \"d\" nics { bytes_per_second: "
                                      "10 } } } fabric { nodes_per_leaf: 3 "
                                      "oversubscription: ",
                                      ratio, " ", topology, "}"),
                         &cluster)
              .ok());
      EXPECT_DOUBLE_EQ(BisectionBytesPerSecond(cluster), 6 * kRate / ratio);
      const Network network(cluster);
      int num_leaf_links = 0;
      for (const Link& link : network.links()) {
        if (link.name.find("leaf") == std::string::npos) continue;
        ++num_leaf_links;
        EXPECT_DOUBLE_EQ(link.bytes_per_second, 3 * kRate / ratio);
      }
      EXPECT_EQ(num_leaf_links, ratio > 1 ? 4 * 2 : 0);
    }
  }
}

absl::StatusOr<Cluster> Changed(const std::string& name,
                                const std::string& changes, int nodes = 0) {
  ClusterChanges parsed;
  EXPECT_TRUE(ParseTextProto("changes", changes, &parsed).ok());
  return LoadCluster(name, nodes, parsed);
}

TEST(ClusterChangesTest, TopologiesReplaceEachOther) {
  EXPECT_FALSE(
      Changed("dgx-h100", "topology: FAT_TREE")->fabric().rail_optimized());
  EXPECT_EQ(
      Changed("dgx-h100", "topology: ONE_SWITCH")->fabric().nodes_per_leaf(),
      0u);
  const auto dragonfly =
      Changed("dgx-h100", "topology: DRAGONFLY nodes_per_leaf: 4", 128);
  ASSERT_TRUE(dragonfly.ok()) << dragonfly.status();
  EXPECT_EQ(dragonfly->fabric().dragonfly().leaves_per_group(), 8u);
  EXPECT_FALSE(dragonfly->fabric().rail_optimized());
  // A cluster without leaf switches gets some.
  const auto tree =
      Changed("gb200-nvl72", "topology: FAT_TREE oversubscription: 2");
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->fabric().nodes_per_leaf(), 16u);
}

TEST(ClusterChangesTest, OversubscriptionOf512NodesHalvesTheBisection) {
  const auto plain = Changed("dgx-h100", "", 512);
  const auto narrow = Changed("dgx-h100", "oversubscription: 2", 512);
  ASSERT_TRUE(plain.ok() && narrow.ok());
  EXPECT_DOUBLE_EQ(BisectionBytesPerSecond(*plain), 256 * 8 * 50e9);
  EXPECT_DOUBLE_EQ(BisectionBytesPerSecond(*narrow), 128 * 8 * 50e9);
}

TEST(ClusterChangesTest, NvlinkDomainsJoinNodesOrUseAPart) {
  const auto joined = Changed("dgx-b200", "nvlink_domain: 72");
  ASSERT_TRUE(joined.ok()) << joined.status();
  const Node& node = joined->groups(0).node();
  EXPECT_EQ(node.num_gpus(), 72u);
  EXPECT_EQ(node.nics_size(), 72);
  EXPECT_EQ(NumNodes(*joined), 2);  // 16 nodes of 8 GPUs, rounded up
  const Network network(*joined);
  EXPECT_EQ(network.RouteBetween(0, 71).links.size(), 2u);
  EXPECT_EQ(network.WireBetween(0, 71), Wire::kNvSwitch);
  // The GPU's own adapter, under its own switch.
  std::vector<std::string> names;
  for (const int link : network.RouteBetween(70, 142).links) {
    names.push_back(network.links()[link].name);
  }
  EXPECT_THAT(names, ElementsAre("node0.gpu70.pcie.tx", "node0.nic70.tx",
                                 "node1.nic70.rx", "node1.gpu70.pcie.rx"));

  const auto tray = Changed("gb200-nvl72", "nvlink_domain: 4", 2);
  ASSERT_TRUE(tray.ok()) << tray.status();
  EXPECT_EQ(tray->groups(0).node().num_gpus(), 4u);
  EXPECT_EQ(tray->groups(0).node().nics_size(), 4);
  EXPECT_EQ(tray->groups(0).node().pcie().switches_size(), 2);
  EXPECT_EQ(NumGpus(*tray), 8);

  // A part need not divide the node: here, one GPU of each is not used.
  const auto seven = Changed("dgx-h100", "nvlink_domain: 7", 2);
  ASSERT_TRUE(seven.ok()) << seven.status();
  EXPECT_EQ(NumGpus(*seven), 14);
  EXPECT_EQ(seven->groups(0).node().nics_size(), 7);
}

TEST(ClusterChangesTest, MessagesNameTheField) {
  const auto message = [](const char* name, const char* changes) {
    return std::string(Changed(name, changes).status().message());
  };
  EXPECT_THAT(message("dgx-h100", "nvlink_domain: 20"),
              HasSubstr("dgx-h100: cluster_changes.nvlink_domain "
                        "is 20, expected fewer than the 8 "
                        "GPUs of a node, or a multiple up to 1024; nearest: "
                        "16 or 24"));
  EXPECT_THAT(message("dgx-h100", "nvlink_domain: 2000"),
              EndsWith("nearest: 1024"));
  EXPECT_THAT(message("p3-16xlarge", "nvlink_domain: 16"),
              HasSubstr("but the node has no nv_switch"));
  EXPECT_THAT(message("dgx-h100", "leaves_per_group: 4"),
              HasSubstr("is 4 in a network that is not a dragonfly"));
  EXPECT_THAT(message("dgx-h100", "topology: ONE_SWITCH nodes_per_leaf: 4"),
              HasSubstr("one switch has no leaf switches"));
  EXPECT_THAT(message("p3-16xlarge", "oversubscription: 2"),
              HasSubstr("p3-16xlarge: cluster_changes.oversubscription "
                        "is 2, but one switch has no "
                        "uplinks to oversubscribe"));
  EXPECT_THAT(message("dgx-h100", "oversubscription: 0.5"),
              Eq("dgx-h100: cluster_changes.oversubscription "
                 "is 0.5, expected 1 to 1000000"));
}

TEST(ClusterChangesTest, SenselessDragonfliesAreNamed) {
  const auto message = [](const std::string& fabric) {
    Cluster cluster;
    EXPECT_TRUE(ParseTextProto("test",
                               absl::StrCat("groups { count: 4 node { "
                                            "num_gpus: 1 device: \"d\" nics { "
                                            "bytes_per_second: 10 } } } "
                                            "fabric { ",
                                            fabric, " }"),
                               &cluster)
                    .ok());
    return std::string(ValidateCluster("c", cluster).message());
  };
  EXPECT_THAT(message("dragonfly { leaves_per_group: 2 }"),
              HasSubstr("fabric.dragonfly is given without nodes_per_leaf"));
  EXPECT_THAT(message("nodes_per_leaf: 1 dragonfly { }"),
              HasSubstr("fabric.dragonfly.leaves_per_group is 0"));
  EXPECT_THAT(message("nodes_per_leaf: 1 rail_optimized: true dragonfly { "
                      "leaves_per_group: 2 }"),
              HasSubstr("is given with rail_optimized"));
  EXPECT_THAT(message("nodes_per_leaf: 1 dragonfly { leaves_per_group: 2 "
                      "local_bytes_per_second: -1 }"),
              HasSubstr("fabric.dragonfly.local_bytes_per_second is -1"));
  EXPECT_THAT(message("nodes_per_leaf: 1 oversubscription: 2 dragonfly { "
                      "leaves_per_group: 2 global_bytes_per_second: 5 }"),
              HasSubstr("expected one of them"));
}

}  // namespace weir::scenarios::dragonfly_test
