// SPDX-License-Identifier: Apache-2.0
// Several jobs on one cluster: closed forms.
#include "sim/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/textproto.h"
#include "scenarios/cluster/network.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"

namespace weir::sim::jobs_test {

using scenarios::ResolvedScenario;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A pipeline over two GPUs. Two nodes of eight adapters are below a leaf
// switch, whose uplink is as fast as one adapter.
ResolvedScenario Job(const std::vector<uint32_t>& gpus,
                     const std::string& rest = "", int num_microbatches = 4,
                     const std::string& schedule = "1f1b") {
  Scenario scenario;
  EXPECT_TRUE(ParseTextProto("test",
                             "model: \"gpt2\" cluster: \"dgx-h100\" num_nodes: "
                             "4 cluster_changes { topology: FAT_TREE "
                             "nodes_per_leaf: 2 oversubscription: 16 } " +
                                 rest,
                             &scenario)
                  .ok());
  scenario.set_schedule(schedule);
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_data(1);
  parallelism.set_tensor(1);
  parallelism.set_pipeline(static_cast<uint32_t>(gpus.size()));
  for (const uint32_t gpu : gpus) parallelism.add_gpus(gpu);
  scenario.mutable_batch()->set_microbatch_size(8);
  scenario.mutable_batch()->set_global_batch_size(8 * num_microbatches);
  scenario.mutable_batch()->set_sequence_length(1024);
  auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  // Halving the rate of a link is exact only without the model of messages.
  resolved->cluster.set_plain_links(true);
  return *std::move(resolved);
}

double SecondsAlone(const ResolvedScenario& job) {
  const auto result = Simulate(job);
  EXPECT_TRUE(result.ok()) << result.status();
  return result->batch_seconds();
}

// GPUs of nodes 0 and 2, and of nodes 1 and 3.
const std::vector<uint32_t> kFirst = {0, 16}, kSecond = {8, 24};

// Each of two identical jobs gets half of the link that they share: their steps
// are those of one job over links of half the rate.
TEST(JobsTest, IdenticalJobsShareALink) {
  const std::string half =
      "slow { leaf: 0 speed: 0.5 } slow { leaf: 1 speed: 0.5 }";
  const double alone = SecondsAlone(Job(kFirst));
  const double halved = SecondsAlone(Job(kFirst, half));
  ASSERT_GT(halved, alone * 1.0001);
  const std::vector<ResolvedScenario> jobs = {Job(kFirst), Job(kSecond)};
  const auto outcomes = SimulateJobs(jobs);
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  for (const JobOutcome& outcome : *outcomes) {
    EXPECT_EQ(outcome.alone_seconds, alone);
    EXPECT_NEAR(outcome.step_seconds, halved, 1e-9 * halved);
    EXPECT_NEAR(outcome.result.batch_seconds(), halved, 1e-9 * halved);
    EXPECT_EQ(outcome.num_steps, 1);
  }
  EXPECT_THAT((*outcomes)[0].shares_with, ElementsAre(1));
}

// Without its latency, each transfer takes twice what it takes on the uplink
// alone. (Alone, PCIe is slower than the uplink.)
TEST(JobsTest, EachTransferTakesTwiceAsLongOnTheLink) {
  SimulateOptions options;
  options.keep_timeline = true;
  const std::vector<ResolvedScenario> jobs = {Job(kFirst), Job(kSecond)};
  const auto outcomes = SimulateJobs(jobs, options);
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  const double latency = TransferAlone(jobs[0], 0, 1, 1).latency_seconds;
  double uplink = 0;  // bytes per second
  const scenarios::Network network(jobs[0].cluster);
  for (const scenarios::Link& link : network.links()) {
    if (link.name == "leaf0.up") uplink = link.bytes_per_second;
  }
  ASSERT_GT(uplink, 0);
  // Activations of gpt2: two bytes for each of 768 values of a token.
  const double one = 8 * 1024 * 768 * 2 / uplink;
  for (const JobOutcome& outcome : *outcomes) {
    const auto& transfers = outcome.result.timeline().transfers();
    ASSERT_EQ(transfers.start_seconds_size(), 2 * 4);
    for (int i = 0; i < transfers.start_seconds_size(); ++i) {
      EXPECT_NEAR(
          transfers.end_seconds(i) - transfers.start_seconds(i) - latency,
          2 * one, 1e-9 * one);
    }
  }
}

TEST(JobsTest, JobsWithoutCommonLinksAreThoseAlone) {
  const std::vector<ResolvedScenario> jobs = {Job({0, 1}), Job({8, 9}, "", 7)};
  const auto outcomes = SimulateJobs(jobs);
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  for (size_t i = 0; i < jobs.size(); ++i) {
    const JobOutcome& outcome = (*outcomes)[i];
    EXPECT_EQ(outcome.step_seconds, SecondsAlone(jobs[i]));
    EXPECT_EQ(outcome.result.batch_seconds(), SecondsAlone(jobs[i]));
    EXPECT_THAT(outcome.shares_with, IsEmpty());
    EXPECT_EQ(outcome.slowdown(), 1);
  }
}

// The short job repeats its steps while the long one runs.
TEST(JobsTest, ShortJobsRepeat) {
  const std::vector<ResolvedScenario> jobs = {Job(kFirst, "", 16),
                                              Job(kSecond, "", 2)};
  const auto outcomes = SimulateJobs(jobs);
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  const JobOutcome& longer = (*outcomes)[0];
  const JobOutcome& shorter = (*outcomes)[1];
  EXPECT_GT(shorter.num_steps, 3);
  EXPECT_GE(longer.step_seconds, longer.alone_seconds);
  EXPECT_GE(shorter.step_seconds, shorter.alone_seconds);
  EXPECT_GE(shorter.step_seconds * (shorter.num_steps + 1),
            longer.step_seconds * (1 - 1e-9));
}

TEST(JobsTest, ErrorsNameTheJob) {
  const auto message = [](const std::vector<ResolvedScenario>& jobs) {
    return std::string(SimulateJobs(jobs).status().message());
  };
  EXPECT_THAT(message({Job(kFirst), Job({16, 24})}),
              HasSubstr("uses GPU 16, which job 1 (test) also uses"));
  EXPECT_THAT(message({Job(kFirst), Job(kSecond, "", 4, "pipedream-2bw")}),
              HasSubstr("has no flush"));
  EXPECT_THAT(
      message({Job(kFirst), Job(kSecond, "slow { leaf: 0 speed: 0.5 }")}),
      HasSubstr("has another cluster"));
}

}  // namespace weir::sim::jobs_test
