// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pricing/collective_seconds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/assets.h"
#include "calibrate/profile/collective_model.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate::collective_seconds_test {

constexpr double kUs = 1e-6;
constexpr models::CollectiveKind kKinds[] = {
    models::CollectiveKind::kAllReduce, models::CollectiveKind::kAllGather,
    models::CollectiveKind::kReduceScatter, models::CollectiveKind::kAllToAll,
    models::CollectiveKind::kSendReceive};

void ExpectRelative(double found, double expected) {
  EXPECT_NEAR(found / expected, 1, 1e-9) << found << " for " << expected;
}

// Returns one node of A100s. NCCL assumes rings of 240 GB/s for it.
CollectiveGroup OneNode(int num_ranks) {
  CollectiveGroup group;
  group.num_ranks = group.ranks_per_node = num_ranks;
  group.intra_bytes_per_second = 300e9;
  return group;
}

CollectiveGroup Nodes(int num_nodes, int per_node) {
  CollectiveGroup group = OneNode(num_nodes * per_node);
  group.ranks_per_node = per_node;
  group.inter_bytes_per_second = 25e9;
  return group;
}

CollectiveCost AllReduce(const CollectiveModel& model, double bytes,
                         const CollectiveGroup& group) {
  return CheapestCollective(model, models::CollectiveKind::kAllReduce, bytes,
                            group);
}

TEST(CollectiveSecondsTest, RingsOfOneNodeAreNcclsTable) {
  const CollectiveModel nccl = NcclDefaults(NcclGeneration::kAmpere);
  // LL: 6.6 + 14 * 0.6 us, at most 87.7 GB/s on the wire.
  const CollectiveCost small = AllReduce(nccl, 65536, OneNode(8));
  EXPECT_EQ(small.protocol, CollectiveProtocol::kLl);
  ExpectRelative(small.Seconds(), 15 * kUs + 65536 * 1.75 / 87.7e9);
  // LL128: 14 + 14 * 1.9 us, 0.92 of 240 GB/s.
  const CollectiveCost middle = AllReduce(nccl, 8 << 20, OneNode(8));
  EXPECT_EQ(middle.protocol, CollectiveProtocol::kLl128);
  ExpectRelative(middle.Seconds(), 40.6 * kUs + (8 << 20) * 1.75 / 220.8e9);
  // Simple: 8.4 + 14 * 3.4 us, 240 GB/s.
  const CollectiveCost large = AllReduce(nccl, 1 << 30, OneNode(8));
  EXPECT_EQ(large.protocol, CollectiveProtocol::kSimple);
  EXPECT_EQ(large.algorithm, CollectiveAlgorithm::kRing);
  ExpectRelative(large.Seconds(), 56 * kUs + (1 << 30) * 1.75 / 240e9);
}

// The links are so fast that the protocols' own limits apply, from NCCL's
// tables for Volta, Ampere, Hopper and Blackwell.
TEST(CollectiveSecondsTest, ProtocolsHaveTheLimitsOfTheirGeneration) {
  struct Limits {
    NcclGeneration generation;
    double ll, ll128, efficiency;
  };
  for (const Limits& limits :
       {Limits{NcclGeneration::kVolta, 39e9, 12 * 20e9, 0.8},
        Limits{NcclGeneration::kAmpere, 87.7e9, 24 * 20e9, 0.8},
        Limits{NcclGeneration::kHopper, 141e9, 16 * 36.7e9, 0.824},
        Limits{NcclGeneration::kBlackwell, 282e9, 16 * 73.4e9, 0.802}}) {
    SCOPED_TRACE(static_cast<int>(limits.generation));
    const CollectiveModel nccl = NcclDefaults(limits.generation);
    CollectiveGroup group = OneNode(8);
    group.intra_bytes_per_second = 1e13;
    const CollectiveCost small = AllReduce(nccl, 4096, group);
    EXPECT_EQ(small.protocol, CollectiveProtocol::kLl);
    ExpectRelative(small.intra_bytes_per_second, limits.ll);
    CollectiveModel without_ll = nccl;
    without_ll.mutable_ll()->mutable_base_seconds()->set_value(1);
    const CollectiveCost middle = AllReduce(without_ll, 4096, group);
    EXPECT_EQ(middle.protocol, CollectiveProtocol::kLl128);
    ExpectRelative(middle.intra_bytes_per_second, limits.ll128);
    const CollectiveCost large = AllReduce(nccl, 1e12, group);
    EXPECT_EQ(large.protocol, CollectiveProtocol::kSimple);
    ExpectRelative(large.intra_bytes_per_second, limits.efficiency * 1e13);
  }
}

