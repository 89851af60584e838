// SPDX-License-Identifier: Apache-2.0
// Tests simulate, compare, show and trace from outside, with given costs, where
// the times are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/cli/weir/program.h"
#include "tests/cli/weir/terminal_run.h"

namespace weir::cli::simulate_test {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kGivenCosts[] = "--costs f=1,b=2,c=0.1 --pp 4 --microbatches 8";

bool Exists(const std::string& name) {
  return std::filesystem::exists(absl::StrCat(TestFolder(), "/", name));
}

TEST(SimulateCommandTest, CostsNeedNoScenarioFile) {
  const ProgramRun run = RunWeir(
      absl::StrCat("simulate --schedule gpipe --format json ", kGivenCosts));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = Json::parse(run.out);
  EXPECT_EQ(json["tool"], "weir");
  EXPECT_THAT(json["command"].get<std::string>(), HasSubstr("--costs"));
  // (m + p - 1)(f + b), and six hops.
  EXPECT_NEAR(json["result"]["makespan_seconds"].get<double>(), 33.6, 1e-8);
}

TEST(SimulateCommandTest, ChunksFollowTheScheduleWhenNobodyAsks) {
  const ProgramRun run = RunWeir(absl::StrCat(
      "simulate --schedule interleaved-1f1b --format json ", kGivenCosts));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Json::parse(run.out)["result"]["chunks"], 2);
}

TEST(SimulateCommandTest, MegatronsAndPyTorchsSpellingsAreAccepted) {
  const ProgramRun ours = RunWeir(
      "simulate --schedule 1f1b --costs f=1,b=2 --pp 4 "
      "--microbatches 8 --format csv");
  const ProgramRun theirs = RunWeir(
      "simulate --schedule 1F1B --costs f=1,b=2 "
      "--pipeline-model-parallel-size 4 --microbatches=8 "
      "--format CSV");
  EXPECT_EQ(ours.exit_code, 0) << ours.err;
  EXPECT_EQ(ours.out, theirs.out);
}

TEST(SimulateCommandTest, FastIsTheSameTimeAndRefusesWhatNeedsAll) {
  const std::string question =
      absl::StrCat("simulate --schedule 1f1b --method fast ", kGivenCosts);
  const ProgramRun run = RunWeir(absl::StrCat(question, " --format json"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const ProgramRun full =
      RunWeir(absl::StrCat(question, " --method full --format json"));
  EXPECT_NEAR(Json::parse(run.out)["result"]["batch_seconds"].get<double>(),
              Json::parse(full.out)["result"]["batch_seconds"].get<double>(),
              1e-9);
  EXPECT_THAT(RunWeir(question).out, HasSubstr("microbatches simulated"));
  for (const char* refused : {"--trace t.json", "--out r.pb", "--format csv"}) {
    const ProgramRun other = RunWeir(absl::StrCat(question, " ", refused));
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_THAT(other.err, HasSubstr("expected --method full"));
  }
  EXPECT_FALSE(Exists("r.pb"));
}

TEST(SimulateCommandTest, SameQuestionSameBytes) {
  const std::string arguments =
      absl::StrCat("simulate --schedule pipedream --format json ", kGivenCosts);
  EXPECT_EQ(RunWeir(arguments).out, RunWeir(arguments).out);
}

TEST(SimulateCommandTest, OutAndTraceAreWrittenAndReadBack) {
  const ProgramRun run = RunWeir(absl::StrCat(
      "simulate --schedule gpipe --out a/r.pb --trace a/r.json ", kGivenCosts));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("wrote a/r.pb"));
  EXPECT_THAT(run.err, HasSubstr("wrote a/r.json"));
  EXPECT_EQ(RunWeir("show a/r.pb").out, run.out);
  EXPECT_EQ(RunWeir("trace a/r.pb -o b.pftrace").exit_code, 0);
  EXPECT_TRUE(Exists("b.pftrace"));
  EXPECT_EQ(RunWeir("trace a/r.pb -o b.json").exit_code, 0);
  EXPECT_EQ(RunWeirAfter("cmp a/r.json b.json &&", "--version").exit_code, 0);
}

TEST(SimulateCommandTest, QuietSaysNothingButTheResult) {
  const ProgramRun run = RunWeir(absl::StrCat(
      "simulate --schedule gpipe --out r.pb --quiet ", kGivenCosts));
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, IsEmpty());
}

TEST(SimulateCommandTest, ResultIsShownThoughAFileCannotBeWritten) {
  const ProgramRun run = RunWeir(absl::StrCat(
      "simulate --schedule gpipe --out /dev/full --trace /proc/no/t.json ",
      kGivenCosts));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.out, Not(IsEmpty()));
  EXPECT_THAT(run.err, HasSubstr("error: /dev/full: cannot be written"));
  EXPECT_THAT(run.err, HasSubstr("error: /proc/no/t.json: cannot be written"));
}

TEST(SimulateCommandTest, AFileThatCannotBeWrittenIsRefusedBefore) {
  WriteInput("file", "");
  const ProgramRun run = RunWeir(
      absl::StrCat("simulate --schedule gpipe --out file/r.pb ", kGivenCosts));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("error: file/r.pb: cannot be written"));
}

