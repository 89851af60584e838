// SPDX-License-Identifier: Apache-2.0
// Runs weir import, and what reads its files, as users do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

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