TEST(CollectiveSecondsTest, GathersAndScattersPassOnce) {
  const CollectiveModel nccl = NcclDefaults(NcclGeneration::kAmpere);
  for (const auto kind : {models::CollectiveKind::kAllGather,
                          models::CollectiveKind::kReduceScatter}) {
    const CollectiveCost cost =
        CheapestCollective(nccl, kind, 1 << 30, OneNode(8));
    ExpectRelative(cost.Seconds(),
                   (8.4 + 7 * 3.4) * kUs + (1 << 30) * 0.875 / 240e9);
  }
}

TEST(CollectiveSecondsTest, LargeRingsComeToTheirBusBandwidth) {
  CollectiveModel model = NcclDefaults(NcclGeneration::kAmpere);
  for (const int n : {2, 3, 4, 8}) {
    const CollectiveCost cost = AllReduce(model, 1e15, OneNode(n));
    EXPECT_NEAR(cost.Seconds() / (2.0 * (n - 1) / n * 1e15 / 240e9), 1, 1e-6);
  }
}

TEST(CollectiveSecondsTest, HierarchicalRingsUseAllAdaptersOfTheNode) {
  const CollectiveModel nccl = NcclDefaults(NcclGeneration::kAmpere);
  const CollectiveCost cost = CheapestCollective(
      nccl, models::CollectiveKind::kAllGather, 1e12, Nodes(4, 8));
  EXPECT_EQ(cost.algorithm, CollectiveAlgorithm::kRing);
  // 31 of 32 parts leave each node, one eighth through each adapter.
  ExpectRelative(cost.inter_bytes, 1e12 * 31 / 32 / 8);
  ExpectRelative(cost.inter_bytes_per_second, 0.92 * 25e9);
  ExpectRelative(cost.intra_bytes, 1e12 * 31 / 32);
  // 3 steps over the network, 28 within nodes. Simple posts three times.
  ExpectRelative(cost.latency_seconds, (8.4 + 28 * 3.4 + 3 * 14) * kUs);
  ExpectRelative(cost.LinkSeconds(), cost.inter_bytes / (0.92 * 25e9));
}

// In NCCL's model, a step takes at least as long as posting to the network.
TEST(CollectiveSecondsTest, PostingToTheNetworkLimitsEveryStep) {
  CollectiveModel model = NcclDefaults(NcclGeneration::kAmpere);
  model.mutable_net_overhead_seconds()->set_value(2 * kUs);
  const auto latency = [&](double bytes, const CollectiveGroup& group) {
    return CheapestCollective(model, models::CollectiveKind::kAllGather, bytes,
                              group)
        .latency_seconds;
  };
  // Simple posts three times per step, LL once.
  ExpectRelative(latency(1e12, Nodes(4, 8)), (8.4 + 28 * 6 + 3 * 14) * kUs);
  ExpectRelative(latency(8, Nodes(4, 8)), (6.6 + 28 * 2 + 3 * 2.7) * kUs);
  // Within a node nothing is posted.
  ExpectRelative(latency(1e12, OneNode(8)), (8.4 + 7 * 3.4) * kUs);
}

TEST(CollectiveSecondsTest, SmallMessagesUseLlOnlyWithinANode) {
  const CollectiveModel nccl = NcclDefaults(NcclGeneration::kAmpere);
  const CollectiveCost within = CheapestCollective(
      nccl, models::CollectiveKind::kSendReceive, 8, OneNode(2));
  EXPECT_EQ(within.protocol, CollectiveProtocol::kLl);
  ExpectRelative(within.latency_seconds, 7.2 * kUs);
  const CollectiveCost across = CheapestCollective(
      nccl, models::CollectiveKind::kSendReceive, 8, Nodes(2, 1));
  EXPECT_EQ(across.protocol, CollectiveProtocol::kSimple);
  ExpectRelative(across.latency_seconds, (11.8 + 14) * kUs);
}

