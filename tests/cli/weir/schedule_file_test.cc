// SPDX-License-Identifier: Apache-2.0
// Tests schedule files on the command line: lint, convert, and as --schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::schedule_file_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(ScheduleLintTest, ExitCodesTellCleanFindingsAndBadInput) {
  const std::string good = WriteInput("good.csv", "0F0,0B0\n1F0,1B0\n");
  const std::string hangs =
      WriteInput("hangs.csv", "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  const std::string broken = WriteInput("broken.csv", "0F0,0B0\n1F0,x\n");
  EXPECT_EQ(RunWeir(absl::StrCat("schedule lint ", good)).exit_code, 0);
  const ProgramRun findings = RunWeir(absl::StrCat("schedule lint ", hangs));
  EXPECT_EQ(findings.exit_code, 1) << findings.err;
  EXPECT_THAT(findings.out, AllOf(HasSubstr("error deadlock: hangs.csv:1:5"),
                                  HasSubstr("fix: move 1B0 of rank 1")));
  const ProgramRun bad = RunWeir(absl::StrCat("schedule lint ", broken));
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("broken.csv:2:5: 'x' is not an action"));
  EXPECT_EQ(RunWeir("schedule lint nowhere.csv").exit_code, 2);
  EXPECT_EQ(RunWeir("schedule lint no-such-kind").exit_code, 2);
}

TEST(ScheduleLintTest, NamesTakeShapesAndRuntimes) {
  EXPECT_EQ(RunWeir("schedule lint 1f1b --pp 8 --microbatches 32").exit_code,
            0);
  EXPECT_EQ(RunWeir("schedule lint 1f1b --runtime rendezvous").exit_code, 1);
  EXPECT_EQ(RunWeir("schedule lint 1f1b --runtime megatron,pytorch").exit_code,
            0);
  const ProgramRun run = RunWeir("schedule lint 1f1b --runtime nccl");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--runtime is nccl, expected buffered"));
}

TEST(ScheduleLintTest, PrintsJsonInTheFrame) {
  const ProgramRun run =
      RunWeir("schedule lint 1f1b --runtime rendezvous --format json");
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["tool"], "weir");
  EXPECT_THAT(std::string(json["command"]), HasSubstr("schedule lint 1f1b"));
  EXPECT_EQ(json["config"]["pipeline"], 4);
  EXPECT_EQ(json["config"]["runtimes"], nlohmann::json({"rendezvous"}));
  EXPECT_EQ(json["result"]["errors"], 1);
  EXPECT_EQ(json["result"]["findings"][0]["rule"], "rendezvous");
  EXPECT_TRUE(json["warnings"].empty());
  EXPECT_THAT(run.out, Not(testing::EndsWith("\n\n")));
}

TEST(ScheduleLintTest, ShapeFlagsMustBeTheFiles) {
  const std::string file = WriteInput("shape.csv", "0F0,0B0\n1F0,1B0\n");
  const ProgramRun run =
      RunWeir(absl::StrCat("schedule lint ", file, " --pp 4"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("has 2 ranks, but --pp is 4"));
}

TEST(ScheduleConvertTest, LowersAndMerges) {
  const std::string file =
      WriteInput("split.csv", "0F0,0I0,0W0\n1F0,1I0,1W0\n");
  EXPECT_EQ(RunWeir(absl::StrCat("schedule convert ", file)).out,
            "0F0,0I0,0W0\n1F0,1I0,1W0\n");
  EXPECT_EQ(
      RunWeir(absl::StrCat("schedule convert --lower --merge-backward ", file))
          .out,
      "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
      "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\n");
  EXPECT_EQ(
      RunWeir(absl::StrCat("schedule convert --lower --transfers-only ", file))
          .out,
      "0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1I0,1SEND_B0,1W0\n");
}

TEST(ScheduleConvertTest, TransfersOnlyIsAWayToLower) {
  const ProgramRun run = RunWeir("schedule convert 1f1b --transfers-only");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--transfers-only is given without --lower"));
}

TEST(ScheduleConvertTest, LowersAnewWhatHangs) {
  WriteInput("hangs.csv",
             "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
             "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  EXPECT_EQ(RunWeir("schedule lint hangs.csv").exit_code, 1);
  EXPECT_EQ(RunWeir("schedule convert hangs.csv --lower -o runs.csv").exit_code,
            0);
  EXPECT_EQ(RunWeir("schedule lint runs.csv").exit_code, 0);
}

TEST(ScheduleConvertTest, ConvertsTheDialectOf2024) {
  const std::string file = WriteInput("old.csv", "0F0,0B0,0W0\n1F0,1BW0\n");
  const ProgramRun refused = RunWeir(absl::StrCat("schedule convert ", file));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("old.csv:2:5: '1BW0'"),
                                 HasSubstr("--dialect pytorch-legacy")));
  EXPECT_EQ(RunWeir(absl::StrCat("schedule convert --dialect pytorch-legacy ",
                                 file, " --output new.csv"))
                .exit_code,
            0);
  EXPECT_EQ(RunWeir("schedule convert new.csv").out, "0F0,0I0,0W0\n1F0,1B0\n");
}

TEST(ScheduleConvertTest, WhatPyTorchCannotReadIsNotLowered) {
  const ProgramRun run = RunWeir("schedule convert pipedream --lower");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("has no flush"));
  const ProgramRun plain = RunWeir("schedule convert pipedream");
  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_THAT(plain.err, HasSubstr("PyTorch cannot run it: "));
}

