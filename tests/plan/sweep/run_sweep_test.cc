// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/run_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/textproto.h"
#include "plan/sweep/collect.h"
#include "plan/sweep/slurm.h"
#include "sim/simulate.h"

namespace weir::plan::run_sweep_test {

using testing::HasSubstr;
using testing::Not;

constexpr char kSweep[] = R"(
  scenario {
    parallelism { chunks: 1 }
    costs {
      stages {
        forward_seconds: 1
        backward_input_seconds: 1
        backward_weight_seconds: 1
      }
    }
  }
  axes { field: "parallelism.pipeline" values: ["2", "3"] }
  axes { field: "schedule" values: ["gpipe", "1f1b", "zb-h1"] }
  axes { field: "num_microbatches" values: ["4", "6"] }
)";
constexpr uint32_t kNumPoints = 12;

class RunSweepTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(testing::TempDir(), "weir-sweep-XXXXXX");
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    sweep_ = Resolve(kSweep);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  static ResolvedSweep Resolve(absl::string_view text) {
    Sweep sweep;
    EXPECT_TRUE(ParseTextProto("test", text, &sweep).ok());
    const auto resolved = ResolveSweep("test", sweep);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    return *resolved;
  }

  SweepOptions Options(const std::string& folder) const {
    SweepOptions options;
    options.folder = absl::StrCat(root_, "/", folder);
    options.num_processes = 2;
    return options;
  }

  // Returns the table and the bytes of the database that collect writes.
  std::string Collected(const std::string& folder) const {
    const auto collected = CollectShards(absl::StrCat(root_, "/", folder));
    EXPECT_TRUE(collected.ok()) << collected.status();
    if (!collected.ok()) return "";
    const std::string path = absl::StrCat(root_, "/x.sqlite");
    EXPECT_TRUE(WriteSqlite(path, *collected).ok());
    return absl::StrCat(SweepCsv(*collected), *ReadFile(path));
  }

  std::string root_;
  ResolvedSweep sweep_;
};

TEST_F(RunSweepTest, FiguresAreThoseOfTheSimulation) {
  const auto counts = RunSweep(sweep_, Options("a"));
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->num_done, kNumPoints);
  EXPECT_EQ(counts->num_refused + counts->num_failed + counts->num_before, 0);
  const auto collected = CollectShards(root_ + "/a");
  ASSERT_TRUE(collected.ok());
  for (uint32_t point = 0; point < kNumPoints; ++point) {
    const auto scenario =
        scenarios::ResolveScenario("x", ScenarioOfPoint(sweep_, point));
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const auto result = sim::Simulate(*scenario);
    ASSERT_TRUE(result.ok());
    const SweepOutcome& outcome = collected->outcomes.at(point);
    EXPECT_EQ(outcome.batch_seconds(), result->batch_seconds());
    EXPECT_EQ(outcome.idle_ratio(), result->idle_ratio());
    EXPECT_EQ(outcome.method(), "full");
    EXPECT_FALSE(outcome.has_samples_per_second());
  }
  EXPECT_EQ(counts->best.point(), 4);  // zb-h1, 2 ranks, 4 microbatches
}

// Shards keep the sweep as it was given; tables use the registry's names.
TEST_F(RunSweepTest, TablesCallSchedulesByTheirOwnNames) {
  const ResolvedSweep sweep = Resolve(R"(
    base: "given-costs-1f1b"
    axes { field: "schedule" values: ["PipeDream-Flush", "gpipe"] }
  )");
  const auto counts = RunSweep(sweep, Options("a"));
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->num_done, 2);
  const auto collected = CollectShards(root_ + "/a");
  ASSERT_TRUE(collected.ok()) << collected.status();
  const std::string csv = SweepCsv(*collected);
  EXPECT_THAT(csv, HasSubstr("\n0,1f1b,done,"));
  EXPECT_THAT(csv, HasSubstr("\n1,gpipe,done,"));
  EXPECT_THAT(PointText(sweep, collected->outcomes.at(0)),
              HasSubstr(": schedule=1f1b"));
  EXPECT_EQ(ScenarioOfPoint(collected->sweep, 0).schedule(), "PipeDream-Flush");
}

