// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/assets.h"
#include "base/textproto.h"
#include "scenarios/cluster/cluster.h"

namespace weir::scenarios::network_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Network Preset(const std::string& name, int num_nodes) {
  const auto cluster = LoadCluster(name, num_nodes);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return Network(*cluster);
}

Network FromText(const std::string& text) {
  Cluster cluster;
  EXPECT_TRUE(ParseTextProto("test", text, &cluster).ok());
  const absl::Status status = ValidateCluster("test", cluster);
  EXPECT_TRUE(status.ok()) << status;
  return Network(cluster);
}

std::vector<std::string> Names(const Network& network, int from, int to) {
  std::vector<std::string> names;
  for (const int link : network.RouteBetween(from, to).links)
    names.push_back(network.links()[link].name);
  return names;
}

double Latency(const Network& network, int from, int to) {
  return network.RouteBetween(from, to).latency_seconds;
}

double Bandwidth(const Network& network, const std::string& name) {
  for (const Link& link : network.links()) {
    if (link.name == name) return link.bytes_per_second;
  }
  ADD_FAILURE() << "no link " << name;
  return 0;
}

// Returns two nodes with 1 GPU per leaf and the given properties of the fabric.
std::string Leaves(const std::string& fabric) {
  return R"(groups { count: 6 node { num_gpus: 1 device: "d"
      nics { bytes_per_second: 10 } } }
    fabric { nodes_per_leaf: 2 latency_seconds: 1 hop_latency_seconds: 0.5 )" +
         fabric + "}";
}

TEST(NetworkTest, P3PairWithNvLinkUsesOneLinkOfTheSummedLanes) {
  const Network network = Preset("p3-16xlarge", 2);
  EXPECT_THAT(Names(network, 0, 3), ElementsAre("node0.gpu0-gpu3.nvlink"));
  EXPECT_THAT(Names(network, 3, 0), ElementsAre("node0.gpu3-gpu0.nvlink"));
  EXPECT_EQ(Bandwidth(network, "node0.gpu0-gpu3.nvlink"), 50e9);
  EXPECT_EQ(Bandwidth(network, "node0.gpu1-gpu0.nvlink"), 25e9);
  EXPECT_DOUBLE_EQ(Latency(network, 0, 3), 3.4e-6);
}

TEST(NetworkTest, P3PairWithoutNvLinkCrossesTheSockets) {
  const Network network = Preset("p3-16xlarge", 2);
  EXPECT_THAT(Names(network, 8, 13),
              ElementsAre("node1.gpu0.pcie.tx", "node1.pcie0.tx",
                          "node1.socket0-socket1", "node1.pcie2.rx",
                          "node1.gpu5.pcie.rx"));
  EXPECT_DOUBLE_EQ(Latency(network, 8, 13), 4 * 1.9e-6);
}

TEST(NetworkTest, P3NodesMeetOverTheSharedAdapterAtTheFirstSocket) {
  const Network network = Preset("p3-16xlarge", 2);
  EXPECT_THAT(
      Names(network, 0, 15),
      ElementsAre("node0.gpu0.pcie.tx", "node0.pcie0.tx", "node0.nic0.tx",
                  "node1.nic0.rx", "node1.socket0-socket1", "node1.pcie3.rx",
                  "node1.gpu7.pcie.rx"));
  EXPECT_THAT(
      Names(network, 15, 0),
      ElementsAre("node1.gpu7.pcie.tx", "node1.pcie3.tx",
                  "node1.socket1-socket0", "node1.nic0.tx", "node0.nic0.rx",
                  "node0.pcie0.rx", "node0.gpu0.pcie.rx"));
  EXPECT_EQ(Bandwidth(network, "node1.nic0.tx"), 3.125e9);
  EXPECT_DOUBLE_EQ(Latency(network, 0, 15), 30e-6 + 5 * 1.9e-6);
}

TEST(NetworkTest, Dgx1LeavesByTheAdapterUnderItsSwitch) {
  const Network network = Preset("dgx-1-v100", 2);
  EXPECT_THAT(Names(network, 5, 8),
              ElementsAre("node0.gpu5.pcie.tx", "node0.nic2.tx",
                          "node1.nic0.rx", "node1.gpu0.pcie.rx"));
}

TEST(NetworkTest, NvSwitchHasNoCore) {
  const Network network = Preset("dgx-a100", 1);
  EXPECT_THAT(Names(network, 2, 7),
              ElementsAre("node0.gpu2.nvlink.tx", "node0.gpu7.nvlink.rx"));
  EXPECT_EQ(Bandwidth(network, "node0.gpu7.nvlink.rx"), 300e9);
}

TEST(NetworkTest, DgxH100StaysOnItsRail) {
  const Network network = Preset("dgx-h100", 2);
  EXPECT_THAT(Names(network, 3, 11),
              ElementsAre("node0.gpu3.pcie.tx", "node0.nic3.tx",
                          "node1.nic3.rx", "node1.gpu3.pcie.rx"));
  EXPECT_DOUBLE_EQ(Latency(network, 3, 11), 10e-6 + 2 * 1.9e-6);
}

