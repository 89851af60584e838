// SPDX-License-Identifier: Apache-2.0
// Checks "weir draw" and "weir simulate --timeline" with each kind of input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/units.h"
#include "cli/options/picture_files.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::draw_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kGiven[] =
    " --schedule gpipe,1f1b --costs f=1,b=2,c=0.1 --pp 4 --microbatches 4 ";

constexpr char kModel[] =
    "--model gpt2 --cluster dgx-h100 --nodes 1 --pp 2 --dp 4 --gbs 8 --seq 512 "
    "--schedule 1f1b ";

std::string Contents(const std::string& name) {
  const auto contents = ReadFile(TestFolder() + "/" + name);
  EXPECT_TRUE(contents.ok()) << contents.status();
  return contents.value_or("");
}

// Draws a figure and returns it.
std::string Draw(const std::string& arguments) {
  const ProgramRun run =
      RunWeir(absl::StrCat("draw ", arguments, " -o figure.svg --force"));
  EXPECT_EQ(run.exit_code, 0) << arguments << "\n" << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("wrote figure.svg"));
  return Contents("figure.svg");
}

TEST(DrawTest, SchedulesByNameAndFile) {
  EXPECT_THAT(Draw("zb-h1 --pp 3 --microbatches 5"),
              AllOf(HasSubstr(">rank 2<"), Not(HasSubstr(">rank 3<")),
                    HasSubstr("W backward, weights")));
  WriteInput("mine.csv", "0F0,,0B0\n,1F0,1B0\n");
  ASSERT_EQ(RunWeir("schedule convert 1f1b --pp 2 -o own.csv").exit_code, 0);
  EXPECT_THAT(Draw("own.csv"), HasSubstr(">rank 1<"));
}

TEST(DrawTest, ASchedulesWithCostsIsSimulated) {
  const std::string svg =
      Draw("1f1b --costs f=1,b=2,c=0.1 --pp 4 --microbatches 8");
  EXPECT_THAT(svg, AllOf(HasSubstr("time (s)"), HasSubstr("step time 34.6 s")));
  EXPECT_THAT(Draw("1f1b --costs f=1,b=2 --pp 2 --microbatches 2 --kind idle"),
              HasSubstr("idle time by cause"));
  const ProgramRun twice =
      RunWeir("draw 1f1b --schedule gpipe --costs f=1,b=2 -o x.svg");
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("expected only one of them"));
}

TEST(DrawTest, StoredResults) {
  ASSERT_EQ(RunWeir(absl::StrCat("compare", kGiven, "--out r.pb")).exit_code,
            0);
  EXPECT_THAT(Draw("r.pb"), AllOf(HasSubstr(">gpipe<"), HasSubstr(">1f1b<")));
  EXPECT_THAT(Draw("r.pb --result gpipe"), Not(HasSubstr(">1f1b<")));
  EXPECT_THAT(Draw("r.pb --kind idle"), HasSubstr("mean over the ranks"));
  EXPECT_THAT(Draw("r.pb --kind pareto --against cost"),
              HasSubstr("GPU seconds per step"));
  const ProgramRun several = RunWeir("draw r.pb --kind memory -o x.svg");
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_THAT(several.err, HasSubstr("--kind memory draws one result, found "
                                     "gpipe, 1f1b, expected --result"));
  EXPECT_THAT(Draw("r.pb --kind memory --result 1f1b --ranks 0,3"),
              AllOf(HasSubstr(">rank 3, peak"), Not(HasSubstr(">rank 1, "))));
  const ProgramRun other = RunWeir("draw r.pb --pp 4 -o x.svg");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("expected no options of a scenario"));
  // The same picture as the trace of the same result.
  ASSERT_EQ(RunWeir("trace r.pb --result gpipe -o trace.svg").exit_code, 0);
  EXPECT_EQ(Draw("r.pb --result gpipe"), Contents("trace.svg"));
}

