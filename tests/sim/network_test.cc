// SPDX-License-Identifier: Apache-2.0
// Simulates flows on links: equal to the oracle without contention and never
// faster with contention. Collectives take the time of their rings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "calibrate/profile/device_profile.h"
#include "scenarios/cluster/cluster.h"
#include "schedules/registry.h"
#include "sim/simulate.h"
#include "tests/oracle.h"
#include "tests/sim/measured.h"

namespace weir::sim::network_test {

// Evaluates a measured scenario with the oracle. Times are those measured, and
// a transfer takes its latency plus its bytes over the bandwidth.
oracle::Timing Expect(const Measured& measured, double bytes_per_second,
                      double latency_seconds) {
  const auto schedule = schedules::GenerateSchedule(
      measured.schedule,
      {measured.num_ranks, measured.num_microbatches, 1, measured.num_batches});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  oracle::Costs costs;
  costs.forward_seconds = measured.forward_seconds;
  costs.backward_seconds = measured.backward_seconds;
  costs.latency_seconds = latency_seconds;
  costs.transfer_seconds = [&](const schedules::Action& producer) {
    const int boundary = producer.op == schedules::Op::kForward
                             ? producer.stage
                             : producer.stage - 1;
    return measured.activation_bytes[boundary] / bytes_per_second;
  };
  if (schedule->forward_only) costs.queued_microbatches = 2;
  const auto timing = oracle::Evaluate(*schedule, costs);
  EXPECT_TRUE(timing.ok()) << timing.status();
  return *timing;
}

Measured RandomCase(std::mt19937* random, absl::string_view schedule,
                    double max_bytes) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(*random);
  };
  Measured measured;
  measured.schedule = std::string(schedule);
  measured.num_ranks = 2 + (*random)() % 7;
  measured.num_microbatches = measured.num_ranks + (*random)() % 10;
  if (schedule == "pipedream-2bw" || schedule == "pipedream") {
    measured.num_batches = 2;
  }
  for (int s = 0; s < measured.num_ranks; ++s) {
    measured.forward_seconds.push_back(uniform(1e-3, 3e-3));
    measured.backward_seconds.push_back(uniform(1e-3, 6e-3));
    measured.activation_bytes.push_back(std::round(uniform(1e5, max_bytes)));
  }
  return measured;
}

constexpr const char* kStraight[] = {"gpipe", "1f1b", "pipedream",
                                     "pipedream-2bw"};

// A message between partitions takes the time of its link regardless of the
// profile's NCCL model, because the replay emulates its links.
TEST(NetworkTest, AMessageBetweenPartsOfOneGpuTakesItsLinkAlone) {
  Measured measured;
  measured.num_ranks = 2;
  measured.num_microbatches = 1;
  measured.forward_seconds = measured.backward_seconds = {1e-3, 1e-3};
  measured.activation_bytes = {64e6, 0};
  scenarios::ResolvedScenario resolved =
      Resolve(measured, *scenarios::LoadCluster("one-gpu"));
  const DeviceProfile h200 = *calibrate::LoadDeviceProfile("h200-sxm");
  *resolved.device.mutable_collectives() = h200.collectives();
  resolved.device.mutable_collective_slowdown()->set_value(1.5);
  for (int from = 0; from < 8; ++from) {
    for (int to = 0; to < 8; ++to) {
      if (from == to) continue;
      resolved.placement.gpus = {from, to};
      const auto result = Simulate(resolved);
      ASSERT_TRUE(result.ok()) << result.status();
      ASSERT_NEAR(result->makespan_seconds(), 4e-3 + 2 * (5e-6 + 64e6 / 50e9),
                  1e-12)
          << from << " to " << to;
    }
  }
  const auto message = [&] {
    resolved.cluster.set_plain_links(false);
    return Simulate(resolved)->makespan_seconds();
  };
  EXPECT_GT(std::abs(message() - 4e-3 - 2 * (5e-6 + 64e6 / 50e9)), 1e-5);
}

