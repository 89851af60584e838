// SPDX-License-Identifier: Apache-2.0
#include "results/compare/idle_causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "absl/strings/str_format.h"
#include "results/compare/measured_timeline.h"
#include "tests/results/sample.h"

namespace weir::results::idle_causes_test {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

PipelineEvents Read(absl::string_view csv) {
  const auto result = ReadMeasuredTimeline("hand", csv);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  const auto timeline = PipelineEventsOf("hand", *result);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? *timeline : PipelineEvents();
}

// kPass, kQueued, kWire, kCopies, kHost, kOther
auto Causes(double pass, double queued, double wire, double copies, double host,
            double other) {
  return ElementsAre(DoubleEq(pass), DoubleEq(queued), DoubleEq(wire),
                     DoubleEq(copies), DoubleEq(host), DoubleEq(other));
}

// Times are multiples of a quarter second, so all sums are exact.
constexpr char kEachOnce[] =
    "rank,action,start_seconds,end_seconds,ready_seconds\n"
    "0,0F0,0,2,\n"
    "0,0SEND_F0,2.5,3.5,2\n"
    "0,0F1,2,4,\n"
    "0,0SEND_F1,6,7,4\n"
    "0,0R0,13,13.5,\n"
    "0,0B0,14,17,\n"
    "0,0B1,17,20,\n"
    "0,0UNSHARD,20,20.25,\n"
    "0,0 step u0,20.5,21,\n"
    "1,1F0,3.75,5.75,\n"
    "1,1F1,7.25,9.25,\n"
    "1,1B0,9.25,12.25,\n"
    "1,1SEND_B0,12.25,13.25,12.25\n"
    "1,1B1,12.25,15.25,\n"
    "1,1SEND_B1,15.5,16.5,15.25\n"
    "1,1REDUCE_GRAD,15.25,16.25,\n"
    "1,1 step u0,16.5,17,\n";

// Requires that pieces and passes cover the time of each rank once and that the
// pieces of each cause add up to FindIdleCauses.
void ExpectPiecesAddUp(const PipelineEvents& timeline) {
  const std::vector<RankIdle> idle = FindIdleCauses(timeline);
  const auto pieces = FindIdlePieces(timeline);
  ASSERT_EQ(pieces.size(), idle.size());
  for (size_t rank = 0; rank < idle.size(); ++rank) {
    IdleSeconds by_cause{};
    double drain = 0, until = 0;
    for (const IdlePiece& piece : pieces[rank]) {
      EXPECT_GE(piece.from_seconds, until - 1e-12);
      until = piece.to_seconds;
      const double seconds = piece.to_seconds - piece.from_seconds;
      (piece.next == IdlePiece::kNone
           ? drain
           : by_cause[static_cast<int>(piece.cause)]) += seconds;
      for (const TimelineAction& action : timeline.ranks[rank]) {
        if (!action.computes()) continue;
        EXPECT_TRUE(action.end_seconds <= piece.from_seconds + 1e-12 ||
                    action.start_seconds >= piece.to_seconds - 1e-12 ||
                    action.seconds() == 0);
      }
    }
    EXPECT_NEAR(drain, idle[rank].drain_seconds, 1e-9);
    for (int cause = 0; cause < kNumIdleCauses; ++cause) {
      EXPECT_NEAR(by_cause[cause], idle[rank].of(static_cast<IdleCause>(cause)),
                  1e-9)
          << "rank " << rank << ", " << Name(static_cast<IdleCause>(cause));
    }
  }
}

TEST(IdleCausesTest, EveryCauseOfAHandMadePipeline) {
  const PipelineEvents timeline = Read(kEachOnce);
  ASSERT_EQ(timeline.num_ranks(), 2);
  EXPECT_EQ(timeline.makespan_seconds, 21);
  const std::vector<RankIdle> idle = FindIdleCauses(timeline);

  EXPECT_EQ(idle[0].busy_seconds, 10.5);
  EXPECT_EQ(idle[0].startup_seconds(), 0);
  // Before 0B0: 1B0 until 12.25, its gradient until 13.25, the reload of its
  // activations until 13.5. Before the optimizer step, an all-gather of 0.25 s.
  EXPECT_THAT(idle[0].between, Causes(8.25, 0, 1, 0.25, 0.25, 0.75));
  EXPECT_EQ(idle[0].drain_seconds, 0);

  EXPECT_EQ(idle[1].busy_seconds, 10.5);
  EXPECT_THAT(idle[1].startup, Causes(2, 0.5, 1, 0, 0, 0.25));
  EXPECT_THAT(idle[1].between, Causes(0, 0.25, 1, 1, 0, 0.5));
  EXPECT_EQ(idle[1].drain_seconds, 4);

  for (const RankIdle& rank : idle) {
    EXPECT_EQ(rank.idle_seconds(), 21 - rank.busy_seconds);
  }
}

// All-gathers that fill a gap in pieces leave no time for other causes, not
// even by rounding.
TEST(IdleCausesTest, NoCauseIsNegative) {
  std::mt19937 random(11);
  std::uniform_real_distribution<> draw(0, 0.1);
  for (int i = 0; i < 100; ++i) {
    std::string csv = "rank,action,start_seconds,end_seconds\n";
    double at = 0;
    const auto add = [&](const char* action) {
      const double end = at + draw(random);
      absl::StrAppendFormat(&csv, "0,%s,%.17g,%.17g\n", action, at, end);
      at = end;
    };
    add("0F0");
    add("0R0");
    for (int gather = 0; gather < 9; ++gather) add("0UNSHARD");
    add("0B0");
    const std::vector<RankIdle> idle = FindIdleCauses(Read(csv));
    for (const double seconds : idle[0].between) EXPECT_GE(seconds, 0) << csv;
    EXPECT_EQ(idle[0].of(IdleCause::kOther), 0) << csv;
  }
}

TEST(IdleCausesTest, TransferTimesAreApartFromWaitingForThem) {
  const PipelineEvents timeline = Read(kEachOnce);
  const TransferTimes times = TimesOf(timeline, FindIdleCauses(timeline));
  EXPECT_EQ(times.num_transfers, 4);
  EXPECT_EQ(times.queued_seconds, 0.5 + 2 + 0 + 0.25);
  EXPECT_EQ(times.wire_seconds, 4);
  EXPECT_EQ(times.awaited_pass_seconds, 8.25 + 2);
  EXPECT_EQ(times.awaited_queued_seconds, 0.5 + 0.25);
  EXPECT_EQ(times.awaited_wire_seconds, 1 + 1 + 1);
}

// Both ranks hold a copy of stage 0; the second takes longer.
TEST(IdleCausesTest, AStepWaitsForTheGradientsOfOtherCopies) {
  const PipelineEvents timeline = Read(
      "rank,action,start_ms,end_ms\n"
      "0,0F0,0,1000\n0,0B0,1000,3000\n0,0 step u0,5250,5500\n"
      "1,0F1,0,2000\n1,0B1,2000,5000\n1,0 step u0,5250,5500\n");
  const std::vector<RankIdle> idle = FindIdleCauses(timeline);
  EXPECT_THAT(idle[0].between, Causes(0, 0, 0, 2, 0, 0.25));
  EXPECT_THAT(idle[1].between, Causes(0, 0, 0, 0, 0, 0.25));
}

// The last stage waits for the first stage's gradient of the tied embedding.
TEST(IdleCausesTest, TiedEndsStepTogether) {
  PipelineEvents timeline = Read(
      "rank,action,start_seconds,end_seconds\n"
      "0,0F0,0,1\n1,1F0,1,2\n1,1B0,2,4\n0,0B0,4,6\n"
      "0,0 step u0,6.5,7\n1,1 step u0,6.5,7\n");
  EXPECT_THAT(FindIdleCauses(timeline)[1].between, Causes(0, 0, 0, 0, 0, 2.5));
  timeline.tied = true;
  const std::vector<RankIdle> idle = FindIdleCauses(timeline);
  EXPECT_THAT(idle[0].between, Causes(3, 0, 0, 0, 0, 0.5));
  EXPECT_THAT(idle[1].between, Causes(0, 0, 0, 2, 0, 0.5));
}

// Without the column, a transfer is ready when the pass before it ends. Without
// transfers, the time from then on is unexplained.
TEST(IdleCausesTest, WhatIsNotRecordedIsNotInvented) {
  const char* head = "rank,action,start_seconds,end_seconds\n";
  const std::string passes = "0,0F0,0,1\n1,1F0,3,4\n";
  EXPECT_THAT(
      FindIdleCauses(Read(head + passes + "0,0SEND_F0,1.5,2\n"))[1].startup,
      Causes(1, 0.5, 0.5, 0, 0, 1));
  EXPECT_THAT(FindIdleCauses(Read(head + passes))[1].startup,
              Causes(1, 0, 0, 0, 0, 2));
}

// A backward of two microbatches waits for both backwards of the next stage. An
// overlapped pair waits for the input that arrives last.
TEST(IdleCausesTest, TheInputThatArrivesLastIsTheOneAwaited) {
  const std::vector<RankIdle> idle =
      FindIdleCauses(Read("rank,action,start_seconds,end_seconds\n"
                          "0,0F0,0,1\n0,0F1,1,2\n0,0F2,6,7\n0,0B0-1,6,9\n"
                          "0,0SEND_F0,1,1\n0,0SEND_F1,2,2\n"
                          "1,1F0,1,2\n1,1F1,2,3\n1,1B0,3,4\n1,1B1,4,5\n"
                          "1,1SEND_B0,4,4.25\n1,1SEND_B1,5,6\n"));
  EXPECT_THAT(idle[0].between, Causes(3, 0, 1, 0, 0, 0));
  EXPECT_EQ(idle[0].busy_seconds, 5);  // a pair counts once
}

TEST(IdleCausesTest, ClocksThatDisagreeAreSeen) {
  const PipelineEvents timeline = Read(
      "rank,action,start_seconds,end_seconds\n"
      "0,0F0,0,2\n1,1F0,1.5,3\n1,1B0,3,4\n0,0B0,4,5\n");
  const ClockErrors errors = FindClockErrors(timeline);
  EXPECT_EQ(errors.num_inputs, 2);
  EXPECT_EQ(errors.num_early, 1);
  EXPECT_EQ(errors.largest_seconds, 0.5);
}

// The sums are exact for any timeline.
TEST(IdleCausesTest, CausesOfRandomTimelinesAddUp) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Result result = RandomTimeline(seed, 1 + seed % 60);
    for (int i = 0; i < result.ranks_size(); ++i) {
      result.mutable_ranks(i)->set_rank(i);
    }
    const auto timeline = PipelineEventsOf("random", result);
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    for (const RankIdle& rank : FindIdleCauses(*timeline)) {
      ASSERT_NEAR(rank.busy_seconds + rank.idle_seconds(),
                  timeline->makespan_seconds, 1e-20)
          << "seed " << seed;
      for (int cause = 0; cause < kNumIdleCauses; ++cause) {
        ASSERT_GE(rank.startup[cause], -1e-20);
        ASSERT_GE(rank.between[cause], -1e-20);
      }
    }
  }
}

