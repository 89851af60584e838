// SPDX-License-Identifier: Apache-2.0
// Checks the communicator's calls of NCCL, with a fake NCCL.
#include "calibrate/fabric/nccl/nccl_communicator.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/calibrate/fabric/nccl/fake_nccl.h"

namespace weir::calibrate::nccl_communicator_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kTimeout = 0.05;

class NcclCommunicatorTest : public ::testing::Test {
 protected:
  void SetUp() override { Fake() = FakeNccl(); }
};

std::unique_ptr<NcclCommunicator> Joined(MessageBuffers* buffers, int num_ranks,
                                         int rank) {
  auto joined = NcclCommunicator::Join(std::string(NCCL_UNIQUE_ID_BYTES, 'x'),
                                       num_ranks, rank, kTimeout, buffers);
  EXPECT_TRUE(joined.ok()) << joined.status();
  Fake().calls.clear();
  return joined.ok() ? *std::move(joined) : nullptr;
}

// Returns the recorded calls except allocations.
std::vector<std::string> Calls() {
  std::vector<std::string> calls = Fake().calls;
  calls.erase(std::remove_if(calls.begin(), calls.end(),
                             [](const std::string& call) {
                               return absl::StartsWith(call, "allocate");
                             }),
              calls.end());
  return calls;
}

TEST_F(NcclCommunicatorTest, JoinsWithoutBlockingAndLeavesInOrder) {
  MessageBuffers buffers;
  Fake().num_polls_in_progress = 3;
  auto joined = Joined(&buffers, 4, 2);
  EXPECT_EQ(Fake().blocking, 0);
  joined.reset();
  EXPECT_THAT(Fake().calls, ElementsAre("finalize", "destroy"));
}

TEST_F(NcclCommunicatorTest, WhoNeverJoinsIsGivenUp) {
  MessageBuffers buffers;
  Fake().is_stuck = true;
  const auto joined = NcclCommunicator::Join(
      std::string(NCCL_UNIQUE_ID_BYTES, 'x'), 2, 0, kTimeout, &buffers);
  EXPECT_EQ(joined.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(joined.status().message()),
              HasSubstr("joining a communicator of 2 ranks"));
  EXPECT_THAT(Fake().calls, ElementsAre("join 0 of 2", "abort"));
}

TEST_F(NcclCommunicatorTest, AnIdOfAnotherLengthIsRefused) {
  MessageBuffers buffers;
  EXPECT_FALSE(NcclCommunicator::Join("short", 2, 0, kTimeout, &buffers).ok());
}

TEST_F(NcclCommunicatorTest, OneWayIsASendAndAReceive) {
  MessageBuffers buffers;
  auto sender = Joined(&buffers, 2, 0);
  const auto seconds = sender->TimePair(PairMode::kOneWay, 0, 1, 1024, 2);
  ASSERT_TRUE(seconds.ok());
  EXPECT_NEAR(*seconds, 0.5e-3, 1e-9);
  EXPECT_THAT(Calls(), ElementsAre("group {", "send 1024 to 1", "}", "record",
                                   "group {", "send 1024 to 1", "}", "group {",
                                   "send 1024 to 1", "}", "record"));
  auto receiver = Joined(&buffers, 2, 1);
  ASSERT_TRUE(receiver->TimePair(PairMode::kOneWay, 0, 1, 1024, 1).ok());
  EXPECT_THAT(Calls(), Contains("receive 1024 from 0"));
  EXPECT_THAT(Calls(), Not(Contains("send 1024 to 0")));
}

TEST_F(NcclCommunicatorTest, BothWaysAreOneGroup) {
  MessageBuffers buffers;
  auto joined = Joined(&buffers, 2, 1);
  ASSERT_TRUE(joined->TimePair(PairMode::kBothWays, 0, 1, 8, 0).ok());
  EXPECT_THAT(Calls(), ElementsAre("group {", "send 8 to 0", "receive 8 from 0",
                                   "}", "record", "record"));
}

TEST_F(NcclCommunicatorTest, PingPongTakesTurns) {
  MessageBuffers buffers;
  auto first = Joined(&buffers, 2, 0);
  ASSERT_TRUE(first->TimePair(PairMode::kPingPong, 0, 1, 8, 0).ok());
  EXPECT_THAT(Calls(),
              ElementsAre("group {", "send 8 to 1", "}", "group {",
                          "receive 8 from 1", "}", "record", "record"));
  auto second = Joined(&buffers, 2, 1);
  ASSERT_TRUE(second->TimePair(PairMode::kPingPong, 0, 1, 8, 0).ok());
  EXPECT_THAT(Calls(),
              ElementsAre("group {", "receive 8 from 0", "}", "group {",
                          "send 8 to 0", "}", "record", "record"));
}

