// SPDX-License-Identifier: Apache-2.0
// Several jobs on one cluster: closed forms.
#include "sim/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
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

// The same without flush, and of batches that overlap. Their passes hide
// transfers over faster links.
TEST(JobsTest, IdenticalJobsThatContinueShareALink) {
  const std::string slow =
      "slow { leaf: 0 speed: 0.02 } slow { leaf: 1 speed: 0.02 }";
  const std::string half =
      "slow { leaf: 0 speed: 0.01 } slow { leaf: 1 speed: 0.01 }";
  const std::string overlap = "training { post_validation: true } ";
  for (const auto& [schedule, training] :
       {std::pair<std::string, std::string>("pipedream-2bw", ""),
        {"pipedream", ""},
        {"zb-h1", overlap}}) {
    const auto job = [&, &name = schedule, &options = training](
                         const std::vector<uint32_t>& gpus,
                         const std::string& rest) {
      return Job(gpus, options + rest, 4, name);
    };
    const double alone = SecondsAlone(job(kFirst, slow));
    const double halved = SecondsAlone(job(kFirst, half));
    ASSERT_GT(halved, alone * 1.1) << schedule;
    const std::vector<ResolvedScenario> jobs = {job(kFirst, slow),
                                                job(kSecond, slow)};
    const auto outcomes = SimulateJobs(jobs);
    ASSERT_TRUE(outcomes.ok()) << outcomes.status();
    for (const JobOutcome& outcome : *outcomes) {
      EXPECT_EQ(outcome.alone_seconds, alone) << schedule;
      EXPECT_NEAR(outcome.step_seconds, halved, 1e-9 * halved) << schedule;
      EXPECT_NEAR(outcome.result.batch_seconds(), halved, 1e-9 * halved)
          << schedule;
    }
  }
}

// A job without flush runs further batches while a longer one runs, and a job
// with a flush repeats its steps while one without flush does.
TEST(JobsTest, JobsWithAndWithoutFlushRunUntilTheLongestEnds) {
  for (const int num_microbatches : {2, 64}) {
    const std::vector<ResolvedScenario> jobs = {
        Job(kFirst, "", num_microbatches),
        Job(kSecond, "", 3, "pipedream-2bw")};
    const auto outcomes = SimulateJobs(jobs);
    ASSERT_TRUE(outcomes.ok()) << outcomes.status();
    const JobOutcome& flushed = (*outcomes)[0];
    const JobOutcome& continued = (*outcomes)[1];
    EXPECT_EQ(continued.alone_seconds, SecondsAlone(jobs[1]));
    for (const JobOutcome* outcome : {&flushed, &continued}) {
      EXPECT_GE(outcome->step_seconds, outcome->alone_seconds * (1 - 1e-9));
      // Two jobs cannot slow each other down by more than sharing all links.
      EXPECT_LT(outcome->slowdown(), 2);
    }
    if (num_microbatches == 64) {
      EXPECT_EQ(flushed.num_steps, 1);
      // The second half of the batches that end before the long step does.
      EXPECT_GT(continued.num_steps * continued.step_seconds,
                flushed.step_seconds / 3);
    } else {
      EXPECT_GT(flushed.num_steps, 1);
    }
  }
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
  const std::vector<ResolvedScenario> jobs = {
      Job({0, 1}), Job({8, 9}, "", 7), Job({16, 17}, "", 4, "pipedream-2bw")};
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
  EXPECT_THAT(message({Job(kFirst),
                       Job(kSecond, "num_batches: 5", 4, "pipedream-2bw")}),
              HasSubstr("test: has 5 batches, expected several jobs to run as "
                        "many as they need"));
  EXPECT_THAT(
      message({Job(kFirst), Job(kSecond, "slow { leaf: 0 speed: 0.5 }")}),
      HasSubstr("has another cluster"));
}

}  // namespace weir::sim::jobs_test
