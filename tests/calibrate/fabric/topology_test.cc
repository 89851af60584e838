// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/topology.h"

#include <cstdlib>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "calibrate/fabric/fabric_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir::calibrate::topology_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Presence At(const std::string& node, const std::string& address,
            const std::string& pattern, const std::string& on_switch = "") {
  Presence presence;
  presence.set_node(node);
  presence.set_topology_address(address);
  presence.set_topology_pattern(pattern);
  if (!on_switch.empty()) presence.add_switch_addresses(on_switch);
  return presence;
}

// Returns `num_nodes` nodes of `per_node` ranks, with `per_leaf` nodes per
// leaf.
std::vector<RankPlace> Cluster(int num_nodes, int per_node, int per_leaf) {
  std::vector<RankPlace> places;
  for (int node = 0; node < num_nodes; ++node) {
    for (int i = 0; i < per_node; ++i) {
      places.push_back({node, node / per_leaf, {"nvswitch 0"}, ""});
    }
  }
  return places;
}

TEST(PositionsOfTest, SlurmsAddressSaysTheLeaf) {
  const auto places =
      PositionsOf({At("n1", "spine.leaf1.n1", "switch.switch.node"),
                   At("n2", "spine.leaf1.n2", "switch.switch.node"),
                   At("n3.a.b", "spine.leaf2.n3.a.b", "switch.switch.node"),
                   At("n4", "n4", "node")},
                  nullptr);
  ASSERT_TRUE(places.ok());
  EXPECT_EQ(DistanceOf((*places)[0], (*places)[1]), LinkClass::SAME_LEAF);
  EXPECT_EQ(DistanceOf((*places)[0], (*places)[2]), LinkClass::ACROSS_SPINES);
  EXPECT_EQ((*places)[3].leaf, -1);
  EXPECT_EQ(DistanceOf((*places)[3], (*places)[0]), LinkClass::ACROSS_SPINES);
}

TEST(PositionsOfTest, SwitchesTellGpusOfANodeApart) {
  const auto places = PositionsOf(
      {At("n1", "", "", "nvswitch 0"), At("n1", "", "", "nvswitch 0"),
       At("n1", "", "", "nvswitch 1"), At("n2", "", "", "nvswitch 0")},
      nullptr);
  ASSERT_TRUE(places.ok());
  EXPECT_EQ(DistanceOf((*places)[0], (*places)[1]), LinkClass::SAME_SWITCH);
  EXPECT_EQ(DistanceOf((*places)[0], (*places)[2]), LinkClass::SAME_NODE);
  // Switches of different nodes have the same name but are different.
  EXPECT_EQ(DistanceOf((*places)[0], (*places)[3]), LinkClass::ACROSS_SPINES);
}

TEST(PositionsOfTest, AFileOfLeavesIsNeededForAllNodes) {
  NetworkTopology topology;
  topology.add_leaves()->add_nodes("n1");
  topology.mutable_leaves(0)->set_name("leaf1");
  const auto places = PositionsOf(
      {At("n1", "", ""), At("n2", "", ""), At("n2", "", "")}, &topology);
  EXPECT_EQ(places.status().message(),
            "topology: n2 is on no leaf, expected exactly one");
}

TEST(LoadTopologyTest, RefusesANodeAtTwoLeaves) {
  const std::string path = std::string(::testing::TempDir()) + "/topology";
  ASSERT_TRUE(WriteFile(path,
                        "leaves { name: 'a' nodes: 'n1' nodes: 'n2' }\n"
                        "leaves { name: 'b' nodes: 'n2' }\n")
                  .ok());
  EXPECT_THAT(std::string(LoadTopology(path).status().message()),
              HasSubstr("leaves[1].nodes has n2, which is on a already"));
  ASSERT_TRUE(WriteFile(path, "").ok());
  EXPECT_THAT(std::string(LoadTopology(path).status().message()),
              HasSubstr("leaves is empty"));
}

