// SPDX-License-Identifier: Apache-2.0
// Checks that SIGINT, SIGTERM and SIGHUP give the best result so far and the
// exit code of the signal, whether only the program or all its processes
// receive it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <ostream>
#include <regex>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"
#include "tests/cli/weir/terminal_run.h"

namespace weir::cli::interrupt_test {

using testing::AllOf;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;

// A search that soon has a plan and must rank thousands of others.
constexpr char kPlan[] =
    "plan --model gpt2-medium --cluster dgx-a100 --gbs 64 --asynchronous "
    "--patience 0 --plans 1000 -j 2";
// Points of about a second each, far more than any test waits for.
constexpr char kSweep[] =
    "sweep --costs f=1,b=2 --schedule 1f1b --grid parallelism.pipeline=4,300 "
    "--grid num_microbatches=2000..3000 -j 2";
constexpr char kSynthesize[] =
    "schedule synthesize --pp 8 --microbatches 32 --costs f=1,i=1,w=1,c=0.1 "
    "--memory-limit 8 --method local --moves 20000000 -o order.csv";
constexpr char kStudy[] =
    "train-study --schedule gpipe,pipedream --updates 20 --seeds 2000 -j 2";

struct Sent {
  int signal;
  bool to_group;
  int exit_code;
};
void PrintTo(const Sent& sent, std::ostream* out) {
  *out << "signal " << sent.signal << (sent.to_group ? " to the group" : "");
}

class InterruptTest : public testing::TestWithParam<Sent> {
 protected:
  // Sends the signal once the terminal has shown `text`.
  static void EndAfter(absl::string_view text, TerminalRun* run) {
    ASSERT_TRUE(run->WaitFor(text)) << run->shown();
    if (GetParam().to_group) {
      run->SignalGroup(GetParam().signal);
    } else {
      run->Signal(GetParam().signal);
    }
    EXPECT_EQ(run->Wait(), GetParam().exit_code) << run->shown();
    EXPECT_FALSE(run->HasLeftProcesses());
  }
};

TEST_P(InterruptTest, PlanPrintsTheBestPlansSoFar) {
  TerminalRun run(WEIR_PROGRAM, kPlan);
  EndAfter("; bound ", &run);
  // A busy machine may have examined none completely by then.
  EXPECT_THAT(run.out(), AllOf(HasSubstr("gap"),
                               AnyOf(HasSubstr("not evaluated"),
                                     HasSubstr("no candidate was examined"))));
  EXPECT_THAT(run.shown(), HasSubstr("the best plans so far"));
}

// Returns a chain with far too many layers to try all partitions within a test.
std::string LongGraph() {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    absl::StrAppend(&text, "node", i, " -- L", i,
                    " -- forward_compute_time=", 1 + i % 7,
                    ".0, backward_compute_time=2.0, ",
                    "activation_size=100.0, parameter_size=50.000\n");
    if (i > 0) absl::StrAppend(&text, "\tnode", i - 1, " -- node", i, "\n");
  }
  return text;
}

TEST_P(InterruptTest, PlanOfAGraphPrintsTheBestPlanSoFar) {
  WriteInput("long.txt", LongGraph());
  TerminalRun run(WEIR_PROGRAM,
                  "plan --algorithm pipedream --graph long.txt --machines 8,8 "
                  "--bandwidth 1e9,1e8 --straight");
  EndAfter("pipedream", &run);
  EXPECT_THAT(run.out(), AllOf(HasSubstr("per minibatch"),
                               HasSubstr("3000 states"), HasSubstr("L2999")));
  EXPECT_THAT(run.shown(), HasSubstr("cuts at 750 of 3000 antichains only"));
}

TEST_P(InterruptTest, PlannersPrintTheAnswersSoFar) {
  TerminalRun run(WEIR_PROGRAM,
                  "plan gpt3-175b-selene --gbs 512 --algorithm all -j 1");
  EndAfter("[1/", &run);
  EXPECT_THAT(run.out(), HasSubstr("pipedream"));
  EXPECT_THAT(run.shown(),
              HasSubstr("showing the planners that have finished"));
}

TEST_P(InterruptTest, SweepPrintsTheBestPointAndItsShardGoesOn) {
  std::filesystem::remove_all(TestFolder() + "/s");
  TerminalRun run(WEIR_PROGRAM, absl::StrCat(kSweep, " --out s"));
  EndAfter(", best ", &run);
  EXPECT_THAT(run.out(),
              AllOf(HasSubstr("best: point "), HasSubstr(" 0 failed"),
                    HasSubstr("not yet run")));
  const ProgramRun collected = RunWeir("collect s --format json");
  EXPECT_EQ(collected.exit_code, 0) << collected.err;
  EXPECT_THAT(collected.out, HasSubstr("\"num_failed\": 0"));
}

TEST_P(InterruptTest, SynthesizePrintsAndWritesTheBestOrderSoFar) {
  std::filesystem::remove(TestFolder() + "/order.csv");
  TerminalRun run(WEIR_PROGRAM, kSynthesize);
  EndAfter("local search, best ", &run);
  EXPECT_THAT(run.out(), HasSubstr("bound: "));
  EXPECT_EQ(RunWeir("schedule lint order.csv").exit_code, 0);
}

// Returns true if the progress "[7/4000] trained" has exceeded 0.
bool HasTrained(const TerminalRun& run) {
  static const std::regex& some = *new std::regex(R"(\[[1-9][0-9]*/)");
  return std::regex_search(run.shown(), some);
}