TEST(PipelineEventsTest, NeedsEveryRankOnce) {
  Result result = PipelineTimeline(3, 1);
  result.mutable_ranks(2)->set_rank(1);
  const auto timeline = PipelineEventsOf("x.pb", result);
  EXPECT_EQ(timeline.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(timeline.status().message()),
              ::testing::HasSubstr("x.pb: ranks[2].rank is 1, expected each"));
}

TEST(PipelineEventsTest, PassesHoldTheCollectivesInThem) {
  Result result = PipelineTimeline(1, 1);  // 0F0 ends at 1
  auto* collectives = result.mutable_timeline()->mutable_collectives();
  collectives->Clear();
  for (const auto kind : {Timeline::Collectives::TENSOR,
                          Timeline::Collectives::EXPERT_EXCHANGE}) {
    collectives->add_gpu(0);
    collectives->add_kind(kind);
    collectives->add_stage(0);
    collectives->add_microbatch(0);
    collectives->add_bytes(1);
    collectives->add_start_seconds(
        kind == Timeline::Collectives::TENSOR ? 1 : 1.25);
    collectives->add_end_seconds(kind == Timeline::Collectives::TENSOR ? 1.25
                                                                       : 1.5);
  }
  const auto timeline = PipelineEventsOf("x", result);
  ASSERT_TRUE(timeline.ok());
  EXPECT_EQ(timeline->ranks[0][0].end_seconds, 1.5);
}