TEST(NetworkTest, LinksOfTheirOwnEqualTheOracle) {
  std::mt19937 random(3);
  for (const char* schedule : kStraight) {
    for (int i = 0; i < 300; ++i) {
      // 20 MB take 0.8 ms at 25 GB/s and so arrive before the next forward
      // ends, and each direction of each pair of ranks has its own link.
      const Measured measured = RandomCase(&random, schedule, 20e6);
      const auto result = Simulate(
          Resolve(measured, ChainOfLinks(measured.num_ranks, 25e9, 3e-6)));
      ASSERT_TRUE(result.ok()) << result.status();
      const oracle::Timing expected = Expect(measured, 25e9, 3e-6);
      ASSERT_NEAR(result->makespan_seconds(), expected.makespan_seconds,
                  1e-9 * expected.makespan_seconds)
          << schedule << " " << i;
      for (int s = 0; s < measured.num_ranks; ++s) {
        ASSERT_NEAR(result->ranks(s).busy_seconds(), expected.busy_seconds[s],
                    1e-9 * expected.makespan_seconds);
        ASSERT_NEAR(result->ranks(s).idle_seconds(), expected.idle_seconds[s],
                    1e-9 * expected.makespan_seconds);
      }
    }
  }
}

// A stage that is faster than later ones is blocked by full queues. The
// pipeline takes no longer, but each pass must start at its exact time.
TEST(NetworkTest, InferenceQueuesEqualTheOracle) {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    Measured measured = RandomCase(&random, "edgepipe", 20e6);
    measured.num_batches = 1 + i % 3;
    SimulateOptions options;
    options.keep_timeline = true;
    const auto result = Simulate(
        Resolve(measured, ChainOfLinks(measured.num_ranks, 25e9, 3e-6)),
        options);
    ASSERT_TRUE(result.ok()) << result.status();
    const oracle::Timing expected = Expect(measured, 25e9, 3e-6);
    const double tolerance = 1e-9 * expected.makespan_seconds;
    const auto& actions = result->timeline().actions();
    int event = 0;
    for (int s = 0; s < measured.num_ranks; ++s) {
      for (size_t k = 0; k < expected.start_seconds[s].size(); ++k, ++event) {
        ASSERT_EQ(actions.stage(event), s);
        ASSERT_NEAR(actions.start_seconds(event), expected.start_seconds[s][k],
                    tolerance)
            << i << ", stage " << s << ", pass " << k;
        ASSERT_NEAR(actions.end_seconds(event), expected.end_seconds[s][k],
                    tolerance);
      }
    }
    ASSERT_EQ(event, actions.op_size());
    ASSERT_NEAR(result->makespan_seconds(), expected.makespan_seconds,
                tolerance);
  }
}

// The first stage and the third share an adapter, with full queues between
// them. At the end of a run only the third sends, which is not part of the
// steady state.
TEST(NetworkTest, InferenceThatSharesAnAdapterIsSteady) {
  Measured measured;
  measured.schedule = "edgepipe";
  measured.num_ranks = 4;
  measured.num_batches = 0;
  measured.forward_seconds = {1e-3, 1e-3, 1e-3, 2e-3};
  measured.backward_seconds = {0, 0, 0, 0};
  measured.activation_bytes = {16e6, 16e6, 16e6, 0};
  Cluster cluster;
  NodeGroup* group = cluster.add_groups();
  group->set_count(2);
  Node* node = group->mutable_node();
  node->set_num_gpus(2);
  node->mutable_nv_switch()->set_bytes_per_second(1e12);
  node->add_nics()->set_bytes_per_second(10e9);
  for (double last_seconds : {1e-3, 2e-3, 3.3e-3, 5e-3}) {
    measured.forward_seconds[3] = last_seconds;
    for (int num_microbatches : {1, 4}) {
      measured.num_microbatches = num_microbatches;
      scenarios::ResolvedScenario resolved = Resolve(measured, cluster);
      resolved.placement.gpus = {0, 2, 1, 3};
      const auto result = Simulate(resolved);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_TRUE(result->steady_state());
      // Two transfers of 16 MB per microbatch at 10 GB/s, unless the last stage
      // is slower.
      EXPECT_NEAR(result->batch_seconds(),
                  num_microbatches * std::max(3.2e-3, last_seconds), 1e-9);
    }
  }
}

TEST(NetworkTest, TheOracleIsALowerBoundUnderContention) {
  std::mt19937 random(4);
  int contended = 0;
  for (const char* schedule : kStraight) {
    for (int i = 0; i < 100; ++i) {
      const Measured measured = RandomCase(&random, schedule, 60e6);
      // One NIC of 10 GB/s per GPU for both directions of the pipeline.
      const auto result = Simulate(
          Resolve(measured, SharedNics(measured.num_ranks, 10e9, 5e-6)));
      ASSERT_TRUE(result.ok()) << result.status();
      const oracle::Timing bound = Expect(measured, 10e9, 5e-6);
      ASSERT_GE(result->makespan_seconds(),
                bound.makespan_seconds * (1 - 1e-12));
      contended += result->makespan_seconds() > bound.makespan_seconds * 1.001;
    }
  }
  EXPECT_GT(contended, 50);
}