TEST_P(InterruptTest, TrainStudyPrintsWholeTrainings) {
  TerminalRun run(WEIR_PROGRAM, kStudy);
  int seconds = 2;
  while (seconds < 100 && !HasTrained(run)) {
    ASSERT_TRUE(run.WaitFor(absl::StrCat(", ", ++seconds, "s"))) << run.shown();
  }
  EndAfter("trained", &run);
  EXPECT_THAT(run.out(), HasSubstr("gpipe"));
}

TEST_P(InterruptTest, CompareKeepsWhatItHas) {
  std::string schedules = "gpipe";
  for (int i = 0; i < 500; ++i) schedules += ",1f1b,gpipe";
  TerminalRun run(
      WEIR_PROGRAM,
      absl::StrCat("compare --costs f=1,b=2 --pp 100 --microbatches "
                   "400 --out i.pb --schedule ",
                   schedules));
  EndAfter(", 2s", &run);
  EXPECT_THAT(run.out(), HasSubstr("gpipe"));
  EXPECT_EQ(RunWeir("show i.pb --format csv").exit_code, 0);
  EXPECT_THAT(run.shown(),
              ContainsRegex("interrupted, not simulated: (1f1b|gpipe), "));
}

// Also checks formats without a table.
TEST_P(InterruptTest, CompareNamesWhatItHasNot) {
  TerminalRun run(WEIR_PROGRAM,
                  "compare --schedule gpipe,1f1b,interleaved-1f1b --costs "
                  "f=1,b=2 --pp 100 --microbatches 8000 --format json");
  EndAfter("[1/3] gpipe", &run);
  EXPECT_THAT(run.out(), IsEmpty());
  EXPECT_THAT(run.shown(), HasSubstr("interrupted, not simulated: gpipe, 1f1b, "
                                     "interleaved-1f1b"));
}

TEST_P(InterruptTest, ExplainSaysSo) {
  TerminalRun figures(WEIR_PROGRAM, "explain pipedream-2bw-gpt-2.2b -j 1");
  EndAfter("] parameters", &figures);
  EXPECT_THAT(figures.out(), IsEmpty());
  EXPECT_THAT(figures.shown(), HasSubstr(" interrupted"));
  // Interrupts the simulation of the scenario itself, before any parameter is
  // changed.
  TerminalRun first(WEIR_PROGRAM,
                    "explain pipedream-2bw-gpt-2.2b --schedule 1f1b --gbs "
                    "262144");
  EndAfter("1f1b ", &first);
  EXPECT_THAT(first.shown(), ContainsRegex("interrupted by SIG(INT|TERM|HUP)"));
}

TEST_P(InterruptTest, SimulateEndsAtOnce) {
  TerminalRun run(WEIR_PROGRAM,
                  "simulate --schedule 1f1b --costs f=1,b=2 --pp 200 "
                  "--microbatches 20000");
  EndAfter("1f1b ", &run);
  EXPECT_THAT(run.out(), IsEmpty());
  EXPECT_THAT(run.shown(), ContainsRegex("interrupted by SIG(INT|TERM|HUP)"));
}

INSTANTIATE_TEST_SUITE_P(
    Signals, InterruptTest,
    testing::Values(Sent{SIGINT, true, 130}, Sent{SIGTERM, false, 143},
                    Sent{SIGTERM, true, 143}, Sent{SIGHUP, false, 129}),
    [](const testing::TestParamInfo<Sent>& info) {
      return absl::StrCat("Code", info.param.exit_code,
                          info.param.to_group ? "ToGroup" : "ToProgram");
    });

TEST(InterruptOnceTest, TimeoutsTwoSignalsCountOnce) {
  // timeout(1) signals the program, and then its group.
  const ProgramRun run = RunWeirAfter(
      "timeout --preserve-status 5",
      "schedule synthesize --pp 8 --microbatches 32 --memory-limit 8 --method "
      "local --moves 20000000");
  EXPECT_EQ(run.exit_code, 143) << run.err;
  EXPECT_THAT(run.out, HasSubstr("bound: "));
}

TEST(InterruptOnceTest, ASecondSignalEndsItAtOnce) {
  TerminalRun run(WEIR_PROGRAM, kPlan);
  ASSERT_TRUE(run.WaitFor("; bound ")) << run.shown();
  run.Signal(SIGTERM);
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 130);
  EXPECT_THAT(run.out(), IsEmpty());
  EXPECT_FALSE(run.HasLeftProcesses());
}

TEST(InterruptOnceTest, AnIgnoredHangupStaysIgnored) {
  TerminalRun run("/bin/sh",
                  absl::StrCat("-c \"trap '' HUP; exec '", WEIR_PROGRAM, "' ",
                               kSynthesize, "\""));
  ASSERT_TRUE(run.WaitFor("local search, best ")) << run.shown();
  run.Signal(SIGHUP);
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), 143);
  EXPECT_THAT(run.out(), HasSubstr("above bound"));
}

TEST(ProgressTest, IsOnATerminalOnly) {
  const absl::string_view commands[] = {
      "train-study --schedule gpipe --updates 20 --seeds 2",
      "explain pipedream-2bw-gpt-2.2b --schedule 1f1b",
      "plan --model gpt2 --cluster dgx-h100 --gpus 8 --gbs 32 --schedule 1f1b",
      "plan pipedream-2bw-gpt-2.2b --algorithm all",
      "schedule synthesize --pp 4 --microbatches 8 --method local"};
  for (const absl::string_view command : commands) {
    TerminalRun run(WEIR_PROGRAM, command);
    EXPECT_TRUE(run.WaitFor("\033[K")) << command;
    EXPECT_EQ(run.Wait(), 0) << command << run.shown();
    EXPECT_THAT(RunWeir(absl::StrCat(command, " --quiet")).err,
                testing::Not(HasSubstr("\033")));
  }
}

}  // namespace weir::cli::interrupt_test