TEST(NetworkTest, DgxH100ChangesRailInsideTheSendersNode) {
  const Network network = Preset("dgx-h100", 2);
  EXPECT_THAT(Names(network, 3, 13),
              ElementsAre("node0.gpu3.nvlink.tx", "node0.gpu5.nvlink.rx",
                          "node0.gpu5.pcie.tx", "node0.nic5.tx",
                          "node1.nic5.rx", "node1.gpu5.pcie.rx"));
  EXPECT_DOUBLE_EQ(Latency(network, 3, 13), 3.4e-6 + 10e-6 + 2 * 1.9e-6);
}

TEST(NetworkTest, SpineAddsItsHopLatencyAndNoLink) {
  const Network network = Preset("dgx-h100", 64);
  EXPECT_EQ(Names(network, 0, 8 * 31).size(), 4u);
  EXPECT_EQ(Names(network, 0, 8 * 32).size(), 4u);
  EXPECT_DOUBLE_EQ(Latency(network, 0, 8 * 31), 10e-6 + 2 * 1.9e-6);
  EXPECT_DOUBLE_EQ(Latency(network, 0, 8 * 32), 10.3e-6 + 2 * 1.9e-6);
}

TEST(NetworkTest, OversubscribedLeavesAreLinks) {
  const Network network = FromText(Leaves("oversubscription: 4"));
  EXPECT_THAT(Names(network, 0, 1),
              ElementsAre("node0.nic0.tx", "node1.nic0.rx"));
  EXPECT_THAT(Names(network, 0, 5), ElementsAre("node0.nic0.tx", "leaf0.up",
                                                "leaf2.down", "node5.nic0.rx"));
  EXPECT_EQ(Bandwidth(network, "leaf2.down"), 2 * 10 / 4.0);
  EXPECT_EQ(Latency(network, 0, 1), 1);
  EXPECT_EQ(Latency(network, 0, 5), 1.5);
}

TEST(NetworkTest, NonBlockingLeavesAreNoLinks) {
  for (const char* fabric : {"", "oversubscription: 1"}) {
    const Network network = FromText(Leaves(fabric));
    EXPECT_THAT(Names(network, 0, 5),
                ElementsAre("node0.nic0.tx", "node5.nic0.rx"));
    EXPECT_EQ(Latency(network, 0, 5), 1.5);
  }
}

TEST(NetworkTest, EachRailHasLeavesOfItsOwn) {
  const Network network = FromText(R"(
    groups { count: 3 node { num_gpus: 2 device: "d"
      nv_switch { bytes_per_second: 100 }
      nics { bytes_per_second: 10 gpus: 0 rail: 4 }
      nics { bytes_per_second: 20 gpus: 1 rail: 7 } } }
    fabric { nodes_per_leaf: 2 oversubscription: 2 rail_optimized: true })");
  EXPECT_THAT(Names(network, 1, 5),
              ElementsAre("node0.nic1.tx", "rail7.leaf0.up", "rail7.leaf1.down",
                          "node2.nic1.rx"));
  EXPECT_EQ(Bandwidth(network, "rail4.leaf0.up"), 10);
  // The last leaf has only one node, but all of its ports.
  EXPECT_EQ(Bandwidth(network, "rail7.leaf1.down"), 20);
}

TEST(NetworkTest, SeveralAdaptersOfOneGpuAreSharedOutByItsNumber) {
  const Network network = FromText(R"(
    groups { count: 2 node { num_gpus: 3 device: "d"
      nv_switch { bytes_per_second: 100 }
      nics { bytes_per_second: 10 } nics { bytes_per_second: 10 } } }
    fabric { })");
  EXPECT_THAT(Names(network, 0, 4),
              ElementsAre("node0.nic0.tx", "node1.nic1.rx"));
  EXPECT_THAT(Names(network, 2, 3),
              ElementsAre("node0.nic0.tx", "node1.nic0.rx"));
}

TEST(NetworkTest, GpuWithAdaptersOnTwoRailsTakesTheReceiversRail) {
  const Network network = FromText(R"(
    groups { count: 2 node { num_gpus: 2 device: "d"
      nv_switch { bytes_per_second: 100 }
      nics { bytes_per_second: 10 rail: 0 }
      nics { bytes_per_second: 10 rail: 1 } } }
    fabric { rail_optimized: true })");
  EXPECT_THAT(Names(network, 0, 3),
              ElementsAre("node0.nic1.tx", "node1.nic1.rx"));
}

TEST(NetworkTest, SwitchesOfOneSocketMeetInItsRootComplex) {
  const Network network = FromText(R"(
    groups { count: 1 node { num_gpus: 4 device: "d"
      pcie { switches { gpus: [0, 2] } switches { gpus: [1, 3] }
        gpu_bytes_per_second: 12 uplink_bytes_per_second: 10
        latency_seconds: 1 } } })");
  EXPECT_THAT(Names(network, 0, 2),
              ElementsAre("node0.gpu0.pcie.tx", "node0.gpu2.pcie.rx"));
  EXPECT_EQ(Latency(network, 0, 2), 1);
  EXPECT_THAT(Names(network, 0, 3),
              ElementsAre("node0.gpu0.pcie.tx", "node0.pcie0.tx",
                          "node0.pcie1.rx", "node0.gpu3.pcie.rx"));
  EXPECT_EQ(Latency(network, 0, 3), 3);
  EXPECT_EQ(Bandwidth(network, "node0.pcie1.rx"), 10);
}

