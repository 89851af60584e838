// SPDX-License-Identifier: Apache-2.0
// Checks dumps of Primus, typed by hand.
#include "results/import/primus_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "results/import/import_trace.h"
#include "results/import/run_result.h"
#include "results/validate.h"
#include "tests/results/import/sample_trace.h"

namespace weir::results {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

struct Pass {
  double start, end;
  int microbatch, chunk;
};

// The lists of one kind, without the numbers of passes if not `numbered`.
std::string Lists(const std::string& kind, const std::vector<Pass>& passes,
                  bool numbered) {
  std::vector<std::string> starts, ends, microbatches, chunks;
  for (const Pass& pass : passes) {
    starts.push_back(absl::StrCat(pass.start));
    ends.push_back(absl::StrCat(pass.end));
    microbatches.push_back(absl::StrCat(pass.microbatch));
    chunks.push_back(absl::StrCat(pass.chunk));
  }
  const auto list = [&](const char* name, const auto& values) {
    return absl::StrCat("\"", kind, "_", name, "\": [",
                        absl::StrJoin(values, ", "), "]");
  };
  std::string text =
      absl::StrCat(list("start", starts), ", ", list("end", ends));
  if (numbered) {
    absl::StrAppend(&text, ", ", list("minibatch", microbatches), ", ",
                    list("chunk", chunks));
  }
  return text;
}

struct Rank {
  std::vector<Pass> forward, backward, weight;
};

// A file with one step, number 7.
std::string RankText(const Rank& rank, bool numbered = true) {
  return absl::StrCat("{\"7\": {\"total\": 99.5, \"memory\": 12.25, ",
                      Lists("fwd", rank.forward, numbered), ", ",
                      Lists("bwd", rank.backward, numbered), ", ",
                      Lists("wgrad", rank.weight, numbered), "}}");
}

struct NamedFile {
  std::string name, text;
};

absl::StatusOr<RecordedRun> Read(const std::vector<NamedFile>& files) {
  PrimusDump dump;
  for (const NamedFile& file : files) {
    const auto source = TraceSource::FromText(file.name, file.text);
    EXPECT_TRUE(IsPrimusDump(source->Peek()));
    const absl::Status status = dump.Read(source.get());
    if (!status.ok()) return status;
  }
  absl::StatusOr<RecordedRun> run = dump.Finish(files.front().name);
  if (!run.ok()) return run;
  const absl::Status clean = CleanRun(&*run);
  if (!clean.ok()) return clean;
  return run;
}

std::string Config(int ranks, int chunks) {
  return absl::StrCat("{\"world_size\": 8, \"pp_size\": ", ranks,
                      ", \"vp_size\": ", chunks, ", \"num_mbs\": 2}");
}

// Two ranks, one microbatch: forward 2 ms, backward 4 ms.
const Rank kFirst = {{{0, 2, 0, 0}}, {{8, 12, 0, 0}}, {}};
const Rank kSecond = {{{2, 4, 0, 0}}, {{4, 8, 0, 0}}, {}};

const RecordedOperation* Find(const RecordedRun& run, RecordedKind kind,
                              int stage, int microbatch) {
  for (const RecordedOperation& o : run.operations) {
    if (o.kind == kind && o.stage == stage && o.microbatch == microbatch) {
      return &o;
    }
  }
  return nullptr;
}

TEST(PrimusDumpTest, PassesHaveTheirRanksAndSeconds) {
  const auto run = Read({{"d/pp_rank_1.json", RankText(kSecond)},
                         {"d/pp_rank_0.json.gz", Gzip(RankText(kFirst))}});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->num_ranks, 2);
  EXPECT_EQ(run->num_stages, 2);
  EXPECT_EQ(run->num_replicas, 1);
  ASSERT_EQ(run->operations.size(), 4);
  const RecordedOperation* backward = Find(*run, RecordedKind::kBackward, 0, 0);
  ASSERT_NE(backward, nullptr);
  EXPECT_EQ(backward->step, 7);
  EXPECT_EQ(backward->rank, 0);
  EXPECT_NEAR(backward->start_seconds, 8e-3, 1e-15);
  EXPECT_NEAR(backward->end_seconds, 12e-3, 1e-15);
  const Result result = ResultOfStep(*run, 0);
  EXPECT_TRUE(ValidateResult("primus", result).ok());
}

