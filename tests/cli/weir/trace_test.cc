// SPDX-License-Identifier: Apache-2.0
// Checks "weir import", "stragglers", "slack" and "jitter", and what other
// commands do with an imported run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cli/weir/program.h"
#include "tests/results/import/sample_trace.h"

namespace weir::cli::trace_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(TraceTest, AnImportedRunIsShownLikeAnyResult) {
  WriteInput("run.json.gz",
             results::Gzip(results::SampleJson(results::SampleOperations({}))));
  const ProgramRun import = RunWeir("import run.json.gz -o run.pb --force");
  ASSERT_EQ(import.exit_code, 0) << import.err;
  EXPECT_THAT(import.out, HasSubstr("imported, one of 3 recorded steps"));
  EXPECT_THAT(import.err, HasSubstr("wrote run.pb"));
  for (const char* command :
       {"show run.pb", "show run.pb --format json", "report run.pb -o r.html",
        "draw run.pb -o r.svg", "draw run.pb --kind idle -o i.svg",
        "trace run.pb -o r.pftrace", "trace run.pb -o r.json",
        "validate --replay run.pb --against run.pb --tolerance 0.001"}) {
    const ProgramRun run = RunWeir(absl::StrCat(
        command, std::string(command).find("-o") != std::string::npos
                     ? " --force"
                     : ""));
    EXPECT_EQ(run.exit_code, 0) << command << run.err;
  }
  const ProgramRun step = RunWeir("import run.json.gz --step 20 --format json");
  EXPECT_EQ(step.exit_code, 0) << step.err;
  EXPECT_EQ(json::parse(step.out)["result"]["method"], "imported");
  const ProgramRun result = RunWeir("import run.pb");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("run.pb: is a result of weir, expected a "
                                    "trace"));
  const ProgramRun first = RunWeir("import run.json.gz --step 0");
  EXPECT_THAT(first.err, HasSubstr("--step is 0, expected 10, 20, 30"));
  const ProgramRun wrong = RunWeir("import run.json.gz --step 4");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--step is 4, expected 10, 20, 30"));
}

TEST(TraceTest, CostsOfARunAreSimulated) {
  results::SampleShape shape;
  shape.num_replicas = 1;
  WriteInput("run.csv", results::SampleCsv(results::SampleOperations(shape)));
  const ProgramRun import = RunWeir("import run.csv --costs c.textproto");
  ASSERT_EQ(import.exit_code, 0) << import.err;
  EXPECT_THAT(import.err, Not(HasSubstr("--jitter")));  // equal passes
  const ProgramRun run = RunWeir(
      "simulate --costs c.textproto --schedule gpipe --pp 2 --microbatches 2 "
      "--format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  // Given costs have no optimizer steps, which the trace has.
  EXPECT_EQ(RunWeir("import run.csv -o measured.pb --force").exit_code, 0);
  EXPECT_EQ(RunWeir("simulate --costs c.textproto --schedule gpipe --pp 2 "
                    "--microbatches 2 --out predicted.pb --force")
                .exit_code,
            0);
  const ProgramRun validated =
      RunWeir("validate --replay measured.pb --against predicted.pb");
  EXPECT_EQ(validated.exit_code, 0) << validated.err;
  EXPECT_THAT(validated.out + validated.err,
              HasSubstr("optimizer steps of measured.pb are not compared"));
  // GPipe: (m + p - 1) (f + b) and a hop in each direction.
  EXPECT_NEAR(json::parse(run.out)["result"]["batch_seconds"].get<double>(),
              3 * (1 + 2) + 2 * 0.25, 1e-9);
}

TEST(TraceTest, JitterOfARunIsSuggested) {
  results::SampleShape shape;
  shape.num_replicas = 1;
  shape.num_microbatches = 8;
  shape.factor = [](const results::RecordedOperation& o) {
    return o.microbatch % 2 == 0 ? 0.9 : 1.1;
  };
  WriteInput("varied.csv",
             results::SampleCsv(results::SampleOperations(shape)));
  const ProgramRun import = RunWeir("import varied.csv --costs v.textproto");
  ASSERT_EQ(import.exit_code, 0) << import.err;
  EXPECT_THAT(import.err, HasSubstr("--jitter pass=lognormal:0.1"));
}

TEST(TraceTest, StragglersAreNamed) {
  results::SampleShape shape;
  shape.num_microbatches = 8;
  shape.factor = [](const results::RecordedOperation& o) {
    return o.replica == 1 && o.rank == 0 ? 2.0 : 1.0;
  };
  WriteInput("slow.csv", results::SampleCsv(results::SampleOperations(shape)));
  const ProgramRun table = RunWeir("stragglers slow.csv");
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("slowdown S: 1."),
                               HasSubstr("suspect: replica 1, stage 0")));
  const ProgramRun run = RunWeir("stragglers slow.csv --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(json::parse(run.out)["config"]["traces"][0], "slow.csv");
  const json result = json::parse(run.out)["result"];
  EXPECT_EQ(result["by_worker"][0]["name"], "replica 1, stage 0");
  EXPECT_EQ(RunWeir("stragglers nowhere.json").exit_code, 2);
}