TEST_F(RunSweepTest, TablesSayWhetherMemoryFits) {
  ASSERT_TRUE(RunSweep(sweep_, Options("a")).ok());
  const auto collected = CollectShards(root_ + "/a");
  ASSERT_TRUE(collected.ok()) << collected.status();
  const std::vector<std::string> lines =
      absl::StrSplit(SweepCsv(*collected), '\n');
  const std::vector<std::string> names = absl::StrSplit(lines[0], ',');
  const auto column =
      std::find(names.begin(), names.end(), "fits_memory") - names.begin();
  ASSERT_LT(column, std::ssize(names)) << lines[0];
  for (uint32_t point = 0; point < kNumPoints; ++point) {
    const std::vector<std::string> cells =
        absl::StrSplit(lines[point + 1], ',');
    EXPECT_EQ(cells.at(column),
              collected->outcomes.at(point).fits_memory() ? "true" : "false");
  }
}

TEST_F(RunSweepTest, TheFastMethodFindsTheSameTimes) {
  ASSERT_TRUE(RunSweep(sweep_, Options("full")).ok());
  ResolvedSweep fast = sweep_;
  fast.sweep.set_method(SWEEP_FAST);
  ASSERT_TRUE(RunSweep(fast, Options("fast")).ok());
  const auto a = CollectShards(root_ + "/full");
  const auto b = CollectShards(root_ + "/fast");
  ASSERT_TRUE(a.ok() && b.ok());
  for (uint32_t point = 0; point < kNumPoints; ++point) {
    const double seconds = a->outcomes.at(point).batch_seconds();
    EXPECT_NEAR(b->outcomes.at(point).batch_seconds(), seconds, 1e-9 * seconds);
  }
}

TEST_F(RunSweepTest, AnyNumberOfProcessesAndShardsGivesTheSameBytes) {
  SweepOptions options = Options("one");
  options.num_processes = 1;
  ASSERT_TRUE(RunSweep(sweep_, options).ok());
  options = Options("four");
  options.num_processes = 4;
  ASSERT_TRUE(RunSweep(sweep_, options).ok());
  std::set<uint32_t> sizes;
  for (int shard = 4; shard >= 0; --shard) {
    options = Options("shards");
    options.shard = {shard, 5};
    const auto counts = RunSweep(sweep_, options);
    ASSERT_TRUE(counts.ok()) << counts.status();
    sizes.insert(counts->num_points);
  }
  EXPECT_EQ(sizes, (std::set<uint32_t>{2, 3}));
  const std::string one = Collected("one");
  EXPECT_EQ(Collected("four"), one);
  EXPECT_EQ(Collected("shards"), one);
  EXPECT_EQ(Collected("shards"), one);  // collected a second time
  // Adds a shard of another count that holds some of the points again.
  std::filesystem::copy(root_ + "/one/shard-0-of-1.jsonl", root_ + "/shards");
  EXPECT_EQ(Collected("shards"), one);
}

TEST_F(RunSweepTest, ResumeRunsWhatIsMissingOnly) {
  SweepOptions options = Options("a");
  uint32_t num_ended = 0;
  options.num_processes = 1;
  options.progress = [&](const SweepCounts& now) { num_ended = now.num_done; };
  options.stop = [&] { return num_ended >= 5; };
  auto counts = RunSweep(sweep_, options);
  ASSERT_TRUE(counts.ok());
  const uint32_t num_before = counts->num_done;
  EXPECT_GE(num_before, 5);
  EXPECT_LT(num_before, kNumPoints);
  options.stop = [] { return false; };
  EXPECT_THAT(std::string(RunSweep(sweep_, options).status().message()),
              HasSubstr("already contains points; give --resume"));
  options.resume = true;
  counts = RunSweep(sweep_, options);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->num_before, num_before);
  EXPECT_EQ(counts->num_done, kNumPoints - num_before);
  ASSERT_TRUE(RunSweep(sweep_, Options("b")).ok());
  EXPECT_EQ(Collected("a"), Collected("b"));
  // Points in other shards of the folder count too.
  options.shard = {1, 2};
  counts = RunSweep(sweep_, options);
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->num_before, kNumPoints / 2);
  EXPECT_EQ(counts->num_done, 0);
}

