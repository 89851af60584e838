// SPDX-License-Identifier: Apache-2.0
#include "results/trace/select_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "results/trace/trace.h"
#include "results/validate.h"
#include "tests/results/sample.h"

namespace weir::results::select_gpus_test {

using testing::HasSubstr;

TEST(SelectGpusTest, KeepsRanksAndTransfersBetweenThem) {
  const Result all = PipelineTimeline(4, 8);
  const auto some = SelectGpus(all, {.replica = {}, .ranks = {1, 2}});
  ASSERT_TRUE(some.ok()) << some.status();
  ASSERT_EQ(some->ranks_size(), 2);
  EXPECT_EQ(some->ranks(0).rank(), 1u);
  EXPECT_TRUE(ValidateTimeline("some", *some).ok());
  // Every second rank has split backwards; each rank has a step.
  EXPECT_EQ(some->timeline().actions().gpu_size(), 8 * 3 + 1 + 8 * 2 + 1);
  // Activations and gradients between ranks 1 and 2.
  EXPECT_EQ(some->timeline().transfers().kind_size(), 2 * 8);
  EXPECT_LT(some->timeline().memory().gpu_size(),
            all.timeline().memory().gpu_size());
  EXPECT_TRUE(PerfettoTrace(*some).ok());
}

TEST(SelectGpusTest, KeepsCopiesOfTheirGpus) {
  Result all = PipelineTimeline(4, 2);
  HostCopies* copies = all.mutable_host_copies();
  for (const uint32_t gpu : {1u, 3u, 2u}) {
    copies->add_gpu(gpu);
    copies->add_op(Timeline::Actions::RELOAD);
    copies->add_stage(static_cast<int32_t>(gpu));
    copies->add_microbatch(1);
    copies->add_block(5);
    copies->add_bytes(100 + gpu);
    copies->add_start_seconds(2);
    copies->add_end_seconds(3);
  }
  const auto some = SelectGpus(all, {.replica = {}, .ranks = {1, 2}});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_TRUE(ValidateTimeline("some", *some).ok());
  EXPECT_THAT(some->host_copies().gpu(), testing::ElementsAre(0, 1));
  EXPECT_THAT(some->host_copies().bytes(), testing::ElementsAre(101, 102));
  EXPECT_THAT(ChromeTrace(*some)->c_str(), HasSubstr("1R1 block 5"));

  copies->set_gpu(0, 4);
  EXPECT_THAT(std::string(ValidateTimeline("all", all).message()),
              HasSubstr("host_copies.gpu[0] is 4, expected 0 to 3"));
  EXPECT_FALSE(SelectGpus(all, {.replica = {}, .ranks = {1}}).ok());
  copies->add_block(1);
  EXPECT_FALSE(PerfettoTrace(all).ok());
}

TEST(SelectGpusTest, AReplicaIsOneTensorRank) {
  Result result = SampleResult();  // 2 replicas of 4 ranks of 2 GPUs
  const auto some = SelectGpus(result, {.replica = 1, .ranks = {}});
  ASSERT_TRUE(some.ok()) << some.status();
  ASSERT_EQ(some->ranks_size(), 4);
  for (const RankResult& gpu : some->ranks()) {
    EXPECT_EQ(gpu.replica(), 1u);
    EXPECT_EQ(gpu.tensor_rank(), 0u);
  }
}

TEST(SelectGpusTest, RefusesWhatDoesNotExist) {
  const auto status =
      SelectGpus(SampleResult(), {.replica = 2, .ranks = {4}}).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("--replica is 2, expected 0 to 1"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("--ranks has 4, expected 0 to 3"));
}

}  // namespace weir::results::select_gpus_test
