// SPDX-License-Identifier: Apache-2.0
// Tests "weir validate" from outside, with given costs, where the times are
// known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cli/weir/program.h"
#include "tests/golden.h"

namespace weir::cli::validate_test {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// GPipe and 1F1B with m microbatches on p ranks take (m + p - 1)(f + b): 33, 45
// and 18. The predictions are 10 % above, 10 % below and 50 % above the
// measured times.
constexpr char kRuns[] =
    "name,schedule,pp,microbatches,costs,step_seconds,note\n"
    "flush,gpipe,4,8,\"f=1,b=2\",30,of no interest\n"
    "steady,1F1B,4,12,\"f=1,b=2\",50,\n"
    "short,1f1b,3,4,\"f=1,b=2\",12,\n";

TEST(ValidateCommandTest, ErrorsOfClosedFormsAreExact) {
  WriteInput("runs.csv", kRuns);
  const ProgramRun run = RunWeir("validate --measured runs.csv --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json result = Json::parse(run.out)["result"];
  ASSERT_EQ(result["numbers"].size(), 3);
  EXPECT_NEAR(result["numbers"][0]["error"].get<double>(), 0.1, 1e-9);
  EXPECT_NEAR(result["numbers"][1]["error"].get<double>(), -0.1, 1e-9);
  EXPECT_NEAR(result["numbers"][2]["error"].get<double>(), 0.5, 1e-9);
  const Json& statistics = result["statistics"][0];
  EXPECT_NEAR(statistics["mean_absolute_error"].get<double>(), 0.7 / 3, 1e-9);
  EXPECT_NEAR(statistics["bias"].get<double>(), 0.5 / 3, 1e-9);
  EXPECT_EQ(statistics["worst_line"], 4);
}

TEST(ValidateCommandTest, TheTableIsAGolden) {
  WriteInput("runs.csv", absl::StrCat(kRuns, "none,1f1b,0,4,\"f=1,b=2\",12,\n",
                                      "odd,gpipf,3,4,\"f=1,b=2\",12,\n"));
  const ProgramRun run = RunWeir("validate --measured runs.csv --jobs 3");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  ExpectGolden("cli/weir/golden/validate.txt", run.out);
}

TEST(ValidateCommandTest, TheCsvHasEveryRowInItsOrder) {
  WriteInput("runs.csv", kRuns);
  const ProgramRun run = RunWeir("validate --measured runs.csv --format csv");
  EXPECT_EQ(run.out,
            "line,row,quantity,measured,predicted,error,fits_memory,reason,"
            "low,high,memory_use\n"
            "2,flush,step_seconds,30,33,0.10000,true,,,,\n"
            "3,steady,step_seconds,50,45,-0.10000,true,,,,\n"
            "4,short,step_seconds,12,18,0.50000,true,,,,\n");
}

// Checks that every predicted time has an interval, and that the result states
// whether it contains the measured time.
TEST(ValidateCommandTest, IntervalsHoldWhatTheyShould) {
  const std::string run = "validate --measured runs.csv --format json";
  const std::string head =
      "scenario,gbs,dp,step_seconds\npipedream-flush-gpt-2.2b,64,8,";
  WriteInput("runs.csv", absl::StrCat(head, "1\n"));
  ProgramRun first = RunWeir(run);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  Json number = Json::parse(first.out)["result"]["numbers"][0];
  const double predicted = number["predicted"], low = number["low"],
               high = number["high"];
  EXPECT_LT(low, predicted);
  EXPECT_GT(high, predicted);
  WriteInput("runs.csv",
             absl::StrCat(head, predicted, "\npipedream-flush-gpt-2.2b,64,8,",
                          1.01 * high, "\n"));
  const Json result = Json::parse(RunWeir(run).out)["result"];
  EXPECT_EQ(result["statistics"][0]["inside_interval"], 0.5);
  EXPECT_THAT(RunWeir("validate --measured runs.csv").out,
              HasSubstr("inside interval"));
}

TEST(ValidateCommandTest, TheMeanAboveTheToleranceIsAVerdict) {
  WriteInput("runs.csv", kRuns);
  const ProgramRun below =
      RunWeir("validate --measured runs.csv --tolerance 0.24");
  EXPECT_EQ(below.exit_code, 0) << below.err;
  const ProgramRun above =
      RunWeir("validate --measured runs.csv --tolerance 0.23");
  EXPECT_EQ(above.exit_code, 1);
  EXPECT_THAT(above.err, HasSubstr("mean absolute error 23.3 %"));
}

TEST(ValidateCommandTest, NumberOfProcessesChangesNothing) {
  WriteInput("runs.csv", kRuns);
  const std::string command = "validate --measured runs.csv --format csv -j ";
  EXPECT_EQ(RunWeir(absl::StrCat(command, 1)).out,
            RunWeir(absl::StrCat(command, 3)).out);
}

TEST(ValidateCommandTest, ConditionsOptionsAndMapsReachTheRows) {
  WriteInput("runs.csv", "sched,ranks,ms\ngpipe,4,33000\n1f1b,2,1\n");
  WriteInput("map.textproto", R"(
      columns { from: "sched" to: "schedule" }
      columns { from: "ranks" to: "pp" }
      columns { from: "ms" to: "step_ms" })");
  const ProgramRun run = RunWeir(
      "validate --measured runs.csv --columns map.textproto --where pp=4 "
      "--costs f=1,b=2 --microbatches 8 --tolerance 0.001");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 measured run, 1 more excluded"));
}

TEST(ValidateCommandTest, AColumnThatMeansNothingIsAnErrorWithANearName) {
  WriteInput("runs.csv", "schedul,wheather,step_seconds\n1f1b,fine,1\n");
  const ProgramRun run = RunWeir("validate --measured runs.csv");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("error: runs.csv: column schedul is unknown; "
                                 "did you mean schedule?"));
  EXPECT_THAT(run.err, HasSubstr("column wheather is unknown"));
}

TEST(ValidateCommandTest, TwoNamesOfOneOptionAreAnError) {
  WriteInput("runs.csv",
             "pp,pipeline_model_parallel_size,step_seconds\n2,4,1\n");
  const ProgramRun run = RunWeir("validate --measured runs.csv --wide");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.out,
              HasSubstr("runs.csv:2: pipeline_model_parallel_size has the same "
                        "meaning as pp, expected one of them"));
}