TEST(CollectiveSecondsTest, SharedAdaptersGiveEachGroupItsPart) {
  const CollectiveModel nccl = NcclDefaults(NcclGeneration::kAmpere);
  CollectiveGroup group = Nodes(4, 1);
  const double alone = AllReduce(nccl, 1e12, group).LinkSeconds();
  group.num_sharing = 4;
  ExpectRelative(AllReduce(nccl, 1e12, group).LinkSeconds(), 4 * alone);
}

TEST(CollectiveSecondsTest, SmallAllReducesOfManyNodesGoThroughTrees) {
  const CollectiveModel nccl = NcclDefaults(NcclGeneration::kAmpere);
  const CollectiveCost cost = AllReduce(nccl, 8, Nodes(64, 8));
  EXPECT_EQ(cost.algorithm, CollectiveAlgorithm::kTree);
  EXPECT_EQ(cost.protocol, CollectiveProtocol::kLl);
  ExpectRelative(cost.latency_seconds, (6.6 + 2 * (7 * 0.6 + 6 * 5)) * kUs);
  // A ring of 512 would take 1022 steps.
  EXPECT_LT(cost.Seconds(), 100 * kUs);
}

TEST(CollectiveSecondsTest, TwoNodesOfATreeExchangeTheBytesOnce) {
  const CollectiveModel nccl = NcclDefaults(NcclGeneration::kAmpere);
  const CollectiveCost two = AllReduce(nccl, 1 << 20, Nodes(2, 8));
  const CollectiveCost four = AllReduce(nccl, 1 << 20, Nodes(4, 8));
  ASSERT_EQ(two.algorithm, CollectiveAlgorithm::kTree);
  ASSERT_EQ(four.algorithm, CollectiveAlgorithm::kTree);
  ExpectRelative(two.inter_bytes, (1 << 20) / 8.0);
  ExpectRelative(four.inter_bytes, 2 * (1 << 20) / 8.0);
}

TEST(CollectiveSecondsTest, SwitchesReduceWhereTheyCan) {
  const CollectiveModel nccl = NcclDefaults(NcclGeneration::kHopper);
  CollectiveGroup group = OneNode(8);
  group.intra_bytes_per_second = 450e9;
  EXPECT_EQ(AllReduce(nccl, 1 << 30, group).algorithm,
            CollectiveAlgorithm::kRing);
  group.nvls = true;
  const CollectiveCost cost = AllReduce(nccl, 1 << 30, group);
  EXPECT_EQ(cost.algorithm, CollectiveAlgorithm::kNvls);
  ExpectRelative(cost.Seconds(),
                 25 * kUs + (1 << 30) * 1.125 / (0.85 * 0.824 * 450e9));
  group.num_ranks = group.ranks_per_node = 2;
  EXPECT_EQ(AllReduce(nccl, 1 << 30, group).algorithm,
            CollectiveAlgorithm::kRing);
}

TEST(CollectiveSecondsTest, PcieKnowsNoLl128) {
  const CollectiveModel nccl = NcclDefaults(NcclGeneration::kVolta);
  CollectiveGroup group = OneNode(4);
  group.pci = true;
  group.intra_bytes_per_second = 15e9;
  for (int64_t bytes = 1; bytes < 10'000'000'000; bytes *= 2) {
    EXPECT_NE(AllReduce(nccl, static_cast<double>(bytes), group).protocol,
              CollectiveProtocol::kLl128);
  }
  ExpectRelative(AllReduce(nccl, 1 << 30, group).Seconds(),
                 (8.4 + 6 * 5.7) * kUs + (1 << 30) * 1.5 / 12e9);
}

