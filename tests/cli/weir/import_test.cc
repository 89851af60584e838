// SPDX-License-Identifier: Apache-2.0
// Runs weir import, and what reads its files, as users do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::import_test {

using testing::AllOf;
using testing::HasSubstr;

// A forward and a backward of two stages at two clocks.
std::string ClockProfileFile() {
  return WriteInput("clocks.csv",
                    "stage,instruction,frequency,time,energy\n"
                    "0,forward,1400,1,300\n0,forward,700,2,200\n"
                    "0,backward,1400,2,600\n0,backward,700,4,400\n"
                    "1,forward,1400,2,600\n1,forward,700,4,400\n"
                    "1,backward,1400,4,1200\n1,backward,700,8,800\n");
}

TEST(ImportCommandTest, AClockProfileBecomesCosts) {
  const std::string profile = ClockProfileFile();
  const ProgramRun run = RunWeir(
      absl::StrCat("import ", profile, " --costs clock_costs.textproto"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("profile of 2 stages by clock"));
  EXPECT_THAT(run.err, HasSubstr("times at the highest clocks"));
  // GPipe of two stages with 4 microbatches: (4 + 1) x 2 + (4 + 1) x 4 - 1 - 2.
  const ProgramRun simulated = RunWeir(
      "simulate --costs clock_costs.textproto --pp 2 --microbatches 4 "
      "--schedule gpipe --format json");
  EXPECT_EQ(simulated.exit_code, 0) << simulated.err;
  const auto json = nlohmann::json::parse(simulated.out);
  EXPECT_NEAR(json["result"]["batch_seconds"].get<double>(), 27, 1e-9);
}

TEST(ImportCommandTest, AClockProfileHasNoSteps) {
  const std::string profile = ClockProfileFile();
  const ProgramRun json =
      RunWeir(absl::StrCat("import ", profile, " --format json"));
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_EQ(nlohmann::json::parse(json.out)["result"]["num_stages"], 2);
  for (const char* option : {"-o clocks.pb", "--step 1", "--report c.html"}) {
    const ProgramRun run =
        RunWeir(absl::StrCat("import ", profile, " ", option));
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err,
                AllOf(HasSubstr("has no steps"), HasSubstr("--costs")));
  }
}

TEST(ImportCommandTest, ADumpOfPrimusIsARun) {
  const std::string first =
      WriteInput("pp_rank_0.json",
                 "{\"1\": {\"total\": 12, \"memory\": 1, \"fwd_start\": [0], "
                 "\"fwd_end\": [2], \"bwd_start\": [8], \"bwd_end\": [12]}}");
  const std::string second =
      WriteInput("pp_rank_1.json",
                 "{\"1\": {\"total\": 12, \"memory\": 1, \"fwd_start\": [2], "
                 "\"fwd_end\": [4], \"bwd_start\": [4], \"bwd_end\": [8]}}");
  const std::string config = WriteInput(
      "config.json", "{\"world_size\": 2, \"pp_size\": 2, \"vp_size\": 1}");
  const ProgramRun run = RunWeir(absl::StrCat(
      "import ", first, " ", second, " ", config,
      " -o primus.pb --costs primus_costs.textproto --format json"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_NEAR(json["result"]["batch_seconds"].get<double>(), 0.012, 1e-12);
  EXPECT_THAT(ReadFile(TestFolder() + "/primus_costs.textproto").value_or(""),
              HasSubstr("forward_seconds: 0.002"));
}

// Stage 0 of replica 1 takes twice as long, in every other microbatch.
TEST(ImportCommandTest, CostsAreDividedIntoOtherStages) {
  // Four stages of 2 blocks that take 1 s and 2 s each; the head takes 3 s and
  // 4 s.
  std::string profile = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < 4; ++stage) {
    const int forward = stage == 3 ? 5 : 2, backward = stage == 3 ? 8 : 4;
    for (const int clock : {1400, 700}) {
      const int slow = 1400 / clock;
      absl::StrAppend(&profile, stage, ",forward,", clock, ",", slow * forward,
                      ",300\n", stage, ",backward,", clock, ",",
                      slow * backward, ",600\n");
    }
  }
  WriteInput("blocks.csv", profile);
  const ProgramRun run = RunWeir(
      "import blocks.csv --costs block_costs.textproto --blocks-per-stage 2");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto seconds = [](const std::string& flags) {
    const ProgramRun simulated = RunWeir(absl::StrCat(
        "simulate --microbatches 4 --schedule gpipe --format json ", flags));
    EXPECT_EQ(simulated.exit_code, 0) << simulated.err;
    return nlohmann::json::parse(simulated.out)["result"]["batch_seconds"]
        .get<double>();
  };
  const std::string costs = "--costs block_costs.textproto ";
  EXPECT_NEAR(seconds(costs + "--pp 4"),
              seconds("--costs f=2/2/2/5,b=4/4/4/8 --pp 4"), 1e-9);
  EXPECT_NEAR(seconds(costs + "--pp 2"), seconds("--costs f=4/7,b=8/12 --pp 2"),
              1e-9);
  EXPECT_NEAR(seconds(costs + "--pp 2 --blocks-per-stage 5,3"),
              seconds("--costs f=5/6,b=10/10 --pp 2"), 1e-9);
  EXPECT_NEAR(
      seconds(costs + "--pp 8 --hop 0.5"),
      seconds("--costs f=1/1/1/1/1/1/1/4,b=2/2/2/2/2/2/2/6,c=0.5 --pp 8"),
      1e-9);
  const ProgramRun alone = RunWeir("import blocks.csv --blocks-per-stage 2");
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("without --costs"));
  const ProgramRun wrong =
      RunWeir("import blocks.csv --costs x.textproto --blocks-per-stage 2,2");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err,
              HasSubstr("--blocks-per-stage is 2,2, which are 2 numbers, "
                        "expected 4, one for each recorded stage, or one"));
  for (const auto& [blocks, what] :
       {std::pair{"0", "--blocks-per-stage is 0, expected at least 1"},
        {"0,2,0,0", "--blocks-per-stage is 0,2,0,0, which is 0 for stage 2"},
        {"0,2,2", "3 numbers, expected 4"}}) {
    const ProgramRun run = RunWeir(absl::StrCat(
        "import blocks.csv --costs x.textproto --blocks-per-stage ", blocks));
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, HasSubstr(what));
  }
}