// The figure has the numbers of "weir slack".
TEST(DrawTest, SlackIsThatOfTheCommand) {
  const ProgramRun slack =
      RunWeir(absl::StrCat("slack", kGiven, "--format json"));
  ASSERT_EQ(slack.exit_code, 0) << slack.err;
  const std::string svg = Draw(absl::StrCat(kGiven, "--kind slack"));
  double largest = 0;
  int num_schedules = 0;
  const auto json = nlohmann::json::parse(slack.out);
  for (const auto& schedule : json["result"]["schedules"]) {
    int num_critical = 0;
    for (const auto& pass : schedule["passes"]) {
      const double seconds = pass["slack_seconds"].get<double>();
      if (seconds < 1e-6) ++num_critical;
      largest = std::max(largest, seconds);
    }
    ASSERT_GT(num_critical, 0);
    ++num_schedules;
    EXPECT_THAT(svg, HasSubstr(absl::StrCat(num_critical, " of ",
                                            schedule["passes"].size(),
                                            " passes are critical")));
  }
  EXPECT_EQ(num_schedules, 2);
  ASSERT_GT(largest, 0);
  EXPECT_THAT(svg,
              AllOf(HasSubstr("slack: 0"), HasSubstr("critical: no slack"),
                    HasSubstr(absl::StrCat(">", FormatSeconds(largest), "<"))));
  // Draws the slack of a schedule with given costs, and of a model.
  EXPECT_THAT(Draw("1f1b --costs f=1,b=2 --pp 2 --microbatches 4 --kind slack "
                   "--ranks 1"),
              AllOf(HasSubstr(">rank 1<"), Not(HasSubstr(">rank 0<"))));
  EXPECT_THAT(Draw(absl::StrCat(kModel, "--kind slack")),
              HasSubstr("passes are critical"));
}

TEST(DrawTest, SlackOfBatchesIsUntilTheEndOfTheLast) {
  EXPECT_THAT(Draw("--schedule pipedream --costs f=1,b=2 --pp 2 --microbatches "
                   "2 --batches 4 --kind slack"),
              HasSubstr("pipedream: slack until the end of 4 batches"));
}

TEST(DrawTest, SlackNeedsTheTasksOfARun) {
  ASSERT_EQ(RunWeir(absl::StrCat("compare", kGiven, "--out r.pb")).exit_code,
            0);
  const ProgramRun stored = RunWeir("draw r.pb --kind slack -o x.svg");
  EXPECT_EQ(stored.exit_code, 2);
  EXPECT_THAT(
      stored.err,
      HasSubstr("--kind is slack, but r.pb is a result, expected timeline or "
                "memory or idle or pareto; slack needs a scenario or --costs"));
  const ProgramRun order = RunWeir("draw gpipe --kind slack -o x.svg");
  EXPECT_EQ(order.exit_code, 2);
  EXPECT_THAT(order.err, HasSubstr("--kind is slack, but gpipe is a schedule, "
                                   "expected timeline; --costs f=1,b=2"));
}

TEST(DrawTest, ScenariosHaveRooflines) {
  const std::string svg =
      Draw("pipedream-2bw-gpt-2.2b --schedule 1f1b --kind roofline");
  EXPECT_THAT(svg, AllOf(HasSubstr("feed forward gemm"),
                         HasSubstr("kernels on V100"), HasSubstr("TFLOP/s")));
  const ProgramRun given =
      RunWeir(absl::StrCat("draw", kGiven, "--kind roofline -o x.svg"));
  EXPECT_EQ(given.exit_code, 2);
  EXPECT_THAT(given.err, HasSubstr("has given or measured seconds"));
}