TEST(ValidateCommandTest, ABadFieldSkipsItsRowWithFileLineAndColumn) {
  WriteInput("runs.csv", absl::StrCat(kRuns, "odd,1f1b,two,4,\"f=1\",fast,\n"));
  const ProgramRun run = RunWeir("validate --measured runs.csv");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("1 of 4 runs could not be simulated"));
  EXPECT_THAT(run.out, HasSubstr("runs.csv:5: pp is two, expected"));
  EXPECT_THAT(run.out, HasSubstr("runs.csv:5: step_seconds is "));
}

TEST(ValidateCommandTest, NothingToCompareIsAnError) {
  WriteInput("runs.csv", "schedule,pp\n1f1b,2\n");
  ProgramRun run = RunWeir("validate --measured runs.csv");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("has no measured column"));
  WriteInput("runs.csv", "schedule,pp,step_seconds\nnone,2,1\n");
  run = RunWeir("validate --measured runs.csv");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("no run could be compared"));
  EXPECT_EQ(RunWeir("validate --measured none.csv").exit_code, 2);
}

TEST(ValidateCommandTest, AModelMayBeWrittenOutInTheRow) {
  WriteInput("runs.csv",
             "num_layers,hidden_size,num_heads,vocabulary_size,causal,cluster,"
             "nodes,dp,schedule,mbs,gbs,seq,tflops_per_gpu,flops_formula,"
             "peak_memory_gib\n"
             "12,768,12,50304,true,dgx-a100,1,1,1f1b,8,8,1024,60,model72,20\n"
             "480,8192,64,50304,true,dgx-a100,1,1,1f1b,8,8,1024,OOM,,\n");
  const ProgramRun run = RunWeir("validate --measured runs.csv");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("tflops_per_gpu"));
  EXPECT_THAT(run.out, HasSubstr("peak_memory_gib"));
  EXPECT_THAT(
      run.out,
      HasSubstr("1 of 1 runs that ran out of memory are predicted to do so"));
  EXPECT_THAT(run.out, Not(HasSubstr("could not be simulated")));
}

}  // namespace weir::cli::validate_test