TEST(ImportCommandTest, StepsCountFromZero) {
  for (const char* step : {"-1", "16777217", "4294967295"}) {
    const ProgramRun run = RunWeir(absl::StrCat("import x.json --step ", step));
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, HasSubstr(absl::StrCat(
                             "--step is ", step,
                             ", expected a step from 0 to 16777216")));
  }
}

// Replica 1 is 100 s ahead, and nothing but its passes is recorded.
TEST(ImportCommandTest, TheJsonHasTheClocksThatWereMoved) {
  std::string table = "step,dp_rank,stage,optype,start_ts,duration,mc,mb_id\n";
  for (int replica = 0; replica < 2; ++replica) {
    for (int rank = 0; rank < 2; ++rank) {
      absl::StrAppend(&table, "1,", replica, ",", rank, ",forward-compute,",
                      100 * replica + rank, ",1,0,0\n1,", replica, ",", rank,
                      ",backward-compute,", 100 * replica + 4 - 2 * rank,
                      ",2,0,0\n");
    }
  }
  const ProgramRun run = RunWeir(absl::StrCat(
      "import ", WriteInput("clocks_ahead.csv", table), " --format json"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto result = nlohmann::json::parse(run.out)["result"];
  EXPECT_NEAR(result["batch_seconds"].get<double>(), 6, 1e-9);
  const auto& shifts = result["replay"]["clock_shifts"];
  ASSERT_EQ(shifts.size(), 2);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(shifts[rank]["gpu"], 2 + rank);
    EXPECT_EQ(shifts[rank]["replica"], 1);
    EXPECT_EQ(shifts[rank]["pipeline_rank"], rank);
    EXPECT_NEAR(shifts[rank]["least_seconds"].get<double>(), -100, 1e-9);
    EXPECT_NEAR(shifts[rank]["most_seconds"].get<double>(), -100, 1e-9);
  }
}

TEST(ImportCommandTest, CostsKeepReplicasAndDistributions) {
  std::string table = "step,dp_rank,stage,optype,start_ts,duration,mc,mb_id\n";
  for (int replica = 0; replica < 2; ++replica) {
    for (int microbatch = 0; microbatch < 4; ++microbatch) {
      const double seconds = microbatch % 2 == 0 ? 0.5 : 1.5;
      const double start = 10 * microbatch;
      absl::StrAppend(&table, "1,", replica, ",0,forward-compute,", start, ",",
                      (1 + replica) * seconds, ",0,", microbatch, "\n");
      absl::StrAppend(&table, "1,", replica, ",0,backward-compute,", start + 5,
                      ",2,0,", microbatch, "\n");
    }
  }
  const std::string trace = WriteInput("run.csv", table);
  const ProgramRun import =
      RunWeir(absl::StrCat("import ", trace, " --costs run_costs.textproto"));
  ASSERT_EQ(import.exit_code, 0) << import.err;
  const auto step = [](const std::string& options) {
    const ProgramRun run = RunWeir(absl::StrCat(
        "simulate --costs run_costs.textproto --pp 1 --microbatches 4 "
        "--schedule gpipe --format json ",
        options));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return nlohmann::json::parse(run.out)["result"]["batch_seconds"]
        .get<double>();
  };
  EXPECT_NEAR(step("--dp 2"), 4 * (2 + 2), 1e-9);
  const ProgramRun jitter = RunWeir(
      "jitter --costs run_costs.textproto --pp 1 --microbatches 4 --schedule "
      "gpipe --jitter pass=recorded --samples 200 --format json");
  EXPECT_EQ(jitter.exit_code, 0) << jitter.err;
  const ProgramRun none = RunWeir(
      "jitter --costs f=1,b=2 --pp 1 --microbatches 4 --schedule gpipe "
      "--jitter pass=recorded");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no factors of passes"));
}

}  // namespace weir::cli::import_test