TEST(DrawTest, SweepsAndPlans) {
  ASSERT_EQ(RunWeir("sweep --costs f=1,b=2 --microbatches 8 --grid pp=2,4 "
                    "--grid schedule=gpipe,1f1b --out grid --method fast")
                .exit_code,
            0);
  const ProgramRun table = RunWeir("collect grid --pivot pp,schedule");
  const std::string svg = Draw("grid");
  // Every value of the pivot table is in the picture.
  EXPECT_THAT(table.out, HasSubstr("27 s"));
  EXPECT_THAT(svg, HasSubstr(">27 s<"));
  EXPECT_EQ(svg, Draw("grid --kind heatmap --fields pp,schedule --metric "
                      "step_seconds"));
  EXPECT_THAT(Draw("grid --kind pareto --against cost"),
              HasSubstr("pp 2, schedule "));
  const ProgramRun memory = RunWeir("draw grid --kind pareto -o x.svg");
  EXPECT_EQ(memory.exit_code, 2);
  EXPECT_THAT(memory.err, HasSubstr("has no peak memory to draw, because given "
                                    "costs have none"));
  const ProgramRun wrong = RunWeir("draw grid --fields pp,tp -o x.svg");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--fields has tp, expected fields"));
  const ProgramRun plan = RunWeir(
      "plan --model gpt2 --cluster dgx-a100 --nodes 1 --gbs 16 --schedule "
      "1f1b --format json");
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  WriteInput("plan.json", plan.out);
  EXPECT_THAT(Draw("plan.json"), HasSubstr(">plans: step time and peak"));
  EXPECT_EQ(Draw("plan.json"), Draw("plan.json --against memory"));
  WriteInput("bad.json", "{\"tool\": \"weir\", \"result\": {\"plans\": [3]}}");
  const ProgramRun bad = RunWeir("draw bad.json -o x.svg");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.json: result.plans[0] is no object"));
}

TEST(DrawTest, PlansOfEqualSizesAreToldApart) {
  const auto plan = [](double seconds, const std::string& sharding,
                       int pipeline) {
    return absl::StrCat(
        R"({"tensor": 2, "data": 8, "microbatch_size": 1, "num_gpus": 16, )",
        R"("schedule": "1f1b", "order": "tp-dp-pp", "pipeline": )", pipeline,
        R"(, "sharding": ")", sharding, R"(", "batch_seconds": )", seconds,
        R"(, "peak_memory_bytes": )", 1e11 / seconds, "}");
  };
  WriteInput("plans.json",
             absl::StrCat(R"({"tool": "weir", "result": {"plans": [)",
                          plan(1, "full", 1), ", ", plan(2, "optimizer", 1),
                          ", ", plan(3, "none", 2), "]}}"));
  EXPECT_THAT(Draw("plans.json"),
              AllOf(HasSubstr(">tp 2, pp 1, dp 8, mbs 1, 1f1b, sharding full<"),
                    HasSubstr("1f1b, sharding optimizer<"),
                    HasSubstr(">tp 2, pp 2, dp 8, mbs 1, 1f1b<")));
}

TEST(DrawTest, OutputsWithoutAFigureAreNamed) {
  const ProgramRun made = RunWeir(
      "simulate --schedule gpipe --costs f=1,b=2 --pp 2 --microbatches 2 "
      "--format json > run.json");
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const ProgramRun run = RunWeir("draw run.json -o run.svg");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("run.json: is the JSON output of weir "
                                 "simulate"));
  EXPECT_THAT(run.err, HasSubstr("expected a schedule, a scenario, a result "
                                 "written by --out"));
}

TEST(DrawTest, TitlesDoNotBeginWithAMissingName) {
  EXPECT_THAT(
      RunWeir(absl::StrCat("draw ", kModel, "--kind roofline -o roof.svg"))
          .exit_code,
      0);
  EXPECT_THAT(Contents("roof.svg"), HasSubstr("gpt2: kernels on "));
}

TEST(DrawTest, CopiesInsidePassesAreDrawn) {
  EXPECT_THAT(RunWeir(absl::StrCat("draw ", kModel,
                                   "--cpu-offloading-num-layers 1 -o "
                                   "copies.svg"))
                  .exit_code,
              0);
  EXPECT_THAT(Contents("copies.svg"), AllOf(HasSubstr("offload to the host"),
                                            HasSubstr("reload from the host")));
}

TEST(DrawTest, ErrorsOfAValidation) {
  WriteInput("rows.csv",
             "line,row,quantity,measured,predicted,error,fits_memory,reason\n"
             "2,a,step_ms,10,9,-0.1,true,\n3,b,step_ms,100,120,0.2,true,\n"
             "4,c,,,,,,refused\n");
  EXPECT_THAT(Draw("rows.csv"), HasSubstr("rows: errors of 2 predictions"));
  const ProgramRun other = RunWeir("draw rows.csv --kind idle -o x.svg");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("is a table of weir validate"));
}