TEST_F(NcclCommunicatorTest, MessagesToItselfMeetInOneGroup) {
  MessageBuffers buffers;
  auto joined = Joined(&buffers, 1, 0);
  for (const PairMode mode : {PairMode::kOneWay, PairMode::kBothWays}) {
    Fake().calls.clear();
    ASSERT_TRUE(joined->TimePair(mode, 0, 0, 8, 0).ok());
    EXPECT_THAT(Calls(),
                ElementsAre("group {", "send 8 to 0", "receive 8 from 0", "}",
                            "record", "record"));
  }
  Fake().calls.clear();
  ASSERT_TRUE(joined->TimePair(PairMode::kPingPong, 0, 0, 8, 0).ok());
  EXPECT_EQ(std::count(Fake().calls.begin(), Fake().calls.end(), "group {"), 2);
}

TEST_F(NcclCommunicatorTest, OthersOfTheCommunicatorReturnAtOnce) {
  MessageBuffers buffers;
  auto joined = Joined(&buffers, 4, 3);
  EXPECT_EQ(*joined->TimePair(PairMode::kOneWay, 0, 1, 8, 5), 0);
  EXPECT_TRUE(Fake().calls.empty());
}

TEST_F(NcclCommunicatorTest, CollectivesCountBytesAsTheModelDoes) {
  MessageBuffers buffers;
  auto joined = Joined(&buffers, 4, 0);
  // 8192 bytes are 4096 numbers of two bytes, 1024 from each rank.
  for (const auto& [kind, call] :
       std::vector<std::pair<models::CollectiveKind, std::string>>{
           {models::CollectiveKind::kAllReduce, "all_reduce 4096"},
           {models::CollectiveKind::kAllGather, "all_gather 1024"},
           {models::CollectiveKind::kReduceScatter, "reduce_scatter 1024"},
           {models::CollectiveKind::kAllToAll, "send 1024 to 3"}}) {
    Fake().calls.clear();
    ASSERT_TRUE(joined->TimeCollective(kind, 8192, 1).ok());
    EXPECT_EQ(std::count(Fake().calls.begin(), Fake().calls.end(), call), 2);
  }
  ASSERT_TRUE(
      joined->TimeCollective(models::CollectiveKind::kAllGather, 1, 1).ok());
  EXPECT_THAT(Fake().calls, Contains("all_gather 1"));
}

TEST_F(NcclCommunicatorTest, AStuckTransferIsAbortedAndStaysGivenUp) {
  MessageBuffers buffers;
  auto joined = Joined(&buffers, 2, 0);
  Fake().is_stuck = true;
  const auto begin = std::chrono::steady_clock::now();
  const auto stuck = joined->TimePair(PairMode::kOneWay, 0, 1, 8, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(stuck.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Fake().calls.back(), "abort");
  const auto again = joined->TimePair(PairMode::kOneWay, 0, 1, 8, 1);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAborted);
  joined.reset();
  EXPECT_EQ(std::count(Fake().calls.begin(), Fake().calls.end(), "abort"), 1);
  EXPECT_THAT(Fake().calls, Not(Contains("destroy")));
}

TEST_F(NcclCommunicatorTest, AnErrorOfAnotherRankEndsTheWait) {
  MessageBuffers buffers;
  auto joined = Joined(&buffers, 2, 0);
  Fake().num_events_pending = 1 << 30;
  Fake().async_error = ncclRemoteError;
  const auto failed =
      joined->TimeCollective(models::CollectiveKind::kAllReduce, 4096, 1);
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(failed.status().message()),
              HasSubstr("all_reduce of 4096 bytes: NCCL: a remote error (the "
                        "cable)"));
  EXPECT_EQ(Fake().calls.back(), "abort");
}

TEST(MessageBuffersTest, GrowByWhatTheDeviceGivesAtATime) {
  MessageBuffers buffers;
  ASSERT_TRUE(buffers.Reserve(10).ok());
  EXPECT_EQ(buffers.num_bytes(), 2 * (2 << 20));
  ASSERT_TRUE(buffers.Reserve(2 << 20).ok());
  EXPECT_EQ(buffers.num_bytes(), 2 * (2 << 20));
  ASSERT_TRUE(buffers.Reserve((2 << 20) + 1).ok());
  EXPECT_EQ(buffers.num_bytes(), 2 * (4 << 20));
}

}  // namespace weir::calibrate::nccl_communicator_test