TEST(ScheduleFileTest, IsSimulatedLikeItsKind) {
  ASSERT_EQ(RunWeir("schedule convert interleaved-1f1b --pp 2 --microbatches 4 "
                    "-o i.csv")
                .exit_code,
            0);
  const ProgramRun file = RunWeir("simulate --schedule i.csv --costs f=1,b=2");
  EXPECT_EQ(file.exit_code, 0) << file.err;
  EXPECT_THAT(file.out,
              AllOf(HasSubstr("i.csv v=2"), HasSubstr("step time     13.5 s")));
  const ProgramRun both = RunWeir(
      "compare --schedule i.csv,interleaved-1f1b --pp 2 --microbatches 4 "
      "--costs f=1,b=2 --out r.pb --trace t/");
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.err, HasSubstr("wrote t/i.csv.pftrace"));
  EXPECT_THAT(RunWeir("schedule show i.csv").out, HasSubstr("minibatch SGD"));
}

// Checks both formats with every command.
TEST(ScheduleFileTest, ErrorsNameLineAndColumnAndRule) {
  WriteInput("passes.csv", "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  WriteInput("order.csv", "0F0,0B0\n1B0,1F0\n");
  WriteInput("late.csv", "0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  for (absl::string_view command : {"simulate --costs f=1,b=2 --schedule ",
                                    "schedule show ", "schedule semantics "}) {
    const ProgramRun hangs = RunWeir(absl::StrCat(command, "passes.csv"));
    EXPECT_EQ(hangs.exit_code, 1);
    EXPECT_THAT(hangs.err, AllOf(HasSubstr("passes.csv:1:5: deadlock"),
                                 HasSubstr("rank 0 waits at position 1 (0B0)"),
                                 HasSubstr("[deadlock]")));
    const ProgramRun order = RunWeir(absl::StrCat(command, "order.csv"));
    EXPECT_EQ(order.exit_code, 2);
    EXPECT_THAT(order.err,
                AllOf(HasSubstr("order.csv:2:1: "), HasSubstr("[order]")));
    const ProgramRun late = RunWeir(absl::StrCat(command, "late.csv"));
    EXPECT_EQ(late.exit_code, 2);
    EXPECT_THAT(late.err, HasSubstr("late.csv:1:14: 0B0 has no RECV_B"));
  }
  EXPECT_THAT(RunWeir("schedule convert passes.csv").err,
              HasSubstr("passes.csv:1:5: deadlock"));
}

TEST(ScheduleFileTest, ContradictionsNameBoth) {
  WriteInput("two.csv", "0F0,0B0\n1F0,1B0\n");
  const ProgramRun run = RunWeir(
      "simulate --schedule two.csv --costs f=1,b=2 --pp 4 --microbatches 8");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("--pp is 4, but schedule two.csv has 2"),
                    HasSubstr("--microbatches is 8, but schedule two.csv "
                              "has 1")));
}

TEST(ScheduleFileTest, AModelsBatchFollowsTheFile) {
  ASSERT_EQ(RunWeir("schedule convert 1f1b --pp 8 --microbatches 4 -o 1f1b.csv")
                .exit_code,
            0);
  const ProgramRun run = RunWeir(
      "simulate --model gpt2-medium --cluster dgx-h100 --schedule 1f1b.csv "
      "--dp 1 --mbs 2");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("batch 8 = 4 microbatches of 2"));
}

TEST(ScheduleFileTest, JsonIsAScheduleToo) {
  const ProgramRun json = RunWeir(
      "schedule show pipedream-2bw --pp 2 --microbatches 4 --format "
      "json");
  WriteInput("2bw.json", json.out);
  const ProgramRun run =
      RunWeir("simulate --schedule 2bw.json --costs f=1,b=2");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("delay 1, constant"));
}

TEST(LayoutTest, PlacesLayers) {
  const std::string common = "simulate pipedream-2bw-gpt-2.2b --schedule 1f1b ";
  const ProgramRun even = RunWeir(absl::StrCat(common, "--pp 8"));
  const ProgramRun laid =
      RunWeir(absl::StrCat(common, "--pp 8 --pipeline-model-parallel-layout ",
                           "'Et*4|(tttt|)*6tttt,L'"));
  EXPECT_EQ(laid.exit_code, 0) << laid.err;
  EXPECT_EQ(absl::StrReplaceAll(
                laid.out, {{"features: layout Et*4|(tttt|)*6tttt,L\n", ""}}),
            even.out);
  const ProgramRun uneven =
      RunWeir(absl::StrCat(common, "--layout 'Et*8||(tttt|)*4t*8|L'"));
  EXPECT_EQ(uneven.exit_code, 0) << uneven.err;
  EXPECT_NE(uneven.out, even.out);
  EXPECT_THAT(
      RunWeir(absl::StrCat(common, "--layout 'Et*9|(tttt|)*6t*3L'")).err,
      HasSubstr("--layout holds 36 blocks (t), expected the "
                "model's 32"));
  EXPECT_THAT(RunWeir(absl::StrCat(common, "--layout 'Et*4|x'")).err,
              HasSubstr("--layout:6: 'x' is unknown"));
}

}  // namespace weir::cli::schedule_file_test
