// SPDX-License-Identifier: Apache-2.0
// Tests pages of commands, and "weir report" of files of all kinds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"
#include "tests/results/import/sample_trace.h"

namespace weir::cli::report_test {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

std::string ReadInput(const std::string& name) {
  return ReadFile(absl::StrCat(TestFolder(), "/", name)).value_or("");
}

constexpr char kSweep[] =
    "sweep --schedule gpipe --costs f=1,b=2 --grid pp=2,4 --grid "
    "num_microbatches=4,8 --jobs 1 ";

// Checks that the page of --report and that of the stored JSON are the same.
TEST(ReportCommandTest, StoredJsonGivesThePageOfTheCommand) {
  WriteInput("profile.csv",
             "stage,instruction,frequency,time,energy\n"
             "0,forward,1400,1,300\n0,forward,700,2,200\n"
             "0,backward,1400,2,600\n0,backward,700,4,400\n");
  WriteInput("trace.csv", results::SampleCsv(results::SampleOperations({})));
  for (const char* command :
       {"train-study --schedule gpipe --updates 2 --seeds 1",
        "stragglers trace.csv",
        "goodput --step-seconds 105 --num-gpus 384 --checkpoint-bytes 2.3e12 "
        "--checkpoint-bandwidth 57.5e9 --runs 20",
        "energy profile.csv --blocking-power 50 --microbatches 4 --stragglers "
        "1.5 --power-cap 200"}) {
    SCOPED_TRACE(command);
    const ProgramRun run = RunWeir(absl::StrCat(
        command,
        " --format json --report a.html --force > a.json && cat a.json"));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("wrote a.html (open it in a browser)"));
    const ProgramRun again = RunWeir("report a.json -o b.html --force");
    ASSERT_EQ(again.exit_code, 0) << again.err;
    EXPECT_FALSE(ReadInput("a.html").empty());
    EXPECT_EQ(ReadInput("a.html"), ReadInput("b.html"));
  }
}

TEST(ReportCommandTest, TheFolderOfASweepIsAReport) {
  ASSERT_EQ(RunWeir(absl::StrCat(kSweep, "--out report-sweep --report a.html"))
                .exit_code,
            0);
  EXPECT_EQ(RunWeir("report report-sweep -o b.html").exit_code, 0);
  EXPECT_EQ(RunWeir("collect report-sweep --report c.html").exit_code, 0);
  for (const char* name : {"a.html", "b.html", "c.html"}) {
    EXPECT_GT(ReadInput(name).size(), 10000) << name;
  }
}

TEST(ReportCommandTest, CollectedJsonHasAllPoints) {
  ASSERT_EQ(RunWeir(absl::StrCat(kSweep, "--out report-points")).exit_code, 0);
  const Json result =
      Json::parse(RunWeir("collect report-points --format json").out)["result"];
  EXPECT_EQ(result["fields"], Json({"pp", "num_microbatches"}));
  ASSERT_EQ(result["points"].size(), 4);
  for (const Json& point : result["points"]) {
    // The closed form of GPipe.
    const double pp = point["pp"], microbatches = point["num_microbatches"];
    EXPECT_NEAR(point["batch_seconds"].get<double>(),
                3 * (microbatches + pp - 1), 1e-9);
    EXPECT_EQ(point["outcome"], "done");
  }
}

TEST(ReportCommandTest, ValidatedJsonHasTheColumnsOfTheRows) {
  WriteInput("runs.csv",
             "name,schedule,pp,microbatches,costs,step_seconds\n"
             "a,gpipe,4,8,\"f=1,b=2\",30\n");
  const ProgramRun run =
      RunWeir("validate --measured runs.csv --format json --report v.html");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json result = Json::parse(run.out)["result"];
  EXPECT_EQ(result["runs"][0]["line"], 2);
  EXPECT_EQ(result["runs"][0]["fields"]["pp"], "4");
  EXPECT_EQ(result["runs"][0]["fields"]["schedule"], "gpipe");
}

TEST(ReportCommandTest, OtherFilesAreNamed) {
  WriteInput("trace.json", "{\"traceEvents\": []}");
  WriteInput("page.html", "<!DOCTYPE html><p>hi");
  WriteInput("page.pb", "<!DOCTYPE html><p>hi");
  WriteInput("text.pb", "hello\n");
  WriteInput("shard-0-of-1.jsonl", "{\"a\": 1}\n{}\n");
  WriteInput("cluster.textproto", "groups { count: 2 node { num_gpus: 8 } }\n");
  WriteInput("sweep.textproto", "axes { field: \"schedule\" }\n");
  WriteInput("points.csv", "point,pp,outcome,error,method\n");
  RunWeir(
      "simulate --schedule gpipe --costs f=1,b=2 --pp 2 --microbatches 2 "
      "--format json > run.json; mkdir -p empty");
  const auto message = [](const std::string& file) {
    const ProgramRun run =
        RunWeir(absl::StrCat("report ", file, " -o ", file, ".report.html"));
    EXPECT_EQ(run.exit_code, 2) << run.err;
    return run.err;
  };
  constexpr char kExpected[] =
      ", expected a file written by --out or by --format json, the folder of a "
      "sweep, or a scenario";
  EXPECT_THAT(message("trace.json"), HasSubstr("is a JSON trace, expected"));
  EXPECT_THAT(message("run.json"),
              HasSubstr("is the JSON output of weir simulate"));
  EXPECT_THAT(message("page.html"),
              HasSubstr(absl::StrCat("is an HTML page", kExpected)));
  EXPECT_THAT(message("page.pb"),
              HasSubstr(absl::StrCat("is an HTML page", kExpected)));
  EXPECT_THAT(message("text.pb"), HasSubstr("is not a result file of weir"));
  EXPECT_THAT(message("shard-0-of-1.jsonl"),
              HasSubstr("is a file of records, such as a shard of a sweep"));
  EXPECT_THAT(message("cluster.textproto"),
              HasSubstr(absl::StrCat("is a cluster", kExpected)));
  EXPECT_THAT(message("sweep.textproto"),
              HasSubstr(absl::StrCat("is a sweep", kExpected)));
  EXPECT_THAT(
      message("points.csv"),
      HasSubstr(absl::StrCat("is the CSV table of a sweep", kExpected)));
  WriteInput("table.csv", "name,seconds\na,1\n");
  EXPECT_THAT(message("table.csv"),
              HasSubstr(absl::StrCat("is a CSV table", kExpected)));
  WriteInput("prose.txt", "Results of the last run.\nNone yet.\n");
  EXPECT_THAT(message("prose.txt"),
              HasSubstr("is a text file without any field of a scenario"));
  // Of a scenario with an error, the error says most.
  WriteInput("typo.textproto", "modle: \"gpt2\"\n");
  EXPECT_THAT(message("typo.textproto"), HasSubstr("did you mean model?"));
  EXPECT_THAT(message("empty"),
              HasSubstr("is a folder without points of a sweep"));
}

TEST(ReportCommandTest, OptionsOfAScenarioNeedAScenario) {
  WriteInput("x.json", "{}");
  EXPECT_THAT(RunWeir("report x.json --pp 4 -o x.html").err,
              HasSubstr("x.json is a result, expected no options"));
  EXPECT_THAT(RunWeir("sweep --costs f=1,b=2 --grid pp=2,4 --slurm --report "
                      "x.html")
                  .err,
              HasSubstr("--report is given with --slurm, but without --wait"));
}

}  // namespace weir::cli::report_test
