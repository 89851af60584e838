// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/fabric_profile.h"

#include <cmath>
#include <random>

#include "calibrate/fabric/fit_transfer.h"
#include "calibrate/profile/device_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/calibrate/fabric/fake_transport.h"

namespace weir::calibrate::fabric_profile_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kMax = 0x1p26;

Provenance TwoNodes() {
  Provenance provenance;
  provenance.set_gpu_name("Fake GPU");
  provenance.set_num_ranks(8);
  provenance.set_num_nodes(2);
  provenance.set_measured_on("2026-11-20");
  return provenance;
}

// Returns measurements of 2 nodes at one leaf, each with 4 GPUs at one switch.
NetworkMeasurements Measured(double noise) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> error(0, noise);
  const auto disturbed = [&](double seconds) {
    return noise > 0 ? seconds * std::exp(error(random)) : seconds;
  };
  NetworkMeasurements measured;
  for (int rank = 0; rank < 8; ++rank) {
    measured.positions.push_back({rank / 4, 0, {"nvswitch 0"}, ""});
  }
  for (const auto& [distance, pairs] : SamplePairs(measured.positions, 4, 1)) {
    for (const RankPair& pair : pairs) {
      PairTimes times;
      times.distance = distance;
      times.from = pair.from;
      times.to = pair.to;
      for (const double bytes : TransferSizes(16, kMax)) {
        const double seconds = TransferSeconds(FakePieces(distance), bytes);
        times.rows.push_back({bytes, disturbed(seconds),
                              disturbed(1.25 * seconds), disturbed(seconds)});
      }
      measured.pairs.push_back(times);
    }
  }
  const auto groups = PlanGroups(measured.positions, {});
  for (const GroupPlan& group : *groups) {
    for (const models::CollectiveKind kind :
         {models::CollectiveKind::kAllReduce,
          models::CollectiveKind::kAllGather,
          models::CollectiveKind::kReduceScatter,
          models::CollectiveKind::kAllToAll}) {
      CollectiveTimes times;
      times.kind = kind;
      times.group = group;
      CollectiveGroup ranks;
      ranks.num_ranks = static_cast<int>(group.ranks.size());
      ranks.ranks_per_node = group.ranks_per_node;
      ranks.intra_bytes_per_second = 450e9;
      ranks.inter_bytes_per_second = kFakeAdapter;
      ranks.nvls = true;
      for (const double bytes : CollectiveSizes(kMax)) {
        times.rows.push_back(
            {bytes,
             disturbed(CheapestCollective(FakeCollectives(), kind, bytes, ranks)
                           .Seconds())});
      }
      measured.collectives.push_back(times);
    }
  }
  return measured;
}

TEST(ProfileOfTest, LinkClassesAreRecovered) {
  const auto start = LoadDeviceProfile("h200-sxm");
  ASSERT_TRUE(start.ok());
  const auto profile = ProfileOf(*start, Measured(0), TwoNodes());
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->links_size(), 2);
  const LinkClass& leaf = profile->links(1);
  EXPECT_EQ(leaf.distance(), LinkClass::SAME_LEAF);
  EXPECT_EQ(leaf.num_pairs(), 4u);
  EXPECT_NEAR(leaf.bidirectional_slowdown(), 1.25, 1e-9);
  EXPECT_NEAR(leaf.pair_spread(), 1, 1e-9);
  ASSERT_EQ(leaf.pieces_size(), 2);
  const auto truth = FakePieces(LinkClass::SAME_LEAF);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(leaf.pieces(i).from_bytes(), truth[i].from_bytes());
    EXPECT_NEAR(leaf.pieces(i).bytes_per_second() / truth[i].bytes_per_second(),
                1, 1e-9);
    EXPECT_NEAR(leaf.pieces(i).latency_seconds() / truth[i].latency_seconds(),
                1, 1e-9);
  }
  EXPECT_EQ(leaf.figure().kind(), Figure::FITTED);
  EXPECT_THAT(leaf.figure().source(),
              HasSubstr("4 pairs of GPUs (same leaf), measured on 2 nodes, 8 "
                        "ranks, Fake GPU, 2026-11-20"));
  EXPECT_TRUE(ValidateDeviceProfile("profile", *profile).ok())
      << ValidateDeviceProfile("profile", *profile);
}

TEST(ProfileOfTest, CollectivesBetweenNodesAreExplained) {
  const auto start = LoadDeviceProfile("h200-sxm");
  const auto profile = ProfileOf(*start, Measured(0.01), TwoNodes());
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_TRUE(profile->coverage().between_nodes());
  EXPECT_EQ(profile->coverage().collective_ranks().low(), 2);
  EXPECT_EQ(profile->coverage().collective_ranks().high(), 8);
  EXPECT_EQ(profile->coverage().collective_bytes().high(), kMax);
  // The fitted model has the form of the true one. What remains is noise and,
  // between nodes, the adapters' rate, which is known only from pairs.
  EXPECT_LT(profile->collective_residual().value(), 0.05);
  EXPECT_EQ(profile->collectives().link_efficiency().kind(), Figure::FITTED);
  EXPECT_EQ(profile->collectives().net_efficiency().kind(), Figure::FITTED);
  EXPECT_THAT(profile->collectives().net_efficiency().source(),
              HasSubstr("measured on 2 nodes"));
  EXPECT_TRUE(profile->provenance().remarks().empty());
}

