// SPDX-License-Identifier: Apache-2.0
// Runs weir train-study as users do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::train_study_test {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kSmall[] =
    "train-study --schedule gpipe,zb-h1,interleaved-1f1b,pipedream-2bw "
    "--updates 8 --seeds 1";

std::string Contents(const std::string& name) {
  return ReadFile(TestFolder() + "/" + name).value_or("");
}

TEST(TrainStudyCommandTest, SaysTheSameByteForByteOnAnyNumberOfCores) {
  const ProgramRun first =
      RunWeir(std::string(kSmall) + " -j 1 --out first.csv");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const ProgramRun second =
      RunWeir(std::string(kSmall) + " -j 4 --out second.csv");
  EXPECT_EQ(first.out, second.out);
  EXPECT_EQ(Contents("first.csv"), Contents("second.csv"));
  EXPECT_THAT(first.out, AllOf(HasSubstr("final loss"), HasSubstr("staleness"),
                               HasSubstr("interleaved-1f1b")));
}

TEST(TrainStudyCommandTest, FlushedSchedulesTrainAlikeAndStaleOnesLater) {
  const ProgramRun run = RunWeir(std::string(kSmall) + " --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto schedules = nlohmann::json::parse(run.out)["result"]["schedules"];
  const auto losses = [&](int schedule) {
    return schedules[schedule]["curves"][0]["losses"]
        .get<std::vector<double>>();
  };
  const std::vector<double> gpipe = losses(0);
  ASSERT_EQ(gpipe.size(), 8u);
  for (int other : {1, 2}) {
    const std::vector<double> same = losses(other);
    for (size_t b = 0; b < gpipe.size(); ++b) {
      EXPECT_NEAR(same[b], gpipe[b], 1e-12 * gpipe[b]);
    }
  }
  // Delay 1: the first two batches read the initial weights.
  const std::vector<double> stale = losses(3);
  EXPECT_NEAR(stale[0], gpipe[0], 1e-12);
  EXPECT_NE(stale[1], gpipe[1]);
  EXPECT_EQ(schedules[3]["staleness_updates"], 1);
  EXPECT_LT(schedules[3]["batch_seconds"], schedules[0]["batch_seconds"]);
}

TEST(TrainStudyCommandTest, CostsByHandPriceTheBatches) {
  const ProgramRun run = RunWeir(
      "train-study --schedule gpipe,pipedream --costs f=1,b=2 --pp 2 "
      "--microbatches 2 --updates 3 --seeds 1 --format csv");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  // (2 + 2 - 1) x 3 seconds; without a flush 2 x 3, two updates per batch.
  EXPECT_THAT(run.out, AllOf(HasSubstr("gpipe,1,1,4,1,9,"),
                             HasSubstr("pipedream,1,3,12,6,18,")));
}

TEST(TrainStudyCommandTest, WhereNothingLearnsThereIsNoTarget) {
  const ProgramRun run =
      RunWeir("train-study --schedule gpipe --updates 1 --seeds 1");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("samples to target"), HasSubstr("never")));
}

TEST(TrainStudyCommandTest, PlotsTheLosses) {
  const ProgramRun run = RunWeir(std::string(kSmall) + " --plot study.svg");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(Contents("study.svg"), HasSubstr("pipedream-2bw"));
  const ProgramRun nowhere = RunWeir(
      "train-study --schedule gpipe --updates 1 --plot /proc/self/s.svg");
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("cannot be written"));
  EXPECT_LT(nowhere.err.size(), 200u);
}

TEST(TrainStudyCommandTest, WhatIsWrongIsNamedAtOnce) {
  const ProgramRun run =
      RunWeir("train-study --schedule gpip,zb-x --updates 2");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("gpip"), HasSubstr("zb-x")));
  const ProgramRun inference =
      RunWeir("train-study --schedule edgepipe --updates 2");
  EXPECT_EQ(inference.exit_code, 2);
  EXPECT_THAT(inference.err, HasSubstr("edgepipe: is forward-only"));
  const ProgramRun picture = RunWeir("train-study --plot s.gif");
  EXPECT_EQ(picture.exit_code, 2);
  EXPECT_THAT(picture.err, HasSubstr("ending in .svg, .pdf or .png"));
  const ProgramRun model =
      RunWeir("train-study --train-model mixtral-8x7b --updates 2");
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_THAT(model.err, HasSubstr("experts"));
  const ProgramRun large =
      RunWeir("train-study --train-model gpt3-175b --updates 1");
  EXPECT_EQ(large.exit_code, 2);
  EXPECT_THAT(large.err,
              HasSubstr("in double precision, but this machine has"));
}

}  // namespace weir::cli::train_study_test