TEST(PrimusDumpTest, ImportRecognizesADump) {
  const auto run = ImportTraceText("pp_rank_0.json", RankText(kFirst));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->format, "dump of Primus");
  EXPECT_FALSE(IsPrimusDump("{\"traceEvents\": []}"));
  EXPECT_FALSE(IsPrimusDump("[]"));
  EXPECT_TRUE(IsPrimusDump(Config(2, 1)));
}

TEST(PrimusDumpTest, BackwardsWithAWeightGradientAreBackwardInputs) {
  const Rank rank = {{{0, 1, 0, 0}, {1, 2, 1, 0}},
                     {{2, 3, 0, 0}, {4, 6, 1, 0}},
                     {{3, 4, 0, 0}}};
  const auto run = Read({{"pp_rank_0.json", RankText(rank)}});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_NE(Find(*run, RecordedKind::kBackwardInput, 0, 0), nullptr);
  EXPECT_NE(Find(*run, RecordedKind::kBackwardWeight, 0, 0), nullptr);
  EXPECT_NE(Find(*run, RecordedKind::kBackward, 0, 1), nullptr);
}

// ZB-V: rank 0 has stages 0 and 3, rank 1 has 1 and 2.
TEST(PrimusDumpTest, ChunkThatStartsOnTheLastRankIsFolded) {
  const Rank first = {
      {{0, 1, 0, 0}, {3, 4, 0, 1}}, {{4, 5, 0, 1}, {7, 8, 0, 0}}, {}};
  const Rank last = {
      {{1, 2, 0, 0}, {2, 3, 0, 1}}, {{5, 6, 0, 1}, {6, 7, 0, 0}}, {}};
  const auto run = Read({{"pp_rank_0.json", RankText(first)},
                         {"pp_rank_1.json", RankText(last)}});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->num_stages, 4);
  EXPECT_EQ(Find(*run, RecordedKind::kForward, 3, 0)->rank, 0);
  EXPECT_EQ(Find(*run, RecordedKind::kForward, 2, 0)->rank, 1);
  EXPECT_THAT(run->notes, Contains(HasSubstr("V-shaped")));
  EXPECT_THAT(run->notes,
              Contains(HasSubstr("without config.json, the pipeline is taken "
                                 "to have 2 ranks")));
}

// Interleaved: rank 0 has stages 0 and 2. Without numbers, the order is that
// of Megatron-LM: as many microbatches as ranks in a chunk.
TEST(PrimusDumpTest, PassesWithoutNumbersAreCountedAsInterleaved) {
  const Rank first = {{{0, 1, 0, 0}, {1, 2, 1, 0}, {2, 3, 0, 1}, {3, 4, 1, 1}},
                      {{6, 7, 0, 1}, {7, 8, 1, 1}, {8, 9, 0, 0}, {9, 10, 1, 0}},
                      {}};
  Rank last = first;
  for (auto* passes : {&last.forward, &last.backward}) {
    for (Pass& pass : *passes) ++pass.start, ++pass.end;
  }
  for (Pass& pass : last.backward) pass.start -= 2, pass.end -= 2;
  const auto numbered = Read({{"pp_rank_0.json", RankText(first)},
                              {"pp_rank_1.json", RankText(last)}});
  ASSERT_TRUE(numbered.ok()) << numbered.status();
  const auto counted = Read({{"pp_rank_0.json", RankText(first, false)},
                             {"pp_rank_1.json", RankText(last, false)},
                             {"config.json", Config(2, 2)}});
  ASSERT_TRUE(counted.ok()) << counted.status();
  ASSERT_EQ(counted->operations.size(), numbered->operations.size());
  for (size_t i = 0; i < counted->operations.size(); ++i) {
    const RecordedOperation& a = counted->operations[i];
    const RecordedOperation& b = numbered->operations[i];
    EXPECT_EQ(a.stage, b.stage);
    EXPECT_EQ(a.microbatch, b.microbatch);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.start_seconds, b.start_seconds);
  }
  EXPECT_EQ(Find(*counted, RecordedKind::kForward, 2, 1)->rank, 0);
  EXPECT_THAT(counted->notes, Not(Contains(HasSubstr("without config.json"))));
}

