// SPDX-License-Identifier: Apache-2.0
#include "results/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "results/validate.h"
#include "tests/golden.h"
#include "tests/results/sample.h"
#include "tests/results/trace/trace_stats.h"

namespace weir::results::trace_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Format {
  const char* name;
  absl::StatusOr<std::string> (*write)(const Result&,
                                       absl::Span<const std::string> names);
  ReadTrace (*read)(absl::string_view);
};

void PrintTo(const Format& format, std::ostream* out) { *out << format.name; }

class TraceTest : public ::testing::TestWithParam<Format> {
 protected:
  ReadTrace RoundTrip(const Result& result) {
    const auto trace = GetParam().write(result, {});
    EXPECT_TRUE(trace.ok()) << trace.status();
    return trace.ok() ? GetParam().read(*trace) : ReadTrace();
  }
};

INSTANTIATE_TEST_SUITE_P(
    Formats, TraceTest,
    ::testing::Values(Format{"Perfetto", PerfettoTrace, ReadPerfetto},
                      Format{"Chrome", ChromeTrace, ReadChrome}),
    [](const auto& info) { return info.param.name; });

size_t NumSlices(const Timeline& timeline) {
  return timeline.actions().gpu_size() +
         2 * timeline.transfers().kind_size() +  // a send and a receive
         timeline.collectives().gpu_size();
}

double SumSeconds(const Timeline& timeline) {
  double sum = 0;
  const auto add = [&](const auto& columns, int times) {
    for (int i = 0; i < columns.start_seconds_size(); ++i) {
      sum += times * (columns.end_seconds(i) - columns.start_seconds(i));
    }
  };
  add(timeline.actions(), 1);
  add(timeline.transfers(), 2);
  add(timeline.collectives(), 1);
  return sum;
}

TEST_P(TraceTest, HoldsWhatTheTimelineHolds) {
  const Result result = PipelineTimeline(4, 6);
  const ReadTrace trace = RoundTrip(result);
  EXPECT_THAT(trace.errors, IsEmpty());
  EXPECT_THAT(trace.processes, SizeIs(4));
  EXPECT_EQ(trace.processes[1], "rank 1 replica 0 (gpu 9)");
  EXPECT_EQ(trace.slices.size(), NumSlices(result.timeline()));
  EXPECT_EQ(trace.flows.size(), 2u * 3 * 6);
  EXPECT_EQ(trace.NumCounterValues(),
            static_cast<size_t>(result.timeline().memory().gpu_size()));
  EXPECT_NEAR(trace.SumSeconds(), SumSeconds(result.timeline()),
              trace.slices.size() * 1e-9);
}

TEST_P(TraceTest, FlowsGoFromProducerOverSendToConsumer) {
  const ReadTrace trace = RoundTrip(PipelineTimeline(3, 1));
  std::vector<std::string> flows;
  for (const auto& [id, slices] : trace.flows) {
    flows.push_back(trace.DescribeFlow(id));
  }
  EXPECT_THAT(flows, ElementsAre("0F0 > send 0F0 -> gpu 9 > 1F0",
                                 "1F0 > send 1F0 -> gpu 10 > 2F0",
                                 "2B0 > send 2B0 -> gpu 9 > 1I0",
                                 "1I0 > send 1I0 -> gpu 8 > 0B0"));
}

TEST_P(TraceTest, EverythingHasItsNameAndTrack) {
  const ReadTrace trace = RoundTrip(PipelineTimeline(2, 1));
  std::multiset<std::string> names;
  for (const ReadSlice& slice : trace.slices) {
    names.insert(slice.process + " / " + slice.track + " / " + slice.name);
  }
  const std::string a = "rank 0 replica 0 (gpu 8) / ";
  const std::string b = "rank 1 replica 0 (gpu 9) / ";
  EXPECT_EQ(names, (std::multiset<std::string>{
                       a + "compute / 0F0",
                       a + "compute / 0B0",
                       a + "compute / 0 step u0",
                       a + "send / send 0F0 -> gpu 9",
                       a + "receive / recv 1I0 <- gpu 9",
                       a + "tensor collectives / collective 0 mb0",
                       a + "gradient all-reduce / all-reduce 0 u0",
                       b + "compute / 1F0",
                       b + "compute / 1I0",
                       b + "compute / 1W0",
                       b + "compute / 1 step u0",
                       b + "send / send 1I0 -> gpu 8",
                       b + "receive / recv 0F0 <- gpu 8",
                       b + "tensor collectives / collective 1 mb0",
                       b + "gradient all-reduce / all-reduce 1 u0",
                   }));
}