TEST(SamplePairsTest, AThousandRanksAreMeasuredByAFewPairs) {
  const std::vector<RankPlace> places = Cluster(128, 8, 16);
  const auto classes = SamplePairs(places, 8, 1);
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_EQ(classes[0].first, LinkClass::SAME_SWITCH);
  EXPECT_EQ(classes[2].first, LinkClass::ACROSS_SPINES);
  for (const auto& [distance, pairs] : classes) {
    EXPECT_EQ(pairs.size(), 8u);
    std::set<int> ranks, nodes, leaves;
    for (const RankPair& pair : pairs) {
      EXPECT_EQ(DistanceOf(places[pair.from], places[pair.to]), distance);
      for (const int rank : {pair.from, pair.to}) {
        EXPECT_TRUE(ranks.insert(rank).second) << rank << " is used twice";
        nodes.insert(places[rank].node);
        leaves.insert(places[rank].leaf);
      }
    }
    EXPECT_EQ(leaves.size(), 8u) << NameOf(distance);
    EXPECT_GE(nodes.size(), 8u);
  }
}

TEST(SamplePairsTest, ASmallMachineGivesAllItsPairs) {
  const auto classes = SamplePairs(Cluster(2, 2, 1), 8, 1);
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].second.size(), 2u);
  EXPECT_EQ(classes[1].second.size(), 4u);
}

TEST(SamplePairsTest, TheSeedDecides) {
  const std::vector<RankPlace> places = Cluster(16, 8, 4);
  const auto text = [&](uint64_t seed) {
    std::string all;
    for (const auto& [distance, pairs] : SamplePairs(places, 4, seed)) {
      for (const RankPair& pair : pairs) {
        absl::StrAppend(&all, pair.from, "-", pair.to, " ");
      }
    }
    return all;
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

TEST(TopologyPlanTest, GroupsFillANodeThenWholeNodes) {
  const auto groups = PlanGroups(Cluster(3, 4, 2), {});
  ASSERT_TRUE(groups.ok());
  std::vector<std::string> texts;
  for (const GroupPlan& group : *groups) texts.push_back(group.text);
  EXPECT_THAT(texts, ElementsAre("2 ranks, 1 node", "2 ranks, 2 nodes",
                                 "4 ranks, 1 node", "8 ranks, 2 nodes",
                                 "12 ranks, 3 nodes"));
  EXPECT_THAT((*groups)[3].ranks, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT((*groups)[1].ranks, ElementsAre(0, 4));
}

TEST(TopologyPlanTest, OneRankHasNoGroups) {
  EXPECT_TRUE(PlanGroups(Cluster(1, 1, 1), {})->empty());
}

TEST(TopologyPlanTest, RefusesGroupsThatTheRanksCannotMake) {
  EXPECT_THAT(
      std::string(PlanGroups(Cluster(2, 4, 2), {1, 6}).status().message()),
      AllOf(HasSubstr("--groups: has 1, expected 2 or more"),
            HasSubstr("--groups: has 6, expected ranks of one node or whole "
                      "nodes of 2 with 4 ranks each")));
}

TEST(TopologyPlanTest, SizesLieOnBothSidesOfEveryKnot) {
  const std::vector<double> sizes = TransferSizes(24, 0x1p28);
  const std::vector<double> knots = TransferKnots(24, 0x1p28);
  EXPECT_THAT(knots, ::testing::Contains(24 * 16384.0));
  EXPECT_THAT(knots, ::testing::Contains(8 * 131072.0));
  for (const double knot : knots) {
    EXPECT_THAT(sizes, ::testing::Contains(knot));
    const auto at = std::lower_bound(sizes.begin(), sizes.end(), knot);
    ASSERT_NE(at, sizes.begin());
    EXPECT_LE(knot, *(at - 1) * 1.6);
    ASSERT_NE(at + 1, sizes.end());
    EXPECT_GE(knot * 1.6, *(at + 1));
  }
  EXPECT_EQ(sizes.front(), 1024);
  EXPECT_EQ(sizes.back(), 0x1p28);
}

}  // namespace weir::calibrate::topology_test
