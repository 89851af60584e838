// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/symmetry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/network.h"
#include "sim/engine/engine.h"
#include "sim/graph/symmetries.h"
#include "tests/sim/by_costs.h"

namespace weir::sim::symmetry_test {

// Two ranks of `data` x `tensor` GPUs each.
scenarios::Placement TwoRanks(int tensor, int data) {
  return *scenarios::PlaceInOrder("test", "tp-dp-pp", tensor, data, 2,
                                  2 * tensor * data);
}

Traffic Training() {
  Traffic traffic;
  traffic.sends = {{0, 1}, {1, 0}};
  traffic.copies = {{0}, {1}};
  return traffic;
}

// Nodes of `num_gpus` GPUs on a switch, with one adapter per node.
Cluster Shared(int num_nodes, int num_gpus) {
  Cluster cluster;
  NodeGroup* group = cluster.add_groups();
  group->set_count(num_nodes);
  Node* node = group->mutable_node();
  node->set_num_gpus(num_gpus);
  node->mutable_nv_switch()->set_bytes_per_second(100);
  node->add_nics()->set_bytes_per_second(10);
  cluster.mutable_fabric()->set_latency_seconds(1e-3);
  return cluster;
}

TEST(SymmetryTest, OneGpuOfARankStandsForAllThatDoTheSame) {
  const scenarios::Network network(Shared(4, 4));
  const auto symmetry = Symmetry::Find(network, TwoRanks(4, 2), Training());
  ASSERT_TRUE(symmetry.has_value());
  EXPECT_EQ(symmetry->representatives().gpus, (std::vector<int>{0, 8}));
  EXPECT_EQ(
      symmetry->RepresentativeOf(symmetry->full_placement().index(1, 1, 3)), 1);
}

TEST(SymmetryTest, RepresentativesMapToIndicesAmongAllGpus) {
  const scenarios::Network network(Shared(4, 3));
  const scenarios::Placement place = TwoRanks(3, 2);
  const auto symmetry = Symmetry::Find(network, place, Training());
  ASSERT_TRUE(symmetry.has_value());
  const Representatives some(*symmetry);
  EXPECT_TRUE(some.reduced());
  EXPECT_EQ(some.placement().gpus, symmetry->representatives().gpus);
  EXPECT_EQ(some.full_placement().gpus, place.gpus);
  for (int gpu = 0; gpu < some.placement().num_gpus(); ++gpu) {
    EXPECT_EQ(some.IndexOf(gpu), symmetry->IndexOf(gpu));
  }
  for (int r = 0; r < some.placement().data; ++r) {
    EXPECT_EQ(some.ReplicaOf(r), symmetry->replicas()[r]);
  }
  EXPECT_EQ(some.IndexOfCopies({1}), 1);
  EXPECT_EQ(&some.LinksOf(network), &symmetry->links());
}

TEST(SymmetryTest, EveryGpuRepresentsItselfWithoutReduction) {
  const scenarios::Network network(Shared(4, 3));
  const scenarios::Placement place = TwoRanks(3, 2);
  const Representatives all(place);
  EXPECT_FALSE(all.reduced());
  EXPECT_EQ(&all.placement(), &place);
  EXPECT_EQ(&all.full_placement(), &place);
  EXPECT_EQ(all.IndexOf(7), 7);
  EXPECT_EQ(all.ReplicaOf(1), 1);
  EXPECT_EQ(all.TensorRankOf(2), 2);
  EXPECT_EQ(&all.LinksOf(network), &network.links());
}

// The adapter of 4 GPUs carries four transfers and one hop of each of four
// rings. A GPU can use a quarter of it; its own links are faster.
TEST(SymmetryTest, ALinkOfManyCountsOncePerFlowThatCrossesIt) {
  const scenarios::Network network(Shared(4, 4));
  const auto symmetry = Symmetry::Find(network, TwoRanks(4, 2), Training());
  ASSERT_TRUE(symmetry.has_value());
  const int32_t send =
      symmetry->ColorOf({InstanceRole::Kind::kSend, 0, 1, 0, 0});
  ASSERT_GE(send, 0);
  double slowest = 1e9;
  for (int32_t link : symmetry->color(send).route.links) {
    slowest = std::min(slowest, symmetry->links()[link].bytes_per_second);
  }
  EXPECT_EQ(slowest, 10.0 / 4);
}

TEST(SymmetryTest, ASlowAdapterKeepsItsReplicaApart) {
  Cluster cluster = Shared(3, 1);
  NodeGroup* slow = cluster.add_groups();
  *slow = cluster.groups(0);
  slow->set_count(1);
  slow->mutable_node()->mutable_nics(0)->set_bytes_per_second(5);
  // Replica 1 sends from node 1 to node 3, which is the slow one.
  const scenarios::Placement place = TwoRanks(1, 2);
  Traffic traffic = Training();
  EXPECT_FALSE(
      Symmetry::Find(scenarios::Network(cluster), place, traffic).has_value());
  slow->mutable_node()->mutable_nics(0)->set_bytes_per_second(10);
  EXPECT_TRUE(
      Symmetry::Find(scenarios::Network(cluster), place, traffic).has_value());
}

// One of four replicas is slower. The others are still reduced to one, provided
// there are no reductions, in which each replica has a different position in
// the ring.
TEST(SymmetryTest, EqualReplicasStayTogetherOverlappingAnUnlikeOne) {
  Cluster cluster = Shared(7, 1);
  NodeGroup* slow = cluster.add_groups();
  *slow = cluster.groups(0);
  slow->set_count(1);
  slow->mutable_node()->mutable_nics(0)->set_bytes_per_second(5);
  Traffic traffic = Training();
  traffic.copies.clear();
  const auto symmetry =
      Symmetry::Find(scenarios::Network(cluster), TwoRanks(1, 4), traffic);
  ASSERT_TRUE(symmetry.has_value());
  EXPECT_EQ(symmetry->replicas(), (std::vector<int32_t>{0, 3}));
}

TEST(SymmetryTest, APlacementThatMixesNodesIsNotReduced) {
  const scenarios::Network network(Shared(4, 2));
  scenarios::Placement place = TwoRanks(1, 4);
  ASSERT_TRUE(Symmetry::Find(network, place, Training()).has_value());
  // Rank 0 has one whole node and half of two others.
  place.gpus = {0, 1, 1, 4, 2, 5, 6, 3};
  place.gpus = {0, 4, 1, 5, 2, 6, 7, 3};
  const auto symmetry = Symmetry::Find(network, place, Training());
  EXPECT_TRUE(!symmetry.has_value() ||
              symmetry->representatives().num_gpus() > 2);
}

// The replicas cross leaf switches at different ranks.
TEST(SymmetryTest, ReplicasThatCrossLeafSwitchesElsewhereAreApart) {
  Cluster cluster = Shared(6, 1);
  cluster.mutable_fabric()->set_nodes_per_leaf(3);
  cluster.mutable_fabric()->set_hop_latency_seconds(1e-3);
  Traffic traffic;
  traffic.sends = {{0, 1}, {1, 2}};
  const scenarios::Placement place =
      *scenarios::PlaceInOrder("test", "tp-dp-pp", 1, 2, 3, 6);
  EXPECT_FALSE(
      Symmetry::Find(scenarios::Network(cluster), place, traffic).has_value());
}

// No other traffic uses the links of a tensor group, so its all-reduces only
// lengthen passes. They add neither tasks nor errors for a group of any size.
TEST(SymmetryTest, CollectivesOfAReducedTensorGroupAddNoTasks) {
  const schedules::Schedule schedule =
      ByHand({{0, 1}}, 2,
             {Actions({"0F0", "0F1", "0B0", "0B1"}),
              Actions({"1F0", "1B0", "1F1", "1B1"})});
  const schedules::Semantics semantics =
      schedules::InterpretSchedule(schedule).value();
  Costs costs = OneStage(1, 2);
  costs.stages[0].communication.output_bytes = 20e3;
  costs.stages[0].communication.forward_collectives = {
      {.bytes = 40e3, .count = 2}};
  costs.stages[0].communication.backward_collectives = {
      {.bytes = 60e3, .count = 1}};
  costs.stages.resize(2, costs.stages[0]);
  for (const int tensor : {2, 4, 8}) {
    SCOPED_TRACE(tensor);
    const scenarios::Network network(Shared(2, tensor));
    const scenarios::Placement place =
        *scenarios::PlaceInOrder("test", "tp-dp-pp", tensor, 1, 2, 2 * tensor);
    const auto symmetry = Symmetry::Find(
        network, place,
        WholeTraffic(TrafficOf(schedule), place, schedule, costs));
    ASSERT_TRUE(symmetry.has_value());
    const PipelineInputs all = {schedule, semantics, costs,
                                network,  place,     Communication()};
    const PipelineInputs folded = {
        schedule,       semantics, costs, network, Representatives(*symmetry),
        Communication()};
    const PipelineGraph graph = BuildPipelineGraph(folded);
    // 8 passes and 4 transfers.
    EXPECT_EQ(graph.tasks.num_tasks(), 12);
    const auto end = [](const PipelineGraph& one,
                        std::span<const scenarios::Link> links) {
      const auto recording = RunTaskGraph(one.tasks, links);
      EXPECT_TRUE(recording.ok()) << recording.status();
      const auto ends = recording->end_seconds();
      return *std::max_element(ends.begin(), ends.end());
    };
    const double expected = end(BuildPipelineGraph(all), network.links());
    EXPECT_NEAR(end(graph, symmetry->links()), expected, 1e-9 * expected);
  }
}

TEST(SymmetryTest, NobodyStandsForAnotherWhereEveryGpuIsAlone) {
  EXPECT_FALSE(Symmetry::Find(scenarios::Network(Shared(2, 1)), TwoRanks(1, 1),
                              Training())
                   .has_value());
}

}  // namespace weir::sim::symmetry_test
