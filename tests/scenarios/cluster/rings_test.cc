// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "base/assets.h"
#include "base/textproto.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/network.h"

namespace weir::scenarios::rings_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Network Preset(const std::string& name, int num_nodes) {
  const auto cluster = LoadCluster(name, num_nodes);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return Network(*cluster);
}

std::vector<int> Range(int first, int last) {
  std::vector<int> gpus(last - first);
  std::iota(gpus.begin(), gpus.end(), first);
  return gpus;
}

// Checks that no NVLink carries more rings than it has lanes of 25 GB/s.
void ExpectNoLaneShared(const Network& network,
                        const std::map<std::string, int>& load) {
  for (const Link& link : network.links()) {
    const auto found = load.find(link.name);
    if (found == load.end() || link.name.find("-gpu") == std::string::npos)
      continue;
    EXPECT_LE(found->second, link.bytes_per_second / 25e9) << link.name;
  }
}

// Returns the number of hops of the rings on each link.
std::map<std::string, int> Load(const Network& network,
                                const std::vector<Ring>& rings) {
  std::map<std::string, int> load;
  for (const Ring& ring : rings) {
    for (size_t i = 0; i < ring.gpus.size(); ++i) {
      const int to = ring.gpus[(i + 1) % ring.gpus.size()];
      for (const int link : network.RouteBetween(ring.gpus[i], to).links)
        ++load[network.links()[link].name];
    }
  }
  return load;
}

void ExpectEachRingVisitsAllOnce(const std::vector<Ring>& rings,
                                 std::vector<int> gpus) {
  std::sort(gpus.begin(), gpus.end());
  for (const Ring& ring : rings) {
    std::vector<int> sorted(ring.gpus.begin(), ring.gpus.end());
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, gpus);
  }
}

TEST(RingsTest, OneGpuHasNone) {
  EXPECT_THAT(Preset("dgx-a100", 1).RingsOver({3}), IsEmpty());
  EXPECT_THAT(Preset("dgx-a100", 1).RingsOver({}), IsEmpty());
}

TEST(RingsTest, TwoGpusHaveOne) {
  for (const char* name : {"p3-16xlarge", "dgx-a100"}) {
    const Network network = Preset(name, 2);
    for (const auto& [a, b] : {std::pair(0, 3), {0, 5}, {2, 12}}) {
      const std::vector<Ring> rings = network.RingsOver({b, a});
      ASSERT_EQ(rings.size(), 1u) << name;
      EXPECT_THAT(rings[0].gpus, ElementsAre(a, b));
    }
  }
}

TEST(RingsTest, HybridCubeMeshHasSixThatUseEveryLaneBothWays) {
  const Network network = Preset("p3-16xlarge", 2);
  const std::vector<Ring> rings = network.RingsOver(Range(8, 16));
  ASSERT_EQ(rings.size(), 6u);
  ExpectEachRingVisitsAllOnce(rings, Range(8, 16));
  const std::map<std::string, int> load = Load(network, rings);
  int lanes = 0;
  for (const Link& link : network.links()) {
    if (link.name.find("node1.") != 0 ||
        link.name.find("nvlink") == std::string::npos)
      continue;
    const int num_links = static_cast<int>(link.bytes_per_second / 25e9);
    EXPECT_EQ(load.at(link.name), num_links) << link.name;
    lanes += num_links;
  }
  EXPECT_EQ(lanes, 2 * 24);
}

// vTrain's all-reduce tables: 134.5, 85.3 and 22.6 GB/s with 8, 4 and 2 V100,
// which is nine tenths of 6, 4 and 1 rings of 25 GB/s.
TEST(RingsTest, HalfOfTheCubeHasFour) {
  const Network network = Preset("p3-16xlarge", 1);
  EXPECT_EQ(network.RingsOver({0, 1, 2, 3}).size(), 4u);
  EXPECT_EQ(network.RingsOver({4, 5, 6, 7}).size(), 4u);
}