TEST(IdleCausesTest, PiecesNameTheCauseAndTheAwaitedRank) {
  const PipelineEvents timeline = Read(kEachOnce);
  ExpectPiecesAddUp(timeline);
  const auto pieces = FindIdlePieces(timeline);
  ASSERT_GE(pieces[1].size(), 3u);
  // Rank 1 waits for 0F0: computed at 2, sent from 2.5 to 3.5.
  EXPECT_EQ(pieces[1][0].cause, IdleCause::kPass);
  EXPECT_EQ(pieces[1][0].to_seconds, 2);
  EXPECT_EQ(pieces[1][0].awaited_rank, 0);
  EXPECT_EQ(pieces[1][1].cause, IdleCause::kQueued);
  EXPECT_EQ(pieces[1][2].cause, IdleCause::kWire);
  EXPECT_EQ(pieces[1][2].to_seconds, 3.5);
  EXPECT_EQ(pieces[1][2].next, 0);
}

TEST(IdleCausesTest, PiecesOfRandomTimelinesAddUp) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto timeline = PipelineEventsOf("x", RandomTimeline(seed, 40));
    if (timeline.ok()) ExpectPiecesAddUp(*timeline);
  }
  const auto timeline = PipelineEventsOf("x", PipelineTimeline(4, 6));
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  ExpectPiecesAddUp(*timeline);
}

}  // namespace weir::results::idle_causes_test