TEST(PrimusDumpTest, PassesWithoutNumbersNeedTheConfiguration) {
  EXPECT_THAT(
      Read({{"pp_rank_0.json", RankText(kFirst, false)}}).status().message(),
      HasSubstr("expected also config.json"));
}

TEST(PrimusDumpTest, RanksThatDidNotStartAtOnceAreMoved) {
  Rank late = kSecond;
  for (auto* passes : {&late.forward, &late.backward}) {
    for (Pass& pass : *passes) pass.start -= 0.5, pass.end -= 0.5;
  }
  const auto run = Read({{"pp_rank_0.json", RankText(kFirst)},
                         {"pp_rank_1.json", RankText(late)}});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->notes,
              Contains(AllOf(HasSubstr("start up to 500 us before"),
                             HasSubstr("moved within each step by +500 us "
                                       "(pipeline rank 1)"))));
  const RecordedOperation* forward = Find(*run, RecordedKind::kForward, 1, 0);
  ASSERT_NE(forward, nullptr);
  EXPECT_NEAR(forward->start_seconds, 2e-3, 1e-12);
}

TEST(PrimusDumpTest, FilesWithTheSameTimesAreNoted) {
  const auto run = Read({{"pp_rank_0.json", RankText(kFirst)},
                         {"pp_rank_1.json", RankText(kSecond)},
                         {"pp_rank_2.json", RankText(kFirst)}});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->notes,
              Contains(HasSubstr("pp_rank_2.json: has the same times as "
                                 "pp_rank_0.json")));
}

TEST(PrimusDumpTest, CutFileKeepsCompleteSteps) {
  const std::string one = RankText(kFirst);
  const std::string two = absl::StrCat(one.substr(0, one.size() - 1),
                                       ", \"8\": {\"fwd_start\": [0.0, 1");
  const auto run = Read({{"pp_rank_0.json", two}});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(StepsOf(*run).size(), 1);
  EXPECT_THAT(run->notes, Contains(HasSubstr("ends after 1 complete steps")));
}

TEST(PrimusDumpTest, PassesThatRanTogetherAreRefused) {
  const Rank rank = {
      {{0, 2, 0, 0}, {2, 8, 1, 0}}, {{2, 8, 0, 0}, {8, 12, 1, 0}}, {}};
  EXPECT_THAT(Read({{"pp_rank_0.json", RankText(rank)}}).status().message(),
              AllOf(HasSubstr("step 7"), HasSubstr("both run from 2 to 8 ms"),
                    HasSubstr("overlap_moe_expert_parallel_comm")));
}

TEST(PrimusDumpTest, ErrorsNameFileStepAndList) {
  const auto message = [](const std::vector<NamedFile>& files) {
    return std::string(Read(files).status().message());
  };
  EXPECT_THAT(message({{"pp_rank_0.json", RankText(kFirst)},
                       {"copy/pp_rank_0.json", RankText(kFirst)}}),
              AllOf(HasSubstr("copy/pp_rank_0.json"),
                    HasSubstr("is pipeline rank 0 as pp_rank_0.json is")));
  EXPECT_THAT(message({{"pp_rank_1.json", RankText(kSecond)}}),
              HasSubstr("has no operations of pipeline rank 0"));
  EXPECT_THAT(message({{"pp_rank_0.json", RankText(kFirst)},
                       {"config.json", Config(2, 1)}}),
              HasSubstr("pp_size 2, but there are files of 1 pipeline ranks"));
  EXPECT_THAT(message({{"a", R"({"1": {"fwd_start": [1], "fwd_end": []}})"}}),
              HasSubstr("a: step 1: fwd_end has 0 values, expected 1"));
  EXPECT_THAT(message({{"a", R"({"1": {"fwd_start": [1], "fwd_end": [0]}})"}}),
              HasSubstr("fwd_end[0] is 0, expected at least fwd_start[0], 1"));
  EXPECT_THAT(message({{"a", R"({"1": {"fwd_start": ["x"]}})"}}),
              HasSubstr("fwd_start contains \"x\", expected milliseconds"));
  EXPECT_THAT(message({{"a", R"({"1": {"fwd_chunk": [-1]}})"}}),
              HasSubstr("fwd_chunk contains -1, expected numbers from 0"));
  EXPECT_THAT(message({{"config.json", Config(2, 1)}}),
              HasSubstr("expected also the files pp_rank_0.json"));
}

}  // namespace
}  // namespace weir::results
