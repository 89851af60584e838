// SPDX-License-Identifier: Apache-2.0
// Networks between nodes: times of an all-to-all and of a step of a ring
// all-reduce in closed form, and equality of the three methods.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/network.h"
#include "scenarios/scenario.h"
#include "sim/bounds/bound.h"
#include "sim/engine/engine.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"
#include "tests/sim/message_seconds.h"

namespace weir::sim::topologies_test {

constexpr double kRate = 1e9, kBytes = 1e8;

// Nodes of one GPU and one adapter of kRate, without latency.
Cluster Nodes(int count, const std::string& fabric) {
  Cluster cluster;
  EXPECT_TRUE(
      ParseTextProto("test",
                     absl::StrCat("groups { count: ", count,
                                  " node { num_gpus: 1 device: \"d\" nics { "
                                  "bytes_per_second: 1e9 } } } fabric { ",
                                  fabric, " }"),
                     &cluster)
          .ok());
  const absl::Status status = scenarios::ValidateCluster("test", cluster);
  EXPECT_TRUE(status.ok()) << status;
  return cluster;
}

std::vector<Message> AllToAll(int n) {
  std::vector<Message> messages;
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from != to) messages.push_back({from, to});
    }
  }
  return messages;
}

// One step of a ring all-reduce over all nodes in order.
std::vector<Message> RingStep(int n) {
  std::vector<Message> messages;
  for (int i = 0; i < n; ++i) messages.push_back({i, (i + 1) % n});
  return messages;
}

void ExpectSeconds(double found, double expected) {
  EXPECT_NEAR(found, expected, 1e-9 * expected);
}

// The adapters limit both.
TEST(TopologiesTest, OneSwitchIsLimitedByItsAdapters) {
  const Cluster cluster = Nodes(6, "");
  ExpectSeconds(SecondsOfMessages(cluster, AllToAll(6), kBytes),
                5 * kBytes / kRate);
  ExpectSeconds(SecondsOfMessages(cluster, RingStep(6), kBytes),
                kBytes / kRate);
}

// With p nodes below a leaf switch, p (N - p) messages of an all-to-all share
// an uplink of p / R adapters. A ring crosses each uplink once.
TEST(TopologiesTest, FatTreeIsLimitedByItsUplinks) {
  constexpr int kNodes = 12, kPerLeaf = 3;
  for (const double ratio : {2.0, 4.0, 7.0}) {
    const Cluster cluster = Nodes(
        kNodes, absl::StrCat("nodes_per_leaf: 3 oversubscription: ", ratio));
    ExpectSeconds(SecondsOfMessages(cluster, AllToAll(kNodes), kBytes),
                  ratio * (kNodes - kPerLeaf) * kBytes / kRate);
    ExpectSeconds(SecondsOfMessages(cluster, RingStep(kNodes), kBytes),
                  std::max(1.0, ratio / kPerLeaf) * kBytes / kRate);
  }
}

// Every rail is a fat tree of its own: rings on all rails do not disturb each
// other, where whole-node leaf switches would give each a share.
TEST(TopologiesTest, RailsDoNotShareUplinks) {
  Cluster cluster;
  ASSERT_TRUE(ParseTextProto("test", R"(
    groups { count: 8 node { num_gpus: 2 device: "d"
      nv_switch { bytes_per_second: 1e12 }
      nics { bytes_per_second: 1e9 gpus: 0 rail: 0 }
      nics { bytes_per_second: 1e9 gpus: 1 rail: 1 } } }
    fabric { nodes_per_leaf: 2 oversubscription: 4 rail_optimized: true })",
                             &cluster)
                  .ok());
  std::vector<Message> rings;
  for (int node = 0; node < 8; ++node) {
    for (int rail = 0; rail < 2; ++rail) {
      rings.push_back({2 * node + rail, (2 * node + 2 + rail) % 16});
    }
  }
  // An uplink of 2 x 1e9 / 4 carries one message of its rail.
  ExpectSeconds(SecondsOfMessages(cluster, rings, kBytes), 2 * kBytes / kRate);
  cluster.mutable_fabric()->set_rail_optimized(false);
  // An uplink of 4 x 1e9 / 4 carries two.
  ExpectSeconds(SecondsOfMessages(cluster, rings, kBytes), 2 * kBytes / kRate);
  // On one rail alone, it is not shared.
  rings.erase(std::remove_if(rings.begin(), rings.end(),
                             [](const Message& m) { return m.from % 2 == 1; }),
              rings.end());
  ExpectSeconds(SecondsOfMessages(cluster, rings, kBytes), kBytes / kRate);
  cluster.mutable_fabric()->set_rail_optimized(true);
  ExpectSeconds(SecondsOfMessages(cluster, rings, kBytes), 2 * kBytes / kRate);
}