TEST(CompareCommandTest, TakesSchedulesWithAndWithoutChunks) {
  const ProgramRun run = RunWeir(absl::StrCat(
      "compare --schedule gpipe --schedule 1f1b,interleaved-1f1b --format json "
      "--trace out/ ",
      kGivenCosts));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json results = Json::parse(run.out)["results"];
  ASSERT_EQ(results.size(), 3);
  EXPECT_EQ(results[0]["chunks"], 1);
  EXPECT_EQ(results[2]["chunks"], 2);
  // The same work in two stages per rank has the smallest bubble.
  EXPECT_TRUE(Exists("out/interleaved-1f1b.pftrace")) << run.err;
}

TEST(CompareCommandTest, OneKindIsToldApartByItsOptions) {
  const ProgramRun run = RunWeir(absl::StrCat(
      "compare --schedule chimera,Chimera:pipelines=4 --format json ",
      kGivenCosts));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json results = Json::parse(run.out)["results"];
  ASSERT_EQ(results.size(), 2);
  EXPECT_EQ(results[0]["schedule"], "chimera");
  EXPECT_EQ(results[1]["schedule"], "chimera:pipelines=4");
}

TEST(CompareCommandTest, InferenceIsNotTheFastest) {
  const ProgramRun run =
      RunWeir(absl::StrCat("compare --schedule edgepipe,1f1b ", kGivenCosts));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\nfastest: 1f1b, "));
  EXPECT_THAT(run.out, HasSubstr("\nnot compared, inference only: edgepipe\n"));
}

TEST(CompareCommandTest, OneOfSeveralResultsIsShownAndTraced) {
  const ProgramRun run = RunWeir(
      absl::StrCat("compare --schedule gpipe,1f1b --out r.pb ", kGivenCosts));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(RunWeir("show r.pb").out, run.out);
  const ProgramRun one = RunWeir("show r.pb --result gpipe --format json");
  EXPECT_EQ(Json::parse(one.out)["result"]["schedule"], "gpipe");
  const ProgramRun trace = RunWeir("trace r.pb --result gpipe -o g.pftrace");
  EXPECT_THAT(trace.err, HasSubstr("timeline of gpipe"));
  const ProgramRun none = RunWeir("show r.pb --result nonesuch");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("expected gpipe, "));
}

TEST(CompareCommandTest, UnknownSchedulesAreToldBeforeAnythingRuns) {
  const ProgramRun run = RunWeir(
      absl::StrCat("compare --schedule gpipe,nonesuch,gpip ", kGivenCosts));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(
      run.err,
      HasSubstr("error: command line: --schedule is nonesuch, expected"));
  EXPECT_THAT(run.err, HasSubstr("--schedule is gpip, expected"));
}

TEST(CompareCommandTest, UnknownSchedulesAndBadFieldsAreToldTogether) {
  const ProgramRun run = RunWeir(
      "compare pipedream-2bw-gpt-2.2b --schedule gpipe,nonesuch --order x");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--schedule is nonesuch, expected"));
  EXPECT_THAT(run.err, HasSubstr("--order is \"x\""));
}

TEST(CompareCommandTest, WhatFailsIsToldBeforeTheFirstSimulation) {
  // The second schedule's order does not fit the shape. The first simulation
  // would take seconds.
  ASSERT_EQ(RunWeir("schedule convert gpipe --pp 2 --microbatches 2 -o two.csv")
                .exit_code,
            0);
  TerminalRun run(WEIR_PROGRAM,
                  "compare --schedule 1f1b,./two.csv --costs f=1,b=2 --pp 200 "
                  "--microbatches 8000");
  constexpr char kRefusal[] = "but schedule ./two.csv has 2";
  ASSERT_TRUE(run.WaitFor(kRefusal)) << run.shown();
  EXPECT_LT(run.shown().find(kRefusal), run.shown().find("[1/"));
  run.SignalGroup(SIGTERM);
  EXPECT_EQ(run.Wait(), 143);
}

TEST(CompareCommandTest, DeadlocksAreReportedBeforeTheFirstSimulation) {
  // With blocking transfers ZB-2p and V-Half deadlock, but 1F1B does not. The
  // order of V-Half depends on the costs.
  ASSERT_EQ(RunWeir("schedule convert zb-2p --pp 4 --microbatches 8 -o "
                    "hangs.csv")
                .exit_code,
            0);
  TerminalRun run(WEIR_PROGRAM,
                  "compare --schedule 1f1b,v-half,./hangs.csv --transfers "
                  "blocking --costs f=1,i=1,w=1,a=1 --pp 4 --microbatches 8");
  ASSERT_TRUE(run.WaitFor("[1/1] 1f1b")) << run.shown();
  EXPECT_EQ(run.Wait(), 1) << run.shown();
  const size_t first = run.shown().find("[1/");
  for (const char* refused : {"v-half", "./hangs.csv"}) {
    const size_t at =
        run.shown().find(absl::StrCat("deadlock: ", refused, " cannot run"));
    EXPECT_LT(at, first) << run.shown();
  }
  EXPECT_THAT(run.out(), HasSubstr("1f1b"));
}

TEST(CompareCommandTest, WhatFailsDoesNotStopTheRest) {
  // 6 microbatches do not divide into groups of 4.
  const ProgramRun run = RunWeir(
      "compare --schedule interleaved-1f1b,gpipe --costs f=1,b=2 "
      "--pp 4 --microbatches 6");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.out, HasSubstr("gpipe"));
  EXPECT_THAT(run.err, HasSubstr("multiple of pipeline"));
}

}  // namespace weir::cli::simulate_test