// Collectives of experts and tied embeddings have their own names.
TEST_P(TraceTest, EveryKindOfCollectiveHasItsName) {
  Result result = PipelineTimeline(2, 1);
  auto* collectives = result.mutable_timeline()->mutable_collectives();
  for (const auto kind : {Timeline::Collectives::WEIGHT_GATHER,
                          Timeline::Collectives::EXPERT_EXCHANGE,
                          Timeline::Collectives::TIED_REDUCTION}) {
    collectives->add_gpu(0);
    collectives->add_kind(kind);
    collectives->add_stage(0);
    collectives->add_microbatch(0);
    collectives->add_bytes(1);
    collectives->add_start_seconds(20 + static_cast<int>(kind));
    collectives->add_end_seconds(20.5 + static_cast<int>(kind));
  }
  std::vector<std::string> names;
  for (const ReadSlice& slice : RoundTrip(result).slices) {
    names.push_back(slice.track + " / " + slice.name);
  }
  for (const char* name :
       {"weight all-gather / gather 0", "expert exchange / experts 0 mb0",
        "gradient all-reduce / tied embedding 0 u0"}) {
    EXPECT_THAT(names, Contains(name));
  }
}

TEST_P(TraceTest, MemoryIsInBytesAtItsTime) {
  const ReadTrace trace = RoundTrip(PipelineTimeline(2, 1));
  EXPECT_THAT(trace.counters.at("rank 1 replica 0 (gpu 9)"),
              ElementsAre(std::pair<int64_t, double>(1100000000, 1e9),
                          std::pair<int64_t, double>(2100000000, 1e9 + 1),
                          std::pair<int64_t, double>(3100000000, 1e9 + 1.5),
                          std::pair<int64_t, double>(4600000000, 1e9 + 2)));
}

TEST_P(TraceTest, OverlappingTransfersGetTracksOfTheSameName) {
  Result result = PipelineTimeline(2, 3);
  auto* transfers = result.mutable_timeline()->mutable_transfers();
  for (int i = 0; i < transfers->kind_size(); ++i) {
    transfers->set_end_seconds(i, transfers->end_seconds(i) + 100);
  }
  const ReadTrace trace = RoundTrip(result);
  EXPECT_THAT(trace.errors, IsEmpty());  // no overlap on any track
  EXPECT_EQ(trace.slices.size(), NumSlices(result.timeline()));
}

TEST_P(TraceTest, TensorRanksAreNamedWhereThereAreSeveral) {
  Result result = PipelineTimeline(1, 1);
  result.set_tensor_parallel(2);
  result.mutable_ranks(0)->set_tensor_rank(1);
  EXPECT_THAT(RoundTrip(result).processes,
              ElementsAre("rank 0 replica 0 tensor 1 (gpu 8)"));
}

// A run with free transfers and stages: all events are simultaneous.
TEST_P(TraceTest, FlowsHoldWhenNothingTakesTime) {
  Result result = PipelineTimeline(4, 1);
  Timeline* timeline = result.mutable_timeline();
  for (auto* columns : {timeline->mutable_actions()}) {
    for (int i = 0; i < columns->gpu_size(); ++i) {
      columns->set_start_seconds(i, 1);
      columns->set_end_seconds(i, 1);
    }
  }
  auto* transfers = timeline->mutable_transfers();
  for (int i = 0; i < transfers->kind_size(); ++i) {
    transfers->set_start_seconds(i, 1);
    transfers->set_end_seconds(i, 1);
  }
  const ReadTrace trace = RoundTrip(result);
  EXPECT_THAT(trace.errors, IsEmpty());
  EXPECT_EQ(trace.DescribeFlow(1), "0F0 > send 0F0 -> gpu 9 > 1F0");
  EXPECT_EQ(trace.DescribeFlow(4), "3I0 > send 3I0 -> gpu 10 > 2B0");
}

TEST_P(TraceTest, AFlowWithoutItsConsumerEndsAtTheSend) {
  Result result = PipelineTimeline(2, 1);
  auto* actions = result.mutable_timeline()->mutable_actions();
  for (int i = 0; i < actions->gpu_size(); ++i) {
    if (actions->stage(i) == 1) actions->set_stage(i, 7);
  }
  const ReadTrace trace = RoundTrip(result);
  EXPECT_THAT(trace.errors, IsEmpty());
  EXPECT_EQ(trace.DescribeFlow(1), "0F0 > send 0F0 -> gpu 9");
  EXPECT_EQ(trace.DescribeFlow(2), "send 1B0 -> gpu 8 > 0B0");
}