TEST(ProfileOfTest, LinksOfOtherDistancesStay) {
  auto start = LoadDeviceProfile("h200-sxm");
  start->add_links()->set_distance(LinkClass::SAME_GPU);
  start->mutable_links(0)->set_num_pairs(77);
  const auto profile = ProfileOf(*start, Measured(0), TwoNodes());
  ASSERT_TRUE(profile.ok());
  ASSERT_EQ(profile->links_size(), 3);
  EXPECT_EQ(profile->links(0).num_pairs(), 77u);
}

TEST(ProfileOfTest, KernelsOfTheStartStayThoseOfItsGpu) {
  DeviceProfile start = *LoadDeviceProfile("h200-sxm");
  Provenance* of_kernels = start.mutable_provenance();
  of_kernels->set_gpu_name("NVIDIA H100");
  of_kernels->set_gpu_hash("kernels");
  of_kernels->set_command("run");
  of_kernels->mutable_software()->set_cublas("13.1.0");
  of_kernels->mutable_software()->set_nccl("2.18.1");
  of_kernels->add_remarks("3 of 9 workloads drifted");
  Provenance network = TwoNodes();
  network.set_gpu_name("NVIDIA H200");
  network.set_command("network");
  network.mutable_software()->set_nccl("2.28.9");
  network.set_num_ranks(8);
  const Provenance both = ProfileOf(start, Measured(0), network)->provenance();
  EXPECT_EQ(both.gpu_name(), "NVIDIA H100");
  EXPECT_EQ(both.gpu_hash(), "kernels");
  EXPECT_EQ(both.software().cublas(), "13.1.0");
  EXPECT_EQ(both.software().nccl(), "2.28.9");
  EXPECT_EQ(both.num_ranks(), 8);
  EXPECT_EQ(both.command(), "run; network");
  ASSERT_EQ(both.remarks_size(), 2);
  EXPECT_EQ(both.remarks(0), "3 of 9 workloads drifted");
  EXPECT_EQ(both.remarks(1),
            "communication was measured on NVIDIA H200, everything else on "
            "NVIDIA H100");
}

TEST(ProfileOfTest, AClassWithoutSizesIsARemark) {
  NetworkMeasurements measured = Measured(0);
  for (PairTimes& pair : measured.pairs) {
    if (pair.distance == LinkClass::SAME_LEAF) pair.rows.resize(1);
  }
  const auto profile =
      ProfileOf(*LoadDeviceProfile("h200-sxm"), measured, TwoNodes());
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->links_size(), 1);
  EXPECT_THAT(profile->provenance().remarks(),
              ElementsAre(HasSubstr("same leaf: "),
                          HasSubstr("no pair between nodes was measured")));
  EXPECT_FALSE(profile->coverage().between_nodes());
}

TEST(CommunicatorMemoryTest, StepsBecomeTheModelsFigures) {
  CollectiveModel model = LoadDeviceProfile("h200-sxm")->collectives();
  model.clear_nvls_efficiency();
  const CommunicatorMemory before = model.memory();
  const double pair =
      before.ll_buffer_bytes().value() + before.simple_buffer_bytes().value();
  const double all = pair + before.ll128_buffer_bytes().value();
  NetworkMeasurements measured;
  GroupMemory memory;
  memory.group.ranks = {0, 1};
  memory.group.ranks_per_node = 2;
  memory.distance = LinkClass::SAME_SWITCH;
  memory.first = true;
  memory.collective = {90e6, 10 * all};
  memory.first_pair_bytes = 8 * pair;
  measured.memory.push_back(memory);
  memory.first = false;
  memory.collective = {0, 10 * all};
  measured.memory.push_back(memory);
  SetCommunicatorMemory(measured, "a test", &model);
  EXPECT_NEAR(model.memory().num_channels().value(), 10, 1e-9);
  EXPECT_NEAR(model.memory().num_pair_channels().value(), 8, 1e-9);
  EXPECT_NEAR(model.memory().once_bytes().value(), 90e6, 1e-3);
  EXPECT_EQ(model.memory().once_bytes().kind(), Figure::MEASURED);
  // The model gives the measured bytes for one such communicator.
  CommunicatorCounts counts;
  counts.num_in_node = 1;
  counts.num_pair_peers = 1;
  EXPECT_NEAR(CommunicatorBytes(model, counts) / (90e6 + 10 * all + 8 * pair),
              1, 1e-9);
}

TEST(ReportTest, ShowsEveryClassAndCollective) {
  const NetworkMeasurements measured = Measured(0);
  const auto profile =
      ProfileOf(*LoadDeviceProfile("h200-sxm"), measured, TwoNodes());
  const std::string text = ReportNetwork(measured, &*profile);
  EXPECT_THAT(text, HasSubstr("same leaf: 4 pairs"));
  EXPECT_THAT(text, HasSubstr("25 GB/s, latency 16.0 us, 2 pieces"));
  EXPECT_THAT(text, HasSubstr("all_to_all: 8 ranks, 2 nodes"));
  EXPECT_THAT(ReportNetwork(measured, nullptr), HasSubstr("         -"));
}

}  // namespace weir::calibrate::fabric_profile_test