// (p a)^2 messages of an all-to-all share the link between two groups of p a
// nodes. A ring crosses it once.
TEST(TopologiesTest, DragonflyIsLimitedByTheLinksBetweenGroups) {
  constexpr int kGroups = 3, kLeaves = 2, kPerLeaf = 2;
  constexpr int kNodes = kGroups * kLeaves * kPerLeaf;
  for (const double ratio : {2.0, 5.0}) {
    const Cluster cluster = Nodes(
        kNodes, absl::StrCat("nodes_per_leaf: 2 dragonfly { leaves_per_group: "
                             "2 } oversubscription: ",
                             ratio));
    const double global = kLeaves * kPerLeaf * kRate / kGroups / ratio;
    constexpr int kPerGroup = kLeaves * kPerLeaf;
    ExpectSeconds(SecondsOfMessages(cluster, AllToAll(kNodes), kBytes),
                  kPerGroup * kPerGroup * kBytes / global);
    ExpectSeconds(SecondsOfMessages(cluster, RingStep(kNodes), kBytes),
                  kBytes / std::min(global, kRate));
  }
}

absl::StatusOr<scenarios::ResolvedScenario> Resolved(const std::string& cluster,
                                                     int nodes,
                                                     const std::string& changes,
                                                     int tensor = 2,
                                                     int pipeline = 2) {
  Scenario scenario;
  scenario.set_model("gpt2");
  scenario.set_cluster(cluster);
  scenario.set_num_nodes(nodes);
  scenario.set_schedule("1f1b");
  scenario.mutable_parallelism()->set_tensor(tensor);
  scenario.mutable_parallelism()->set_pipeline(pipeline);
  scenario.mutable_batch()->set_microbatch_size(1);
  scenario.mutable_batch()->set_global_batch_size(64);
  scenario.mutable_batch()->set_sequence_length(512);
  EXPECT_TRUE(
      ParseTextProto("changes", changes, scenario.mutable_cluster_changes())
          .ok());
  return scenarios::ResolveScenario("test", scenario);
}

// The fast method is exact, and bounds are not exceeded.
TEST(TopologiesTest, MethodsAgree) {
  struct Case {
    const char* cluster;
    int nodes;
    const char* changes;
  };
  const Case cases[] = {
      {"dgx-h100", 4, "topology: ONE_SWITCH"},
      {"dgx-h100", 4,
       "topology: FAT_TREE nodes_per_leaf: 2 oversubscription: 3"},
      {"dgx-h100", 4,
       "topology: RAIL_OPTIMIZED nodes_per_leaf: 2 oversubscription: 3"},
      {"dgx-h100", 8,
       "topology: DRAGONFLY nodes_per_leaf: 1 leaves_per_group: 2 "
       "oversubscription: 4"},
      {"dgx-b200", 2, "nvlink_domain: 16"},
      {"gb200-nvl72", 2, "nvlink_domain: 32"},
      {"mi300x-8", 2, ""}};
  // A process that has a FastSimulator cannot run Simulate.
  std::vector<double> full;
  for (const Case& one : cases) {
    const auto scenario = Resolved(one.cluster, one.nodes, one.changes);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const auto result = Simulate(*scenario);
    ASSERT_TRUE(result.ok()) << result.status();
    full.push_back(result->batch_seconds());
  }
  EXPECT_LT(full[0], full[1]);  // oversubscription costs time
  FastSimulator simulator;
  for (size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(absl::StrCat(cases[i].cluster, " ", cases[i].changes));
    const auto scenario =
        Resolved(cases[i].cluster, cases[i].nodes, cases[i].changes);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const auto fast = simulator.Estimate(*scenario);
    const auto bound = BoundOf(*scenario);
    ASSERT_TRUE(fast.ok() && bound.ok()) << fast.status() << bound.status();
    EXPECT_NEAR(fast->batch_seconds, full[i], 1e-9 * full[i]);
    EXPECT_LE(bound->batch_seconds, full[i] * (1 + 1e-9));
  }
}

}  // namespace weir::sim::topologies_test