TEST_P(TraceTest, RandomTimelinesNestAndKeepTheirCounts) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Result result = RandomTimeline(seed, 1 + seed % 40);
    ASSERT_TRUE(ValidateResult("random", result).ok());
    const ReadTrace trace = RoundTrip(result);
    ASSERT_THAT(trace.errors, IsEmpty()) << "seed " << seed;
    ASSERT_EQ(trace.slices.size(), NumSlices(result.timeline()));
    ASSERT_NEAR(trace.SumSeconds(), SumSeconds(result.timeline()),
                trace.slices.size() * 1e-9);
    for (const auto& [id, slices] : trace.flows) {
      ASSERT_GE(slices.size(), 2u) << "seed " << seed << " flow " << id;
    }
  }
}

TEST_P(TraceTest, SameResultSameBytes) {
  const Result result = RandomTimeline(7, 100);
  EXPECT_EQ(*GetParam().write(result, {}), *GetParam().write(result, {}));
}

TEST_P(TraceTest, WithoutATimelineThereIsNoTrace) {
  EXPECT_EQ(GetParam().write(SampleResult(), {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_P(TraceTest, AnEmptyTimelineIsAnEmptyTrace) {
  Result result = GivenCostsResult();
  result.mutable_timeline();
  const ReadTrace trace = RoundTrip(result);
  EXPECT_THAT(trace.errors, IsEmpty());
  EXPECT_THAT(trace.processes, SizeIs(40));
  EXPECT_THAT(trace.slices, IsEmpty());
}

TEST_P(TraceTest, RefusesWhatNanosecondsCannotCount) {
  Result result = PipelineTimeline(2, 1);
  result.mutable_timeline()->mutable_actions()->set_end_seconds(0, 1e300);
  const absl::Status status = GetParam().write(result, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ends at 1e+300 s"));
}

TEST_P(TraceTest, RefusesABrokenTimeline) {
  Result result = PipelineTimeline(2, 1);
  result.mutable_timeline()->mutable_memory()->set_gpu(0, 2);
  const absl::Status status = GetParam().write(result, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("timeline.memory.gpu[0] is 2, expected 0 to 1"));
}

// Flows stay in their row; times are those of each result.
TEST_P(TraceTest, PredictedIsDirectlyAboveMeasured) {
  const Result predicted = PipelineTimeline(2, 1);
  Result measured = PipelineTimeline(2, 1);
  auto* actions = measured.mutable_timeline()->mutable_actions();
  actions->set_end_seconds(0, 1.0625);
  const auto rows = PutUnderEachOther("a", predicted, "b", measured);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto bytes = GetParam().write(rows->result, rows->names);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const ReadTrace trace = GetParam().read(*bytes);
  EXPECT_THAT(trace.errors, IsEmpty());
  EXPECT_THAT(trace.processes,
              ElementsAre("rank 0 predicted", "rank 0 measured",
                          "rank 1 predicted", "rank 1 measured"));
  EXPECT_EQ(trace.slices.size(), 2 * NumSlices(predicted.timeline()));
  EXPECT_EQ(trace.NumCounterValues(),
            2u * predicted.timeline().memory().gpu_size());
  ASSERT_THAT(trace.flows, SizeIs(4));
  for (const auto& [id, slices] : trace.flows) {
    EXPECT_THAT(slices, SizeIs(3)) << trace.DescribeFlow(id);
    for (const size_t slice : slices) {
      EXPECT_EQ(trace.slices[slice].process.substr(7),
                trace.slices[slices[0]].process.substr(7));
    }
  }
  std::map<std::string, int64_t> ends;
  for (const ReadSlice& slice : trace.slices) {
    if (slice.name == "0F0") ends[slice.process] = slice.end_ns;
  }
  EXPECT_EQ(ends["rank 0 predicted"], 1'000'000'000);
  EXPECT_EQ(ends["rank 0 measured"], 1'062'500'000);
}

TEST(TwoRowsTest, GoldenOfOneMicrobatch) {
  const Result result = PipelineTimeline(2, 1);
  const auto rows = PutUnderEachOther("a", result, "b", result);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto trace = ChromeTrace(rows->result, rows->names);
  ASSERT_TRUE(trace.ok()) << trace.status();
  ExpectGolden("results/golden/two_rows.json", *trace);
}

TEST(TwoRowsTest, NeedsAsManyRanks) {
  const auto rows = PutUnderEachOther("a", PipelineTimeline(2, 1), "b",
                                      PipelineTimeline(3, 1));
  EXPECT_EQ(std::string(rows.status().message()),
            "a: has 2 ranks, expected 3 as in b");
}

TEST(PerfettoTraceTest, FewerTracksThanNestingNeedsWouldOverlap) {
  // Checks that the reader used by the tests above detects an overlap.
  Result result = PipelineTimeline(1, 1);
  std::string trace = *PerfettoTrace(result);
  trace += *PerfettoTrace(result);
  EXPECT_THAT(ReadPerfetto(trace).errors, ::testing::Not(IsEmpty()));
}

}  // namespace weir::results::trace_test