TEST(CollectiveSecondsTest, AllToAllSendsBlocksWithinAndOutOfTheNode) {
  const CollectiveModel nccl = NcclDefaults(NcclGeneration::kAmpere);
  const CollectiveCost cost = CheapestCollective(
      nccl, models::CollectiveKind::kAllToAll, 32e9, Nodes(4, 8));
  ExpectRelative(cost.intra_bytes, 7e9);
  ExpectRelative(cost.inter_bytes, 24e9);
  const CollectiveCost message = CheapestCollective(
      nccl, models::CollectiveKind::kSendReceive, 1e9, Nodes(2, 1));
  EXPECT_EQ(message.intra_bytes, 0);
  ExpectRelative(message.inter_bytes, 1e9);
}

TEST(CollectiveSecondsTest, ChunksAndTheOwnBlockComeOnTop) {
  CollectiveModel model = NcclDefaults(NcclGeneration::kAmpere);
  const double plain = AllReduce(model, 1 << 30, OneNode(8)).Seconds();
  const double links = (1 << 30) * 1.75 / 240e9;
  model.mutable_chunk_seconds()->set_value(2 * kUs);
  model.mutable_local_bytes_per_second()->set_value(1e12);
  // Disables LL128, which has no chunks and would otherwise be chosen.
  model.mutable_ll128()->mutable_base_seconds()->set_value(1);
  const CollectiveCost cost = AllReduce(model, 1 << 30, OneNode(8));
  ExpectRelative(cost.Seconds(), plain + 2 * std::sqrt(2 * kUs * links) +
                                     (1 << 30) / 8.0 / 1e12);
  ExpectRelative(cost.LinkSeconds(), links);
}

TEST(CollectiveSecondsTest, OneRankCostsNothing) {
  const CollectiveModel nccl = NcclDefaults(NcclGeneration::kAmpere);
  for (const models::CollectiveKind kind : kKinds) {
    EXPECT_EQ(CheapestCollective(nccl, kind, 1e9, OneNode(1)).Seconds(), 0);
  }
}

TEST(CollectiveSecondsTest, MoreBytesNeverTakeLess) {
  for (const std::string& name : ListAssets("calibrate/profile/presets")) {
    const auto profile = LoadDeviceProfile(name);
    ASSERT_TRUE(profile.ok()) << profile.status();
    ASSERT_TRUE(profile->has_collectives()) << name;
    for (const int num_nodes : {1, 2, 64}) {
      CollectiveGroup group = Nodes(num_nodes, 8);
      group.nvls = true;
      for (const models::CollectiveKind kind : kKinds) {
        double before = 0;
        // Uses steps of 1 %, so that no change of protocol is missed.
        for (int step = 0; step < 2546; ++step) {
          const double bytes = std::pow(1.01, step);  // at most 1e11
          const double seconds =
              CheapestCollective(profile->collectives(), kind, bytes, group)
                  .Seconds();
          ASSERT_GE(seconds, before)
              << name << " " << Name(kind) << " " << bytes << " bytes";
          before = seconds;
        }
      }
    }
  }
}

TEST(CommunicatorBytesTest, CommunicatorsOfANodeTakeWhatWasObserved) {
  const CollectiveModel nccl = NcclDefaults(NcclGeneration::kHopper);
  constexpr double kMiB = 1 << 20;
  EXPECT_EQ(CommunicatorBytes(nccl, {}), 0);
  EXPECT_DOUBLE_EQ(CommunicatorBytes(nccl, {.num_in_node = 1}), 342 * kMiB);
  EXPECT_DOUBLE_EQ(CommunicatorBytes(nccl, {.num_in_node = 1, .num_nvls = 1}),
                   392 * kMiB);
}

TEST(CommunicatorBytesTest, PeersOfAPipelineHaveBuffersOfTheirOwn) {
  const CollectiveModel nccl = NcclDefaults(NcclGeneration::kAmpere);
  const double none = CommunicatorBytes(nccl, {.num_in_node = 1});
  const double two =
      CommunicatorBytes(nccl, {.num_in_node = 1, .num_pair_peers = 2});
  EXPECT_DOUBLE_EQ(two - none, 2 * 16 * 4.5 * (1 << 20));
}

}  // namespace weir::calibrate::collective_seconds_test
