// SPDX-License-Identifier: Apache-2.0
// Failed links, traffic of other jobs and routing over a spine: closed forms,
// and equality of the three methods.
#include "scenarios/cluster/degraded_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/scenario.h"
#include "sim/bounds/bound.h"
#include "sim/engine/engine.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"
#include "tests/sim/message_seconds.h"

namespace weir::sim::degraded_links_test {

using testing::HasSubstr;

constexpr double kRate = 1e9, kBytes = 1e8;

// Nodes of one GPU and one adapter of kRate, without latency.
Cluster Nodes(int count, const std::string& fabric,
              const std::string& rest = "") {
  Cluster cluster;
  EXPECT_TRUE(
      ParseTextProto("test",
                     absl::StrCat("groups { count: ", count,
                                  " node { num_gpus: 1 device: \"d\" nics { "
                                  "bytes_per_second: 1e9 } } } fabric { ",
                                  fabric, " } ", rest),
                     &cluster)
          .ok());
  const absl::Status status = scenarios::ValidateCluster("test", cluster);
  EXPECT_TRUE(status.ok()) << status;
  return cluster;
}

using Messages = std::vector<Message>;

// Every node below the first leaf switch sends to one below the second.
Messages BetweenLeaves(int nodes_per_leaf) {
  Messages messages;
  for (int i = 0; i < nodes_per_leaf; ++i) {
    messages.push_back({i, nodes_per_leaf + i});
  }
  return messages;
}

void ExpectSeconds(double found, double expected) {
  EXPECT_NEAR(found, expected, 1e-9 * expected);
}

// k - f of k uplinks carry what k carried: k / (k - f) times as long. Traffic
// of other jobs leaves 1 - share.
TEST(DegradedLinksTest, UplinksTakeTheClosedForms) {
  constexpr int kPerLeaf = 8;
  for (const double ratio : {1.0, 2.0}) {
    const std::string fabric =
        absl::StrCat("nodes_per_leaf: 8 oversubscription: ", ratio);
    const double whole = ratio * kBytes / kRate;
    const int k = static_cast<int>(kPerLeaf / ratio);
    const auto seconds = [&](const std::string& rest) {
      return SecondsOfMessages(Nodes(16, fabric, rest), BetweenLeaves(kPerLeaf),
                               kBytes);
    };
    ExpectSeconds(seconds(""), whole);
    for (const int failed : {1, 3}) {
      for (const int leaf : {0, 1}) {
        ExpectSeconds(seconds(absl::StrCat("failed { leaf: ", leaf,
                                           " count: ", failed, " }")),
                      whole * k / (k - failed));
      }
    }
    ExpectSeconds(seconds("background { fabric: true share: 0.3 }"),
                  whole / 0.7);
    ExpectSeconds(seconds("background { leaf: 1 share: 0.6 }"), whole / 0.4);
    ExpectSeconds(seconds("background { leaf: 1 share: 0.5 } "
                          "failed { leaf: 1 count: 1 }"),
                  whole / 0.5 * k / (k - 1));
  }
  ExpectSeconds(SecondsOfMessages(Nodes(2, "",
                                        "background { link: \"node0.nic0.tx\" "
                                        "share: 0.25 }"),
                                  {{0, 1}}, kBytes),
                kBytes / kRate / 0.75);
}

// Three groups of one switch with p nodes, whose links have a third of the rate
// of p adapters. Without its link, traffic of group 0 shares that of group 2.
TEST(DegradedLinksTest, DragonflyDetoursTakeTheClosedForms) {
  constexpr int kPerLeaf = 3;
  const std::string fabric =
      "nodes_per_leaf: 3 dragonfly { leaves_per_group: 1 } ";
  Messages from_0 = BetweenLeaves(kPerLeaf), from_0_and_2 = from_0;
  for (int i = 0; i < kPerLeaf; ++i) {
    from_0_and_2.push_back({2 * kPerLeaf + i, kPerLeaf + i});
  }
  const auto seconds = [&](const std::string& more, const std::string& rest,
                           const Messages& messages) {
    return SecondsOfMessages(Nodes(9, fabric + more, rest), messages, kBytes);
  };
  const double whole = 3 * kBytes / kRate;
  const std::string failed = "failed { link: \"leaf0-leaf1\" }";
  const std::string valiant = "routing: ROUTING_VALIANT";
  ExpectSeconds(seconds("", "", from_0), whole);
  ExpectSeconds(seconds("", failed, from_0), whole);
  ExpectSeconds(seconds(valiant, "", from_0), whole);
  // Adapters of the receivers are shared by two messages, which is less.
  ExpectSeconds(seconds("", "", from_0_and_2), whole);
  ExpectSeconds(seconds("", failed, from_0_and_2), 2 * whole);
  // 0 to 1 through 2, and 2 to 1 through 0: no link has both.
  ExpectSeconds(seconds(valiant, "", from_0_and_2), whole);
}

// A network without failures and other traffic is the one without the fields.
TEST(DegradedLinksTest, NoTrafficChangesNothing) {
  const Cluster plain = Nodes(16, "nodes_per_leaf: 8 oversubscription: 2");
  Cluster same = plain;
  same.mutable_fabric()->set_routing(ROUTING_ADAPTIVE);
  same.add_background()->set_fabric(true);
  const scenarios::Network a(plain), b(same);
  ASSERT_EQ(a.links().size(), b.links().size());
  for (size_t i = 0; i < a.links().size(); ++i) {
    EXPECT_EQ(a.links()[i].name, b.links()[i].name);
    EXPECT_EQ(a.links()[i].bytes_per_second, b.links()[i].bytes_per_second);
  }
}

// With a hash, as many messages share an uplink as have its number; spread over
// all uplinks, none is slowed down.
TEST(DegradedLinksTest, HashedPairsCollide) {
  constexpr int kPerLeaf = 16;
  const Messages messages = BetweenLeaves(kPerLeaf);
  const Cluster adaptive = Nodes(2 * kPerLeaf, "nodes_per_leaf: 16");
  ExpectSeconds(SecondsOfMessages(adaptive, messages, kBytes), kBytes / kRate);
  for (const std::string& rest :
       {std::string(), std::string("failed { leaf: 1 count: 5 }")}) {
    const Cluster hashed =
        Nodes(2 * kPerLeaf, "nodes_per_leaf: 16 routing: ROUTING_ECMP", rest);
    const scenarios::Network network(hashed);
    std::map<int32_t, int> users;
    std::set<std::string> names;
    for (const auto& [from, to] : messages) {
      for (const int32_t link : network.RouteBetween(from, to).links) {
        const std::string& name = network.links()[link].name;
        if (name.find("spine") == std::string::npos) continue;
        ++users[link];
        names.insert(name);
      }
    }
    int most = 0;
    for (const auto& [link, count] : users) most = std::max(most, count);
    EXPECT_GT(most, 1);
    ExpectSeconds(SecondsOfMessages(hashed, messages, kBytes),
                  most * kBytes / kRate);
    for (int spine = 0; !rest.empty() && spine < 5; ++spine) {
      EXPECT_EQ(names.count(absl::StrCat("leaf0.spine", spine, ".up")), 0u);
    }
  }
}

absl::StatusOr<scenarios::ResolvedScenario> Resolved(
    const std::string& changes, const std::string& failed,
    const std::string& background, int data = 4) {
  Scenario scenario;
  scenario.set_model("gpt2");
  scenario.set_cluster("dgx-h100");
  scenario.set_num_nodes(4);
  scenario.set_schedule("1f1b");
  scenario.mutable_parallelism()->set_tensor(2);
  scenario.mutable_parallelism()->set_pipeline(16 / data);
  scenario.mutable_parallelism()->set_data(data);
  scenario.mutable_batch()->set_microbatch_size(1);
  scenario.mutable_batch()->set_global_batch_size(8 * data);
  scenario.mutable_batch()->set_sequence_length(512);
  EXPECT_TRUE(
      ParseTextProto("changes", changes, scenario.mutable_cluster_changes())
          .ok());
  if (!failed.empty()) {
    const auto links = scenarios::ParseFailedLinks(failed);
    if (!links.ok()) return links.status();
    scenario.mutable_failed()->Assign(links->begin(), links->end());
  }
  if (!background.empty()) {
    const auto traffic = scenarios::ParseBackgroundTraffic(background);
    if (!traffic.ok()) return traffic.status();
    scenario.mutable_background()->Assign(traffic->begin(), traffic->end());
  }
  return scenarios::ResolveScenario("test", scenario);
}

// GPUs of a failed adapter reach every other GPU, without it.
TEST(DegradedLinksTest, GpusOfAFailedAdapterUseAnother) {
  for (const char* topology : {"FAT_TREE", "RAIL_OPTIMIZED", "ONE_SWITCH"}) {
    const std::string changes = absl::StrCat(
        "topology: ", topology, topology[0] == 'O' ? "" : " nodes_per_leaf: 2");
    const auto scenario =
        Resolved(changes, "node1.nic2,node1.nic3,node2.nic0", "");
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const scenarios::Network network(scenario->cluster);
    for (int from = 0; from < network.num_gpus(); ++from) {
      for (int to = 0; to < network.num_gpus(); ++to) {
        const scenarios::Route route = network.RouteBetween(from, to);
        EXPECT_EQ(route.links.empty(), from == to);
        for (const int32_t link : route.links) {
          const std::string& name = network.links()[link].name;
          EXPECT_TRUE(name.find("node1.nic2.") == std::string::npos &&
                      name.find("node1.nic3.") == std::string::npos &&
                      name.find("node2.nic0.") == std::string::npos)
              << from << " " << to << " " << name;
        }
      }
    }
    // 8 adapters of a node carry a ring of each; now 6.
    std::vector<int> gpus;
    for (int gpu = 0; gpu < 32; ++gpu) gpus.push_back(gpu);
    EXPECT_LE(network.RingsOver(gpus).size(), 6u) << topology;
  }
}

// The fast method is exact, and bounds are not exceeded.
TEST(DegradedLinksTest, MethodsAgree) {
  struct Case {
    const char *changes, *failed, *background;
    int data;
  };
  constexpr const char* kTree = "topology: FAT_TREE nodes_per_leaf: 2";
  const Case cases[] = {
      {kTree, "", "", 4},
      {kTree, "leaf:1=13", "", 4},
      {kTree, "", "fabric=0.9", 4},
      {kTree, "leaf:0=4", "leaf:1=0.5,link:node0.nic1=0.8", 8},
      {"topology: FAT_TREE nodes_per_leaf: 2 routing: ROUTING_ECMP "
       "uplinks_per_leaf: 4",
       "", "", 4},
      {"topology: FAT_TREE nodes_per_leaf: 2 routing: ROUTING_ECMP "
       "uplinks_per_leaf: 4",
       "leaf:1=2", "", 8},
      {"topology: RAIL_OPTIMIZED nodes_per_leaf: 2 routing: ROUTING_ECMP "
       "uplinks_per_leaf: 2",
       "node1.nic2", "", 8},
      {"topology: RAIL_OPTIMIZED nodes_per_leaf: 2", "node0.nic1", "", 4},
      {"topology: DRAGONFLY nodes_per_leaf: 1 leaves_per_group: 2", "",
       "fabric=0.7", 8},
      {"topology: DRAGONFLY nodes_per_leaf: 1 leaves_per_group: 1",
       "leaf0-leaf1", "", 8},
      {"topology: DRAGONFLY nodes_per_leaf: 1 leaves_per_group: 1 routing: "
       "ROUTING_VALIANT",
       "leaf2-leaf3", "", 8}};
  // A process that has a FastSimulator cannot run Simulate.
  std::vector<double> full;
  for (const Case& one : cases) {
    const auto scenario =
        Resolved(one.changes, one.failed, one.background, one.data);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const auto result = Simulate(*scenario);
    ASSERT_TRUE(result.ok()) << result.status();
    full.push_back(result->batch_seconds());
  }
  EXPECT_GT(full[1], full[0]);
  EXPECT_GT(full[2], full[0]);
  FastSimulator simulator;
  for (size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(absl::StrCat(i, " ", cases[i].changes));
    const auto scenario = Resolved(cases[i].changes, cases[i].failed,
                                   cases[i].background, cases[i].data);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const auto fast = simulator.Estimate(*scenario);
    const auto bound = BoundOf(*scenario);
    ASSERT_TRUE(fast.ok() && bound.ok()) << fast.status() << bound.status();
    EXPECT_NEAR(fast->batch_seconds, full[i], 1e-9 * full[i]);
    EXPECT_LE(bound->batch_seconds, full[i] * (1 + 1e-9));
  }
}

TEST(DegradedLinksTest, MessagesNameThePart) {
  const auto message = [&](const std::string& changes,
                           const std::string& failed,
                           const std::string& background) {
    return std::string(
        Resolved(changes, failed, background).status().message());
  };
  const std::string tree = "topology: FAT_TREE nodes_per_leaf: 2";
  EXPECT_THAT(message(tree, "leaf:2", ""),
              HasSubstr("failed[0].leaf is 2, expected 0 to 1"));
  EXPECT_THAT(message(tree, "leaf:1=16", ""),
              HasSubstr("failed has 16 links of leaf 1, of 16, expected one "
                        "that works"));
  EXPECT_THAT(message(tree, "leaf:1=0", ""), HasSubstr("expected an adapter"));
  EXPECT_THAT(message(tree, "node9.nic0", ""),
              HasSubstr("failed[0].nic is node9.nic0, expected an adapter of "
                        "the cluster such as node0.nic0"));
  EXPECT_THAT(message(tree,
                      "node0.nic0,node0.nic1,node0.nic2,node0.nic3,node0.nic4,"
                      "node0.nic5,node0.nic6,node0.nic7",
                      ""),
              HasSubstr("all 8 adapters of node 0"));
  EXPECT_THAT(message("topology: ONE_SWITCH", "", "fabric=0.5"),
              HasSubstr("one leaf switch"));
  EXPECT_THAT(message("topology: ONE_SWITCH", "leaf:0", ""),
              HasSubstr("failed[0].leaf is 0, but the cluster has one leaf "
                        "switch and no links to others, expected several"));
  EXPECT_THAT(message(tree + " uplinks_per_leaf: 4", "", ""),
              HasSubstr("cluster_changes.uplinks_per_leaf is 4, which has no "
                        "effect on adaptive routing"));
  EXPECT_THAT(message(tree + " uplinks_per_leaf: 4", "leaf:0=1", ""), "");
  EXPECT_THAT(
      message(tree + " routing: ROUTING_ECMP uplinks_per_leaf: 70000", "", ""),
      HasSubstr("cluster_changes.uplinks_per_leaf is 70000, expected 1 to "
                "65536"));
  EXPECT_THAT(message(tree, "", "link:node0.nick1=0.5"),
              HasSubstr("did you mean node0.nic1?"));
  EXPECT_THAT(message(tree, "", "fabric=1"),
              HasSubstr("shares from 0 to below 1"));
  EXPECT_THAT(message("topology: DRAGONFLY nodes_per_leaf: 1", "leaf:0", ""),
              HasSubstr("a dragonfly, which has no links to a spine"));
  EXPECT_THAT(message(tree, "leaf0-leaf1", ""),
              HasSubstr("failed[0].link is given for a network that is not a "
                        "dragonfly"));
  const std::string dragonfly =
      "topology: DRAGONFLY nodes_per_leaf: 1 leaves_per_group: 1";
  EXPECT_THAT(message(dragonfly, "leaf0-leaf9", ""),
              HasSubstr("failed[0].link is leaf0-leaf9, expected a link of the "
                        "dragonfly"));
  EXPECT_THAT(message(dragonfly, "leaf0-leaf1,leaf0-leaf2,leaf3-leaf0", ""),
              HasSubstr("leaves leaf switches without a route"));
  EXPECT_THAT(message("topology: ONE_SWITCH routing: ROUTING_VALIANT", "", ""),
              HasSubstr("is valiant, but the network is not a dragonfly"));
  EXPECT_THAT(message("topology: ONE_SWITCH routing: ROUTING_ECMP", "", ""),
              HasSubstr("no leaf switches under a spine"));
  EXPECT_THAT(message(dragonfly + " routing: ROUTING_ADAPTIVE", "", ""),
              HasSubstr("is adaptive, but the network is a dragonfly"));
}

// Without the invalid link, the number of uplinks would have no effect.
TEST(DegradedLinksTest, AnInvalidLinkIsTheOnlyError) {
  const std::string message(
      Resolved("topology: FAT_TREE nodes_per_leaf: 2 uplinks_per_leaf: 4",
               "leaf:99=1", "")
          .status()
          .message());
  EXPECT_THAT(message, HasSubstr("failed[0].leaf is 99, expected 0 to 1"));
  EXPECT_THAT(message, testing::Not(HasSubstr("has no effect")));
}

TEST(DegradedLinksTest, ValiantRoutingNeedsThreeGroups) {
  const auto message = [](int leaves_per_group) {
    return std::string(
        Resolved(absl::StrCat("topology: DRAGONFLY nodes_per_leaf: 1 routing: "
                              "ROUTING_VALIANT leaves_per_group: ",
                              leaves_per_group),
                 "", "")
            .status()
            .message());
  };
  EXPECT_EQ(message(1), "");
  EXPECT_THAT(message(2),
              HasSubstr("cluster_changes.routing is valiant, which has no "
                        "effect on a dragonfly of 2 groups, expected at least "
                        "3 groups"));
  EXPECT_THAT(message(4), HasSubstr("a dragonfly of 1 group, expected"));
}

}  // namespace weir::sim::degraded_links_test