// GPipe with equal stages: the last forward starts the backwards, and only
// passes of the ramps have slack.
TEST(TraceTest, SlackOfSchedules) {
  const std::string scenario =
      "--schedule gpipe,1f1b --costs f=1,b=2 --pp 4 --microbatches 8";
  const ProgramRun table = RunWeir("slack " + scenario);
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("median slack"));
  const ProgramRun run = RunWeir("slack " + scenario + " --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(json::parse(run.out)["config"]["scenarios"].size(), 2);
  const json all = json::parse(run.out)["result"]["schedules"];
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0]["passes"].size(), 2 * 4 * 8);
  EXPECT_EQ(all[0]["makespan_seconds"], 33);
  EXPECT_TRUE(all[0]["is_exact"].get<bool>());
  for (const json& pass : all[0]["passes"]) {
    EXPECT_GE(pass["slack_seconds"].get<double>(), 0);
    if (pass["action"] != "3F0") continue;
    EXPECT_EQ(pass["slack_seconds"], 0);
  }
  const ProgramRun compare = RunWeir("compare --slack " + scenario);
  ASSERT_EQ(compare.exit_code, 0) << compare.err;
  EXPECT_THAT(compare.out, HasSubstr("median slack"));
  EXPECT_THAT(RunWeir("compare " + scenario).out,
              Not(HasSubstr("median slack")));
  const ProgramRun both = RunWeir("compare --slack --format json " + scenario);
  ASSERT_EQ(both.exit_code, 0) << both.err;
  EXPECT_EQ(json::parse(both.out)["slack"], all);
  EXPECT_EQ(RunWeir("compare --slack --format csv " + scenario).exit_code, 2);
}

// PipeDream is simulated for several batches; all times are those of a step.
TEST(TraceTest, StepsOfSchedulesWithoutFlushAreBatches) {
  const std::string scenario =
      "--schedule 1f1b,pipedream --costs f=1,b=2 --pp 4 --microbatches 8 "
      "--format json";
  const ProgramRun compare = RunWeir("compare " + scenario);
  const ProgramRun slack = RunWeir("slack " + scenario);
  const ProgramRun jitter =
      RunWeir("jitter " + scenario + " --jitter pass=normal:0 --samples 9");
  for (const auto* run : {&compare, &slack, &jitter}) {
    ASSERT_EQ(run->exit_code, 0) << run->err;
  }
  EXPECT_EQ(json::parse(jitter.out)["config"]["scenarios"].size(), 2);
  for (const int i : {0, 1}) {
    const double step = i == 0 ? 33 : 24;
    EXPECT_EQ(json::parse(slack.out)["result"]["schedules"][i]["batch_seconds"],
              step);
    const json of = json::parse(jitter.out)["result"]["schedules"][i];
    EXPECT_EQ(of["mean_seconds"], step);
    EXPECT_EQ(of["batch_seconds"], step);
  }
  EXPECT_THAT(RunWeir("jitter --schedule pipedream --costs f=1,b=2 --pp 4 "
                      "--microbatches 8 --jitter pass=normal:0.1")
                  .out,
              HasSubstr("batches were simulated; a step time is that of one"));
  EXPECT_THAT(RunWeir("slack --schedule zb-v --costs f=1,i=1,w=1 --pp 4 "
                      "--microbatches 8")
                  .out,
              HasSubstr("zb-v v=2"));
}

TEST(TraceTest, JitterOfSchedules) {
  const std::string scenario =
      "--schedule gpipe,1f1b --costs f=1,b=2 --pp 4 --microbatches 8 ";
  const ProgramRun run =
      RunWeir("jitter " + scenario +
              "--jitter pass=exponential:0.1 --jitter stage2=constant:1.1 "
              "--samples 50 --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json result = json::parse(run.out)["result"];
  EXPECT_EQ(result["sources"].size(), 2);
  for (const json& schedule : result["schedules"]) {
    EXPECT_EQ(schedule["samples_seconds"].size(), 50);
    EXPECT_EQ(schedule["makespan_seconds"], 33);
    EXPECT_GT(schedule["mean_seconds"].get<double>(), 33 * 1.1);
  }
  const ProgramRun none = RunWeir("jitter " + scenario);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("--jitter is not given, expected at least "
                                  "one source, such as --jitter pass="));
  const ProgramRun table =
      RunWeir("jitter " + scenario + "--samples 10 --jitter pass=constant:1");
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("+0.00 % +- 0.00 %"));
  const ProgramRun bad = RunWeir("jitter " + scenario + "--jitter pass=x:1");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(
      bad.err,
      HasSubstr("--jitter is pass=x:1, with x:1, expected constant:FACTOR"));
  EXPECT_EQ(
      RunWeir("jitter " + scenario + "--jitter gpu9=constant:2").exit_code, 2);
}

}  // namespace
}  // namespace weir::cli::trace_test