TEST_F(RunSweepTest, AChangedSweepIsRefusedWithWhatChanged) {
  ASSERT_TRUE(RunSweep(sweep_, Options("a")).ok());
  ResolvedSweep changed = sweep_;
  *changed.sweep.mutable_axes(0)->mutable_values(1) = "4";
  SweepOptions options = Options("a");
  options.resume = true;
  EXPECT_THAT(std::string(RunSweep(changed, options).status().message()),
              HasSubstr("axes[0].values[1]: \"3\" -> \"4\""));
  options.shard = {0, 2};  // next to the existing shard
  EXPECT_THAT(std::string(RunSweep(changed, options).status().message()),
              HasSubstr("shard-0-of-1.jsonl: belongs to a different sweep"));
}

TEST_F(RunSweepTest, WhatCannotRunIsRefusedWithItsReason) {
  const ResolvedSweep sweep = Resolve(absl::StrCat(
      kSweep, "axes { field: 'parallelism.chunks' values: ['1', '0', '2'] }"));
  const auto counts = RunSweep(sweep, Options("a"));
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->num_refused, kNumPoints);  // two chunks
  EXPECT_EQ(counts->num_done, 2 * kNumPoints);
  const auto collected = CollectShards(root_ + "/a");
  EXPECT_TRUE(IsComplete(*collected));
  EXPECT_THAT(collected->outcomes.at(2).error(), HasSubstr("chunk"));
  // A refused point is complete and is not tried again.
  SweepOptions options = Options("a");
  options.resume = true;
  EXPECT_EQ(RunSweep(sweep, options)->num_before, 3 * kNumPoints);
}

TEST(CountsTest, TheReasonIsOfTheFirstPointInWhateverOrderTheyEnd) {
  SweepCounts counts;
  SweepOutcome outcome;
  for (const uint32_t point : {5, 3, 9}) {
    outcome.set_point(point);
    outcome.set_error(absl::StrCat("as said of ", point));
    outcome.set_kind(SWEEP_REFUSED);
    CountNow(outcome, &counts);
    outcome.set_kind(SWEEP_FAILED);
    CountNow(outcome, &counts);
  }
  EXPECT_EQ(ReasonText(*counts.refusal), "point 3: as said of 3");
  EXPECT_EQ(ReasonText(*counts.failure), "point 3: as said of 3");
  outcome.set_point(1);
  outcome.set_kind(SWEEP_REFUSED);
  CountBefore(outcome, &counts);
  EXPECT_EQ(counts.refusal->point(), 1);
  EXPECT_EQ(counts.num_refused, 3);
}

TEST_F(RunSweepTest, ACrashIsNamedAndStopsNoOtherPointAndRunsAgain) {
  SweepOptions options = Options("a");
  options.resolve = [](absl::string_view label, const Scenario& scenario) {
    if (scenario.schedule() == "1f1b") {
      std::signal(SIGSEGV, SIG_DFL);
      raise(scenario.num_microbatches() == 4 ? SIGSEGV : SIGKILL);
    }
    return scenarios::ResolveScenario(label, scenario);
  };
  auto counts = RunSweep(sweep_, options);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->num_failed, 4);
  EXPECT_EQ(counts->num_done, 8);
  const auto collected = CollectShards(root_ + "/a");
  ASSERT_TRUE(collected.ok());
  EXPECT_FALSE(IsComplete(*collected));
  EXPECT_THAT(collected->outcomes.at(2).error(),
              HasSubstr("Segmentation fault (signal 11)"));
  EXPECT_THAT(collected->outcomes.at(3).error(), HasSubstr("(signal 9"));
  EXPECT_THAT(SweepCsv(*collected), HasSubstr("\n2,2,1f1b,4,failed,"));

  options.resolve = scenarios::ResolveScenario;
  options.resume = true;
  counts = RunSweep(sweep_, options);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->num_before, 8);
  EXPECT_EQ(counts->num_done, 4);
  ASSERT_TRUE(RunSweep(sweep_, Options("b")).ok());
  EXPECT_EQ(Collected("a"), Collected("b"));
}

