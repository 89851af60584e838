// SPDX-License-Identifier: Apache-2.0
// Tests "weir validate --replay" from outside: 1F1B with 3 microbatches on 2
// ranks, f=1 and b=2 takes (3 + 1)(1 + 2) = 12 s.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"
#include "tests/golden.h"

namespace weir::cli::validate_replay_test {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kShape[] = "--pp 2 --microbatches 3 --costs f=1,b=2";

void SimulateInto(const std::string& file, const std::string& shape,
                  const std::string& schedule = "1f1b") {
  const ProgramRun run = RunWeir(absl::StrCat("simulate --schedule ", schedule,
                                              " ", shape, " --out ", file));
  ASSERT_EQ(run.exit_code, 0) << run.err;
}

// The same passes, but the last backward of rank 0 takes two seconds longer.
constexpr char kMeasured[] =
    "rank,action,start_seconds,end_seconds\n"
    "0,0F0,0,1\n0,0F1,1,2\n0,0B0,4,6\n0,0F2,6,7\n0,0B1,7,9\n0,0B2,10,14\n"
    "1,1F0,1,2\n1,1B0,2,4\n1,1F1,4,5\n1,1B1,5,7\n1,1F2,7,8\n1,1B2,8,10\n";

TEST(ValidateReplayTest, AResultAgainstItselfPassesAnyTolerance) {
  SimulateInto("a.pb", kShape);
  const ProgramRun run = RunWeir(
      "validate --replay a.pb --against a.pb --tolerance 1e-12 --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json result = Json::parse(run.out)["result"];
  EXPECT_EQ(result["makespan_seconds"]["predicted"], 12);
  EXPECT_EQ(result["makespan_seconds"]["error"], 0);
  EXPECT_EQ(result["idle"]["predicted"], result["idle"]["measured"]);
  EXPECT_EQ(result["actions"].size(), 12);
}

TEST(ValidateReplayTest, TheToleranceSaysWhatIsAboveIt) {
  SimulateInto("a.pb", kShape);
  WriteInput("measured.csv", kMeasured);
  const std::string run = "validate --replay measured.csv --against a.pb ";
  const ProgramRun above = RunWeir(run + "--tolerance 0.14");
  EXPECT_EQ(above.exit_code, 1);
  EXPECT_THAT(above.err,
              HasSubstr("above the tolerance of 14 %: makespan -14.29 %"));
  EXPECT_EQ(RunWeir(run + "--tolerance 0.15").exit_code, 0);
  EXPECT_EQ(RunWeir(run).exit_code, 0);
  const ProgramRun two =
      RunWeir(run + "--tolerance 0.14 --memory-tolerance 0.005");
  EXPECT_EQ(two.exit_code, 1);
  EXPECT_THAT(two.err, HasSubstr("above the tolerance of 14 % (memory: 0.5 %): "
                                 "makespan -14.29 %"));
  // The timeline has no memory.
  EXPECT_EQ(RunWeir(run + "--memory-tolerance 0.005").exit_code, 0);
  const ProgramRun table =
      RunWeir("validate --measured gone.csv --memory-tolerance 0.005");
  EXPECT_EQ(table.exit_code, 2);
  EXPECT_THAT(table.err, HasSubstr("--memory-tolerance requires --replay"));
}

TEST(ValidateReplayTest, TheTableIsAGolden) {
  SimulateInto("a.pb", kShape);
  WriteInput("measured.csv", kMeasured);
  const ProgramRun run =
      RunWeir("validate --replay measured.csv --against a.pb");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  ExpectGolden("cli/weir/golden/validate_replay.txt", run.out);
}

TEST(ValidateReplayTest, TheExampleOfTheDocumentationIsWhatWeirPrints) {
  const std::string shape = "--pp 4 --microbatches 8 --costs ";
  SimulateInto("predicted.pb", shape + "f=1,b=2,c=0.25");
  SimulateInto("measured.pb", shape + "f=1/1/1.2/1,b=2/2/2.4/2,c=0.3");
  const ProgramRun run =
      RunWeir("validate --replay measured.pb --against predicted.pb");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto text = ReadFile(WEIR_SOURCE_DIR "/docs/measure-the-bubble.md");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr(run.out));
}

TEST(ValidateReplayTest, TheCsvHasEveryAction) {
  SimulateInto("a.pb", kShape);
  WriteInput("measured.csv", kMeasured);
  const ProgramRun run =
      RunWeir("validate --replay measured.csv --against a.pb --format csv");
  EXPECT_THAT(run.out, HasSubstr("\n0,0B2,10,2,10,4,0,-0.5\n"));
}

TEST(ValidateReplayTest, TheTraceHasPredictedAboveMeasured) {
  SimulateInto("a.pb", kShape);
  const ProgramRun run =
      RunWeir("validate --replay a.pb --against a.pb --trace both.json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr("wrote both.json (predicted and measured timelines"));
  const auto text = ReadFile(TestFolder() + "/both.json");
  ASSERT_TRUE(text.ok());
  const Json trace = Json::parse(*text);
  std::vector<std::string> processes;
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") {
      processes.push_back(event["args"]["name"]);
    }
  }
  EXPECT_THAT(processes,
              testing::ElementsAre("rank 0 predicted", "rank 0 measured",
                                   "rank 1 predicted", "rank 1 measured"));
}

TEST(ValidateReplayTest, OneOfSeveralResultsIsChosenByName) {
  const ProgramRun compared = RunWeir(
      absl::StrCat("compare --schedule gpipe,1f1b ", kShape, " --out both.pb"));
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  SimulateInto("a.pb", kShape, "gpipe");
  const ProgramRun several =
      RunWeir("validate --replay a.pb --against both.pb");
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_THAT(several.err,
              HasSubstr("both.pb: holds 2 results, expected --result with one "
                        "of gpipe, 1f1b"));
  const ProgramRun one = RunWeir(
      "validate --replay a.pb --against both.pb --result gpipe --tolerance "
      "1e-9");
  EXPECT_EQ(one.exit_code, 0) << one.err;
}

TEST(ValidateReplayTest, FlagsThatDoNotGoTogetherAreNamed) {
  const ProgramRun both =
      RunWeir("validate --replay a.pb --measured b.csv --against c.pb");
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--measured or --replay, not both"));
  EXPECT_THAT(RunWeir("validate").err,
              HasSubstr("expected --measured or --replay"));
  EXPECT_THAT(RunWeir("validate --measured b.csv --against c.pb").err,
              HasSubstr("--against requires --replay"));
  EXPECT_THAT(RunWeir("validate --replay a.pb --where tp=2 --pp 4").err,
              AllOf(HasSubstr("--against is missing"),
                    HasSubstr("--where requires --measured"),
                    HasSubstr("options of the simulation require --measured")));
  EXPECT_THAT(RunWeir("validate --replay a --against b --trace x.txt").err,
              HasSubstr("--trace is x.txt, expected"));
}

TEST(ValidateReplayTest, WithoutFlushTheBatchesMustBeAsMany) {
  SimulateInto("replay.pb", absl::StrCat(kShape, " --batches 2"), "pipedream");
  SimulateInto("steady.pb", kShape, "pipedream");
  const ProgramRun run =
      RunWeir("validate --replay replay.pb --against steady.pb");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("simulate with --batches 2 and --out"));
}

}  // namespace weir::cli::validate_replay_test