TEST(NetworkTest, GradientAllReduceTakesWhatTheRingTakes) {
  for (int replicas : {2, 3, 8}) {
    Measured measured;
    measured.schedule = "gpipe";
    measured.num_ranks = 1;
    measured.num_microbatches = 1;
    measured.num_replicas = replicas;
    measured.forward_seconds = {1e-3};
    measured.backward_seconds = {2e-3};
    measured.activation_bytes = {0};
    measured.parameter_bytes = {4e9};
    const auto result =
        Simulate(Resolve(measured, OneSwitch(replicas, 100e9, 2e-6)));
    ASSERT_TRUE(result.ok()) << result.status();
    const double steps = 2.0 * (replicas - 1);
    const double reduce = steps / replicas * 4e9 / 100e9 + steps * 2e-6;
    const RankResult& rank = result->ranks(0);
    EXPECT_NEAR(rank.exposed_communication_seconds(), reduce, 1e-9 * reduce);
    EXPECT_NEAR(rank.idle_seconds(), reduce, 1e-9 * reduce);
  }
}

TEST(NetworkTest, OverlappedReductionRunsDuringTheNextBatch) {
  Measured measured;
  measured.schedule = "pipedream-2bw";
  measured.num_ranks = 2;
  measured.num_microbatches = 8;
  measured.num_batches = 0;
  measured.num_replicas = 2;
  measured.forward_seconds = {1e-3, 1e-3};
  measured.backward_seconds = {2e-3, 2e-3};
  measured.activation_bytes = {1e3, 0};
  measured.parameter_bytes = {4e8, 4e8};
  const Cluster cluster = OneSwitch(4, 100e9, 0);
  const auto blocking = Simulate(Resolve(measured, cluster));
  measured.overlapped_reduction = true;
  const auto overlapped = Simulate(Resolve(measured, cluster));
  ASSERT_TRUE(blocking.ok() && overlapped.ok());
  EXPECT_TRUE(blocking->steady_state());
  EXPECT_TRUE(overlapped->steady_state());
  // The all-reduce takes 4 ms of the batch's 24 ms, or none.
  EXPECT_GT(blocking->batch_seconds(), overlapped->batch_seconds() + 3.9e-3);
  EXPECT_GT(overlapped->peak_memory_bytes(), blocking->peak_memory_bytes());
}

// Transfers of a GPU pair run one after another at full link rate: the first
// microbatch does not wait for the last.
TEST(NetworkTest, TransfersOfOnePairQueueUp) {
  Measured measured;
  measured.schedule = "gpipe";
  measured.num_ranks = 2;
  measured.num_microbatches = 3;
  measured.forward_seconds = {1, 1};
  measured.backward_seconds = {1, 1};
  measured.activation_bytes = {10, 0};
  SimulateOptions options;
  options.keep_timeline = true;
  // 10 bytes at 5 bytes/s take 2 s, twice as long as a forward.
  const auto result =
      Simulate(Resolve(measured, ChainOfLinks(2, 5, 0)), options);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto& transfers = result->timeline().transfers();
  std::vector<double> forward_ends;
  for (int i = 0; i < transfers.kind_size(); ++i) {
    if (transfers.kind(i) == Timeline::Transfers::ACTIVATION) {
      forward_ends.push_back(transfers.end_seconds(i));
    }
  }
  ASSERT_EQ(forward_ends.size(), 3u);
  EXPECT_NEAR(forward_ends[0], 3, 1e-9);
  EXPECT_NEAR(forward_ends[1], 5, 1e-9);
  EXPECT_NEAR(forward_ends[2], 7, 1e-9);
}

TEST(NetworkTest, SameInputSameBytesInAnyOrder) {
  std::mt19937 random(5);
  const Measured first = RandomCase(&random, "pipedream-2bw", 60e6);
  const Measured second = RandomCase(&random, "gpipe", 60e6);
  const auto run = [](const Measured& measured) {
    SimulateOptions options;
    options.keep_timeline = true;
    return Simulate(Resolve(measured, SharedNics(measured.num_ranks, 1e9, 0)),
                    options)
        ->SerializeAsString();
  };
  const std::string alone = run(first);
  run(second);
  EXPECT_EQ(run(first), alone);
}

}  // namespace weir::sim::network_test
