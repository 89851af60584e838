// SPDX-License-Identifier: Apache-2.0
// Runs weir goodput as users do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::goodput_test {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kBloom[] =
    "goodput --step-seconds 105 --num-gpus 384 --reliability bloom-176b "
    "--checkpoint-bytes 2.3e12 --checkpoint-bandwidth 57.5e9";

nlohmann::json ResultOf(const std::string& arguments) {
  const ProgramRun run = RunWeir(arguments + " --format json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.exit_code == 0 ? nlohmann::json::parse(run.out)["result"]
                            : nlohmann::json();
}

TEST(GoodputCommandTest, ShowsIntervalsGoodputAndInvestments) {
  const ProgramRun run = RunWeir(kBloom);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("interval (Young)"), HasSubstr("goodput (Daly)"),
                    HasSubstr("checkpoint bandwidth"), HasSubstr("in-memory")));
}

TEST(GoodputCommandTest, BloomsIntervalLosesAtMostThreeHours) {
  const auto result = ResultOf(absl::StrCat(kBloom, " --save-interval 100"));
  EXPECT_EQ(result["interval_steps"], 100);
  EXPECT_NEAR(result["most_lost_seconds"].get<double>(), 10540, 1e-6);
  EXPECT_NEAR(result["checkpoint_stall_seconds"].get<double>(), 40, 1e-9);
}

TEST(GoodputCommandTest, AScenarioGivesStepSizeAndCheckpoint) {
  const auto result = ResultOf(
      "goodput llama-3-70b-64-h100 --tokens 1e12 --checkpoint-bandwidth 20e9 "
      "--price-per-gpu-hour 2 --runs 50");
  const ProgramRun step = RunWeir("simulate llama-3-70b-64-h100 --format json");
  const auto simulated = nlohmann::json::parse(step.out)["result"];
  const double seconds = simulated["batch_seconds"].get<double>();
  const double tokens = simulated["tokens_per_second"].get<double>() * seconds;
  EXPECT_NEAR(result["work_seconds"].get<double>(),
              std::ceil(1e12 / tokens) * seconds, 1e-6 * 1e7);
  // 70.6 B parameters of 14 bytes.
  EXPECT_NEAR(result["checkpoint_stall_seconds"].get<double>(),
              70.55e9 * 14 / 20e9, 0.05);
  EXPECT_NEAR(result["cost"]["mean"].get<double>(),
              result["wall_seconds"]["mean"].get<double>() / 3600 * 64 * 2, 1);
}

TEST(GoodputCommandTest, FlagsThatTheScenarioReplacesAreRefused) {
  for (const auto& [flags, message] :
       {std::pair("--gpus-per-node 4", "--gpus-per-node is given with a"),
        std::pair("--tokens-per-step 4e6", "--tokens-per-step is given with a"),
        std::pair("--num-gpus 4", "--num-gpus is given with a"),
        std::pair("--async-save --checkpoint sync", "--async-save is given"),
        std::pair("--async-save --checkpoint in-memory",
                  "--async-save is given")}) {
    const ProgramRun run = RunWeir(
        absl::StrCat("goodput llama-3-70b-64-h100 --checkpoint-bandwidth 20e9 "
                     "--step-seconds 10 --runs 2 ",
                     flags));
    EXPECT_EQ(run.exit_code, 2) << flags;
    EXPECT_THAT(run.err, HasSubstr(message)) << flags;
  }
  // Given costs have no nodes and no tokens.
  const auto result = ResultOf(
      "goodput --costs f=1,b=2 --pp 4 --microbatches 8 --schedule 1f1b "
      "--checkpoint-bandwidth 1e9 --checkpoint-bytes 10e9 --gpus-per-node 2 "
      "--tokens-per-step 1e6 --tokens 1e9 --async-save --checkpoint async");
  EXPECT_GT(result["goodput"].get<double>(), 0.9);
}

TEST(GoodputCommandTest, GivenCostsNeedACheckpoint) {
  const std::string costs =
      "goodput --costs f=1,b=2 --pp 4 --microbatches 8 --schedule 1f1b "
      "--checkpoint-bandwidth 1e9";
  const ProgramRun run = RunWeir(costs);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--checkpoint-bytes is not given"));
  const auto result = ResultOf(costs + " --checkpoint-bytes 10e9");
  EXPECT_GT(result["goodput"].get<double>(), 0.9);
}

TEST(GoodputCommandTest, BadFlagsAreNamed) {
  for (const auto& [flags, message] :
       {std::pair("", "no scenario is given, expected one, or"),
        std::pair("--step-seconds 1 --num-gpus 8 --checkpoint-bytes 1e9 "
                  "--mtbf nonesuch=3h",
                  "nonesuch is not a class of failures"),
        std::pair("--step-seconds 1 --num-gpus 8 --checkpoint-bytes 1e9 "
                  "--mtbf software=1h,gpu=0.0001h --restart-seconds 4000",
                  "makes no progress"),
        std::pair("--spares -3",
                  "--spares is -3, expected a whole number "
                  "from 0 to"),
        std::pair("--tokens 1e30",
                  "expected a number of tokens from 1 to 1e18"),
        std::pair("--step-seconds 1 --num-gpus 8 --checkpoint-bytes 1e9 "
                  "--mtbf gpu=1e-9",
                  "as in 50000h, from 1e-06 to 1e+12 hours"),
        std::pair("--step-seconds 1 --num-gpus 8 --checkpoint-bytes 1e9 "
                  "--reliability nonesuch",
                  "nonesuch"),
        std::pair("--step-seconds 1 --num-gpus 8 --checkpoint-bytes 1e9 "
                  "--tokens 1e9",
                  "--tokens-per-step"),
        std::pair("--step-seconds 1 --num-gpus 8 --checkpoint-bytes 1e9 "
                  "--elastic --spares 0",
                  "--elastic needs the replicas of a scenario")}) {
    const ProgramRun run =
        RunWeir(absl::StrCat("goodput --checkpoint-bandwidth 1e9 ", flags));
    EXPECT_EQ(run.exit_code, 2) << flags;
    EXPECT_THAT(run.err, HasSubstr(message)) << flags;
  }
  EXPECT_THAT(RunWeir("goodput --step-seconds 1 --num-gpus 8").err,
              HasSubstr("--checkpoint-bandwidth is not given"));
}

}  // namespace weir::cli::goodput_test