TEST(DrawTest, WidthAndTitle) {
  EXPECT_THAT(Draw("gpipe --columns 1"), HasSubstr("width=\"85mm\""));
  EXPECT_THAT(Draw("gpipe --width 120"), HasSubstr("width=\"120mm\""));
  EXPECT_THAT(Draw("gpipe --title=false"), Not(HasSubstr(">gpipe<")));
  EXPECT_EQ(Draw("gpipe"), Draw("gpipe --columns 2 --title --kind timeline"));
}

TEST(DrawTest, PdfAndPng) {
  if (std::system("command -v rsvg-convert >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "this machine has no rsvg-convert";
  }
  for (const auto& [file, magic] :
       {std::pair("f.pdf", "%PDF-"), std::pair("f.png", "\x89PNG\r\n\x1a\n")}) {
    ASSERT_EQ(RunWeir(absl::StrCat("draw gpipe -o ", file)).exit_code, 0);
    const std::string first = Contents(file);
    EXPECT_TRUE(absl::StartsWith(first, magic));
    EXPECT_GT(first.size(), 1000u);
    // weir replaces its own file, with the same bytes.
    const ProgramRun again =
        RunWeir(absl::StrCat("draw gpipe --width 100 -o ", file));
    EXPECT_EQ(again.exit_code, 0) << again.err;
    ASSERT_EQ(RunWeir(absl::StrCat("draw gpipe -o ", file)).exit_code, 0);
    EXPECT_EQ(Contents(file), first);
  }
  WriteInput("mine.pdf", "%PDF-1.5\n");
  const ProgramRun mine = RunWeir("draw gpipe -o mine.pdf");
  EXPECT_EQ(mine.exit_code, 2);
  EXPECT_THAT(mine.err, HasSubstr("was not written by weir"));
}

TEST(DrawTest, WithoutTheConverterItSaysWhatToInstall) {
  const ProgramRun missing = RunWeirAfter(
      "mkdir -p bin && ln -sf \"$(command -v timeout)\" bin/ && PATH=$PWD/bin",
      "draw gpipe -o f.pdf");
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("rsvg-convert is not found"),
                                 HasSubstr("librsvg2-bin"), HasSubstr(".svg")));
}

TEST(DrawTest, AFailingConverterIsOneLine) {
  const ProgramRun failed = RunWeirAfter(
      "mkdir -p bin && printf '#!/bin/sh\\necho broken >&2\\nexit 4\\n' "
      ">bin/rsvg-convert && chmod +x bin/rsvg-convert && PATH=$PWD/bin:$PATH",
      "draw gpipe -o f.pdf");
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_THAT(failed.err,
              HasSubstr("rsvg-convert failed with exit code 4: broken"));
}

TEST(TimelineTest, FollowsTheEnvironment) {
  const std::string command =
      "simulate --schedule gpipe --costs f=1,b=2 --pp 2 --microbatches 2 "
      "--timeline";
  const ProgramRun ascii = RunWeirAfter("LC_ALL= LC_CTYPE= LANG=C", command);
  EXPECT_EQ(ascii.exit_code, 0) << ascii.err;
  EXPECT_THAT(ascii.out, AllOf(HasSubstr("rank 1 |"), HasSubstr(". idle"),
                               HasSubstr("step time")));
  EXPECT_THAT(ascii.out, Not(HasSubstr("\u2502")));
  const ProgramRun unicode = RunWeirAfter("LC_ALL=C.UTF-8", command);
  EXPECT_THAT(unicode.out, HasSubstr("rank 1 \u2502"));
  EXPECT_THAT(unicode.out, Not(HasSubstr("\033[")));
  const ProgramRun colored =
      RunWeirAfter("LC_ALL=C.UTF-8", absl::StrCat(command, " --color always"));
  EXPECT_THAT(colored.out, HasSubstr("\033[38;5;16;48;5;74m0"));
  const ProgramRun plain = RunWeirAfter("NO_COLOR=1 CLICOLOR_FORCE=1", command);
  EXPECT_THAT(plain.out, Not(HasSubstr("\033[")));
}

}  // namespace weir::cli::draw_test