TEST_F(RunSweepTest, APointOverItsTimeFailsAndRunsAgainWithMore) {
  SweepOptions options = Options("slow");
  options.time_limit_seconds = 2;
  options.resolve = [](const std::string& label, const Scenario& scenario) {
    if (label == "point 3") pause();
    return scenarios::ResolveScenario(label, scenario);
  };
  auto counts = RunSweep(sweep_, options);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->num_done, kNumPoints - 1);
  EXPECT_EQ(counts->num_failed, 1);
  EXPECT_EQ(counts->num_over_time, 1);
  EXPECT_EQ(ReasonText(*counts->failure),
            "point 3: took longer than 2 s, the time limit");
  const auto collected = CollectShards(root_ + "/slow");
  ASSERT_TRUE(collected.ok());
  EXPECT_FALSE(IsComplete(*collected));
  EXPECT_EQ(collected->outcomes.at(3).kind(), SWEEP_FAILED);

  // With the same or less time it would fail again, so it is not run.
  options.resume = true;
  for (const double seconds : {2.0, 1.0}) {
    options.time_limit_seconds = seconds;
    counts = RunSweep(sweep_, options);
    ASSERT_TRUE(counts.ok()) << counts.status();
    EXPECT_EQ(counts->num_before, kNumPoints);
    EXPECT_EQ(counts->num_over_time_before, 1);
    EXPECT_EQ(counts->num_failed + counts->num_done, 0);
  }
  options.resolve = scenarios::ResolveScenario;
  options.time_limit_seconds = 1000;
  counts = RunSweep(sweep_, options);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->num_before, kNumPoints - 1);
  EXPECT_EQ(counts->num_done, 1);
  EXPECT_TRUE(IsComplete(*CollectShards(root_ + "/slow")));
  // The point is done now, regardless of the limit.
  options.time_limit_seconds = 1;
  counts = RunSweep(sweep_, options);
  EXPECT_EQ(counts->num_before, kNumPoints);
  EXPECT_EQ(counts->num_over_time_before, 0);
}

TEST(SlurmTest, EveryTaskHasTheTimeLimit) {
  SlurmSweep sweep;
  sweep.time_limit_seconds = 90;
  EXPECT_THAT(SlurmScript(sweep), HasSubstr("\" --time-limit 90\n"));
  EXPECT_THAT(SlurmScript(SlurmSweep()), Not(HasSubstr("time-limit")));
}

TEST_F(RunSweepTest, MissingPointsAreNamed) {
  SweepOptions options = Options("a");
  options.shard = {1, 3};
  ASSERT_TRUE(RunSweep(sweep_, options).ok());
  const auto collected = CollectShards(root_ + "/a");
  ASSERT_TRUE(collected.ok());
  EXPECT_FALSE(IsComplete(*collected));
  EXPECT_THAT(MissingPoints(*collected, 3), testing::ElementsAre(0, 2, 3));
  EXPECT_EQ(CountsOf(*collected).num_ended(), 4);
}

TEST_F(RunSweepTest, ShardsOfDifferentSweepsAreNotMixed) {
  ASSERT_TRUE(RunSweep(sweep_, Options("a")).ok());
  ResolvedSweep other = sweep_;
  *other.sweep.mutable_axes(0)->mutable_values(1) = "4";
  ASSERT_TRUE(RunSweep(other, Options("b")).ok());
  std::filesystem::rename(root_ + "/b/shard-0-of-1.jsonl",
                          root_ + "/a/shard-0-of-2.jsonl");
  EXPECT_THAT(std::string(CollectShards(root_ + "/a").status().message()),
              HasSubstr("belongs to a different sweep than"));
}

TEST_F(RunSweepTest, TablesHaveAColumnForEachFieldAndFigure) {
  const ResolvedSweep sweep = Resolve(R"(
    scenario { costs { stages { forward_seconds: 1 backward_seconds: 2 } }
               num_microbatches: 4 schedule: "gpipe"
               parallelism { pipeline: 3 } }
    points { set: "parallelism.pipeline=2" }
    points { set: "costs.hop_seconds=0.5" set: "name=a, \"b\"" }
  )");
  ASSERT_TRUE(RunSweep(sweep, Options("a")).ok());
  const auto collected = CollectShards(root_ + "/a");
  ASSERT_TRUE(collected.ok());
  const std::vector<std::string> lines =
      absl::StrSplit(SweepCsv(*collected), '\n');
  EXPECT_TRUE(absl::StartsWith(
      lines[0], "point,pp,costs.hop_seconds,name,outcome,error,"));
  EXPECT_TRUE(absl::StartsWith(lines[1], "0,2,,,done,,full,2,1,4,15,15,"))
      << lines[1];
  EXPECT_TRUE(absl::StartsWith(lines[2], "1,,0.5,\"a, \"\"b\"\"\",done,"))
      << lines[2];
}

}  // namespace weir::plan::run_sweep_test