TEST(RingsTest, MeshRingsNeverShareALane) {
  const Network network = Preset("dgx-1-v100", 1);
  for (int set = 0; set < 256; ++set) {
    std::vector<int> gpus;
    for (int gpu = 0; gpu < 8; ++gpu) {
      if (set >> gpu & 1) gpus.push_back(gpu);
    }
    const std::vector<Ring> rings = network.RingsOver(gpus);
    EXPECT_EQ(rings.empty(), gpus.size() < 2);
    ExpectEachRingVisitsAllOnce(rings, gpus);
    ExpectNoLaneShared(network, Load(network, rings));
  }
}

TEST(RingsTest, WithoutACycleThereIsOneInPcieOrder) {
  // 0-1, 1-5 and no other NVLink among them.
  const std::vector<Ring> rings = Preset("p3-16xlarge", 1).RingsOver({5, 1, 0});
  ASSERT_EQ(rings.size(), 1u);
  EXPECT_THAT(rings[0].gpus, ElementsAre(0, 1, 5));
}

TEST(RingsTest, NvSwitchHasOneInsideANode) {
  const std::vector<Ring> rings =
      Preset("dgx-h100", 1).RingsOver({7, 6, 5, 4, 3, 2, 1, 0});
  ASSERT_EQ(rings.size(), 1u);
  EXPECT_THAT(rings[0].gpus, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(RingsTest, OneSharedAdapterCarriesOneRing) {
  const Network network = Preset("p3-16xlarge", 3);
  const std::vector<Ring> rings = network.RingsOver(Range(0, 24));
  ASSERT_EQ(rings.size(), 1u);
  ExpectEachRingVisitsAllOnce(rings, Range(0, 24));
  const std::map<std::string, int> load = Load(network, rings);
  for (const char* nic : {"node0.nic0", "node1.nic0", "node2.nic0"}) {
    EXPECT_EQ(load.at(std::string(nic) + ".tx"), 1);
    EXPECT_EQ(load.at(std::string(nic) + ".rx"), 1);
  }
}

TEST(RingsTest, Dgx1UsesEachOfItsFourAdaptersOnceAndNvLinkInside) {
  const Network network = Preset("dgx-1-v100", 3);
  const std::vector<Ring> rings = network.RingsOver(Range(0, 24));
  ASSERT_EQ(rings.size(), 4u);
  ExpectEachRingVisitsAllOnce(rings, Range(0, 24));
  ExpectNoLaneShared(network, Load(network, rings));
  for (const auto& [name, load] : Load(network, rings)) {
    if (name.find(".nic") != std::string::npos) {
      EXPECT_EQ(load, 1) << name;
    }
    // No traffic between GPUs uses PCIe uplinks or sockets.
    EXPECT_EQ(name.find("socket"), std::string::npos) << name;
    EXPECT_EQ(name.find(".pcie0."), std::string::npos) << name;
  }
}

TEST(RingsTest, MeshWithAnAdapterPerGpuUsesEachOnce) {
  Cluster cluster = *LoadCluster("dgx-1-v100", 3);
  Node& node = *cluster.mutable_groups(0)->mutable_node();
  node.clear_nics();
  for (int gpu = 0; gpu < 8; ++gpu) {
    Nic& nic = *node.add_nics();
    nic.set_bytes_per_second(12.5e9);
    nic.add_gpus(gpu);
  }
  const Network network(cluster);
  const std::vector<Ring> rings = network.RingsOver(Range(0, 24));
  ASSERT_EQ(rings.size(), 8u);
  ExpectEachRingVisitsAllOnce(rings, Range(0, 24));
  for (const auto& [name, load] : Load(network, rings)) {
    if (name.find(".nic") != std::string::npos) {
      EXPECT_EQ(load, 1) << name;
    }
  }
}

TEST(RingsTest, RailsCarryOneRingEach) {
  const Network network = Preset("dgx-h100", 4);
  const std::vector<Ring> rings = network.RingsOver(Range(0, 32));
  ASSERT_EQ(rings.size(), 8u);
  ExpectEachRingVisitsAllOnce(rings, Range(0, 32));
  EXPECT_THAT(
      std::vector<int>(rings[2].gpus.begin(), rings[2].gpus.begin() + 9),
      ElementsAre(2, 3, 4, 5, 6, 7, 0, 1, 10));
  const std::map<std::string, int> load = Load(network, rings);
  for (const auto& [name, hops] : load) {
    if (name.find(".nic") != std::string::npos) {
      EXPECT_EQ(hops, 1) << name;
    }
  }
  EXPECT_EQ(load.count("node3.nic7.rx"), 1u);
}

TEST(RingsTest, OneMemberPerNodeIsOneRingOnItsRail) {
  const Network network = Preset("selene", 4);
  const std::vector<Ring> rings = network.RingsOver({21, 5, 13, 29});
  ASSERT_EQ(rings.size(), 1u);
  EXPECT_THAT(rings[0].gpus, ElementsAre(5, 13, 21, 29));
  for (const auto& [name, hops] : Load(network, rings)) {
    EXPECT_EQ(hops, 1) << name;
    EXPECT_EQ(name.find("nvlink"), std::string::npos) << name;
  }
}

TEST(RingsTest, MembersOnDifferentRailsStillGetOneRing) {
  const Network network = Preset("dgx-a100", 2);
  EXPECT_EQ(network.RingsOver({0, 9}).size(), 1u);
  EXPECT_EQ(network.RingsOver({0, 1, 10, 11}).size(), 1u);
  // Rail 1 is the only one they share.
  const std::vector<Ring> rings = network.RingsOver({0, 1, 9, 10});
  ASSERT_EQ(rings.size(), 1u);
  EXPECT_THAT(rings[0].gpus, ElementsAre(1, 0, 9, 10));
}

TEST(RingsTest, AnyGroupOnAnyPresetGetsSoundRings) {
  std::mt19937 random(7);
  for (const std::string& name : ListAssets("scenarios/cluster/presets")) {
    const Network network = Preset(name, 3);
    for (int round = 0; round < 60; ++round) {
      std::vector<int> gpus;
      for (int gpu = 0; gpu < network.num_gpus(); ++gpu) {
        if (random() % 3 == 0) gpus.push_back(gpu);
      }
      std::vector<int> shuffled = gpus;
      std::shuffle(shuffled.begin(), shuffled.end(), random);
      const std::vector<Ring> rings = network.RingsOver(shuffled);
      const std::vector<Ring> again = network.RingsOver(gpus);
      EXPECT_EQ(rings.empty(), gpus.size() < 2);
      ExpectEachRingVisitsAllOnce(rings, gpus);
      ASSERT_EQ(rings.size(), again.size());
      for (size_t i = 0; i < rings.size(); ++i)
        EXPECT_EQ(rings[i].gpus, again[i].gpus);
      for (const Ring& ring : rings) {
        // The members of a node are adjacent in the ring.
        std::set<int> left;
        for (size_t i = 0; i < ring.gpus.size(); ++i) {
          const int node = network.NodeOf(ring.gpus[i]);
          EXPECT_EQ(left.count(node), 0u);
          if (i + 1 < ring.gpus.size() &&
              network.NodeOf(ring.gpus[i + 1]) != node)
            left.insert(node);
        }
      }
    }
  }
}

TEST(RingsTest, GivenCostsHaveOne) {
  const std::vector<Ring> rings =
      Network::OfGivenCosts(4, 0.1).RingsOver({2, 0});
  ASSERT_EQ(rings.size(), 1u);
  EXPECT_THAT(rings[0].gpus, ElementsAre(0, 2));
}

TEST(RingsTest, TenThousandGpusGetTheirRings) {
  const Network network = Preset("dgx-h100", 1280);
  const std::vector<Ring> rings = network.RingsOver(Range(0, 10240));
  ASSERT_EQ(rings.size(), 8u);
  ExpectEachRingVisitsAllOnce(rings, Range(0, 10240));
}

}  // namespace weir::scenarios::rings_test