TEST(NetworkTest, GpusThatShareARailShareItsForwarding) {
  const Network network = FromText(R"(
    groups { count: 2 node { num_gpus: 4 device: "d"
      nv_switch { bytes_per_second: 100 }
      nics { bytes_per_second: 10 gpus: [0, 1] rail: 0 }
      nics { bytes_per_second: 10 gpus: [2, 3] rail: 1 } } }
    fabric { rail_optimized: true })");
  EXPECT_THAT(Names(network, 0, 6),
              ElementsAre("node0.gpu0.nvlink.tx", "node0.gpu2.nvlink.rx",
                          "node0.nic1.tx", "node1.nic1.rx"));
  EXPECT_THAT(Names(network, 0, 7),
              ElementsAre("node0.gpu0.nvlink.tx", "node0.gpu3.nvlink.rx",
                          "node0.nic1.tx", "node1.nic1.rx"));
}

TEST(NetworkTest, MeshWithoutPcieForwardsOverTheShortestWay) {
  const Network network = FromText(R"(
    groups { count: 1 node { num_gpus: 4 device: "d"
      nv_link_mesh { bytes_per_second_per_link: 1 latency_seconds: 1
        edges { a: 0 b: 1 num_links: 1 } edges { a: 1 b: 2 num_links: 1 }
        edges { a: 2 b: 3 num_links: 1 } edges { a: 1 b: 3 num_links: 1 }
      } } })");
  EXPECT_THAT(Names(network, 0, 3),
              ElementsAre("node0.gpu0-gpu1.nvlink", "node0.gpu1-gpu3.nvlink"));
  EXPECT_EQ(Latency(network, 0, 3), 2);
}

TEST(NetworkTest, GroupsOfNodesAreNumberedInOrder) {
  const Network network = FromText(R"(
    groups { count: 2 node { num_gpus: 1 device: "d"
      nics { bytes_per_second: 10 } } }
    groups { count: 1 node { num_gpus: 2 device: "d"
      nv_switch { bytes_per_second: 100 }
      nics { bytes_per_second: 20 gpus: 0 }
      nics { bytes_per_second: 30 gpus: 1 } } }
    fabric { })");
  EXPECT_EQ(network.num_gpus(), 4);
  EXPECT_EQ(network.NodeOf(1), 1);
  EXPECT_EQ(network.NodeOf(3), 2);
  EXPECT_THAT(Names(network, 1, 3),
              ElementsAre("node1.nic0.tx", "node2.nic1.rx"));
  EXPECT_EQ(Bandwidth(network, "node2.nic1.rx"), 30);
}

TEST(NetworkTest, GivenHopsArePureLatency) {
  const Network network = Network::OfGivenCosts(4, 0.25);
  EXPECT_EQ(network.num_gpus(), 4);
  EXPECT_THAT(network.links(), IsEmpty());
  EXPECT_THAT(network.RouteBetween(0, 3).links, IsEmpty());
  EXPECT_EQ(network.RouteBetween(0, 3).latency_seconds, 0.25);
  EXPECT_EQ(network.RouteBetween(2, 2).latency_seconds, 0);
}

TEST(NetworkTest, LinkNamesAreUnique) {
  for (const std::string& name : ListAssets("scenarios/cluster/presets")) {
    const Network network = Preset(name, 3);
    std::set<std::string> names;
    for (const Link& link : network.links()) {
      EXPECT_TRUE(names.insert(link.name).second) << link.name;
      EXPECT_GT(link.bytes_per_second, 0) << link.name;
    }
  }
}

TEST(NetworkTest, EveryRouteOfEveryPresetIsSound) {
  for (const std::string& name : ListAssets("scenarios/cluster/presets")) {
    const Network network = Preset(name, 3);
    const int num_links = static_cast<int>(network.links().size());
    for (int from = 0; from < network.num_gpus(); ++from) {
      EXPECT_THAT(network.RouteBetween(from, from).links, IsEmpty());
      for (int to = 0; to < network.num_gpus(); ++to) {
        if (from == to) continue;
        const Route route = network.RouteBetween(from, to);
        ASSERT_FALSE(route.links.empty());
        std::set<int> seen;
        for (const int link : route.links) {
          ASSERT_TRUE(link >= 0 && link < num_links);
          EXPECT_TRUE(seen.insert(link).second)
              << name << " " << from << "-" << to << " passes "
              << network.links()[link].name << " twice";
        }
        const Route back = network.RouteBetween(to, from);
        EXPECT_GT(route.latency_seconds, 0);
        EXPECT_DOUBLE_EQ(route.latency_seconds, back.latency_seconds);
        EXPECT_EQ(route.links.size(), back.links.size());
        for (const int link : back.links) EXPECT_EQ(seen.count(link), 0u);
      }
    }
  }
}

}  // namespace weir::scenarios::network_test
