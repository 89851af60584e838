// SPDX-License-Identifier: Apache-2.0
// Runs weir-calibrate replay as its users do. The host computes for the GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "results/store.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::replay_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Runs the program weir in the same folder.
ProgramRun RunSimulator(const std::string& arguments) {
  const std::string folder = TestFolder();
  const int status =
      std::system(absl::StrCat("cd '", folder, "' && '", WEIR_SIMULATOR, "' ",
                               arguments, " >.simulator.out 2>.simulator.err")
                      .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          ReadFile(folder + "/.simulator.out").value_or(""),
          ReadFile(folder + "/.simulator.err").value_or("")};
}

Result Loaded(const std::string& name) {
  auto results = results::LoadResults(absl::StrCat(TestFolder(), "/", name));
  EXPECT_TRUE(results.ok()) << results.status();
  return results->results(0);
}

class CalibrateReplayTest : public testing::TestWithParam<std::string> {};

TEST_P(CalibrateReplayTest, ThreeCommandsBelongTogether) {
  const std::string asked = absl::StrCat("replay-cpu --schedule ", GetParam());
  const ProgramRun predicted =
      RunSimulator(absl::StrCat("simulate ", asked, " --out predicted.pb"));
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  const ProgramRun run = RunWeir(
      absl::StrCat("replay ", asked, " --cpu --steps 2 --out replay.pb"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("losses  "), HasSubstr("weights differ by")));
  const ProgramRun compared =
      RunSimulator("validate --replay replay.pb --against predicted.pb");
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("makespan"));
  // Memory is counted as in the simulator, except for the reserves for context
  // and communicators, and for the order in which buffers are allocated and
  // freed.
  const Result replay = Loaded("replay.pb"), simulated = Loaded("predicted.pb");
  EXPECT_EQ(replay.schedule(), simulated.schedule());
  EXPECT_EQ(replay.weight_versions(), simulated.weight_versions());
  EXPECT_EQ(replay.staleness_updates(), simulated.staleness_updates());
  EXPECT_EQ(replay.semantics(), simulated.semantics());
  EXPECT_EQ(replay.timeline().actions().gpu_size(),
            simulated.timeline().actions().gpu_size());
  for (int rank = 0; rank < replay.ranks_size(); ++rank) {
    EXPECT_NEAR(replay.ranks(rank).peak_activation_microbatches(),
                simulated.ranks(rank).peak_activation_microbatches(), 1.0)
        << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, CalibrateReplayTest,
                         testing::Values("gpipe", "pipedream", "2bw", "zb-h1",
                                         "interleaved-1f1b", "pipemare"));

TEST(CalibrateReplayCommandTest, SerialReplaysShowTheirClocksInEveryFormat) {
  const std::string asked = "replay replay-cpu --cpu --serial --steps 1";
  const ProgramRun json = RunWeir(asked + " --format json");
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_THAT(json.out,
              AllOf(HasSubstr("\"serial\": true"), HasSubstr("\"losses\"")));
  EXPECT_EQ(RunWeir(asked + " --format csv").exit_code, 0);
  EXPECT_EQ(RunWeir(asked + " --trace t.json --no-check").exit_code, 0);
  EXPECT_TRUE(ReadFile(TestFolder() + "/t.json").ok());
}

TEST(CalibrateReplayCommandTest, AGpuIsComparedWithTheFormulaOnIt) {
  const ProgramRun run = RunWeir("replay replay-cpu --steps 2 --out r.pb");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("minibatch SGD, on the same GPU"));
  EXPECT_TRUE(Loaded("r.pb").replay().serial());
  const ProgramRun stale = RunWeir("replay replay-cpu --schedule 2bw");
  EXPECT_EQ(stale.exit_code, 0) << stale.err;
  EXPECT_THAT(stale.out, HasSubstr("grad f(w(t-1))"));
  EXPECT_THAT(stale.err, Not(HasSubstr("the training result was not checked")));
  const ProgramRun parts =
      RunWeir("replay replay-cpu --partitions 4 --steps 1 --out p.pb");
  EXPECT_EQ(parts.exit_code, 0) << parts.err;
  EXPECT_FALSE(Loaded("p.pb").replay().serial());
}

TEST(CalibrateReplayCommandTest, WithoutAGpuThereIsOneLineAndExit3) {
  const ProgramRun run =
      RunWeirAfter("WEIR_FAKE='missing=no NVIDIA driver on this machine'",
                   "replay replay-cpu");
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.err,
            "error: no NVIDIA driver on this machine (weir-calibrate "
            "doctor)\n");
}

TEST(CalibrateReplayCommandTest, BadCommandLinesAreUsageErrors) {
  const struct {
    const char* arguments;
    const char* message;
  } cases[] = {
      {"--partitions 2 --cpu", "--partitions requires a GPU"},
      {"--partitions 2 --serial",
       "--partitions cannot be combined with --serial"},
      {"--serial=false", "--serial is off, but without --partitions"},
      {"--partition 2", "did you mean --partitions?"},
      {"--cpu --steps 0", "--steps is 0"},
      {"--cpu --trace x.txt", "--trace is x.txt"},
      {"--cpu --out /dev/null/r.pb", "/dev/null/r.pb: cannot be written"},
      {"--cpu --model gpt3-175b", "in double precision, but this machine has"},
      {"--cpu --schedule zb-x", "zb-x"},
      {"--cpu --runtime pytorch --recompute full --dp 2", "--runtime weir"},
      {"--partitions 2", "parallelism.pipeline is 4, but --partitions is 2"},
  };
  for (const auto& [arguments, message] : cases) {
    const ProgramRun run =
        RunWeir(absl::StrCat("replay replay-cpu ", arguments));
    EXPECT_EQ(run.exit_code, 2) << arguments << run.err;
    EXPECT_THAT(run.err, AllOf(HasSubstr("error: "), HasSubstr(message)));
    EXPECT_EQ(run.out, "") << arguments;
  }
}

TEST(CalibrateReplayCommandTest, AScheduleAloneIsEnough) {
  RunSimulator(
      "schedule convert zb-h1 --pp 4 --microbatches 8 -o ./mine.csv --quiet");
  const ProgramRun file = RunWeir("replay --cpu --schedule ./mine.csv");
  EXPECT_EQ(file.exit_code, 0) << file.err;
  EXPECT_THAT(file.out,
              AllOf(HasSubstr("replay-cpu: "), HasSubstr("weights differ by")));
  const ProgramRun gpu = RunWeir("replay --schedule 1f1b --partitions 2");
  EXPECT_THAT(gpu.err, HasSubstr("replay-gpu: parallelism.pipeline is 8"));
}

// Returns the lines of the CSV of `weir-calibrate replay --plan`.
std::vector<std::string> PlannedRows(const std::string& arguments) {
  const ProgramRun run =
      RunWeir(absl::StrCat("replay --plan --format csv ", arguments));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return absl::StrSplit(run.out, '\n', absl::SkipEmpty());
}

TEST(ReplayPlanTest, EveryGpuGetsAScenarioThatFits) {
  const struct {
    const char* gpu;
    const char* scale;
  } cases[] = {
      {"--memory 141GB --multiprocessors 132",
       "--model=replay-2.5b --seq=2048 "
       "--gbs=16"},
      {"--memory 96GB --multiprocessors 132",
       "--model=replay-2.5b --seq=1024 "
       "--gbs=16"},
      {"--memory 80GB --multiprocessors 132",
       "--model=replay-2.5b --seq=1024 "
       "--gbs=8"},
      {"--memory 40GB --multiprocessors 108",
       "--model=replay-1b --seq=1024 "
       "--gbs=8"},
      {"", "--model=replay-2.5b --seq=2048 --gbs=16"},  // this machine's
  };
  for (const auto& [gpu, scale] : cases) {
    const std::vector<std::string> rows = PlannedRows(gpu);
    ASSERT_EQ(rows.size(), 29) << gpu;
    for (size_t i = 1; i < rows.size(); ++i) {
      EXPECT_THAT(rows[i],
                  AllOf(HasSubstr(",yes,replay-gpu "), HasSubstr(scale)))
          << gpu;
    }
    EXPECT_THAT(rows[1], AllOf(testing::StartsWith("1,1f1b,8,"),
                               testing::EndsWith("--schedule=1f1b --pp=8")));
    EXPECT_THAT(rows[28], AllOf(testing::StartsWith("8,gpipe,8,"),
                                HasSubstr("--pp=8 --cluster=gpu-partitions")));
  }
}

TEST(ReplayPlanTest, WhatUsersGiveStaysAndRowsThatDoNotFitAreSkipped) {
  const ProgramRun run = RunWeir(
      "replay --plan --memory 80GB --multiprocessors 132 --model replay-2.5b "
      "--seq 2048 --gbs 16 --optimizer sgd");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(
      run.out,
      AllOf(HasSubstr("sequences of 2048 tokens, batches of 16"),
            testing::ContainsRegex("skipped: gpipe, 4 partitions: needs "
                                   "[0-9]+ bytes \\(.* GiB\\), but "
                                   "[0-9]+ bytes \\(.* GiB\\) are available"),
            Not(HasSubstr("28 of 28"))));
  const std::vector<std::string> rows = PlannedRows(
      "--memory 80GB --multiprocessors 132 --seq 512 --optimizer sgd "
      "--schedule zb-v --partitions 4");
  ASSERT_EQ(rows.size(), 2);
  EXPECT_THAT(rows[1], HasSubstr("replay-gpu --seq=512 --optimizer=sgd"));
  // The longest batch fits with such sequences.
  EXPECT_THAT(rows[1], AllOf(HasSubstr("--gbs=16"), Not(HasSubstr("=1024"))));
  const ProgramRun small =
      RunWeir("replay --plan --memory 16GB --multiprocessors 40 --format json");
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_THAT(small.out,
              AllOf(HasSubstr("\"num_fitting\": 0"),
                    HasSubstr("the GPU has 40 multiprocessors, expected at "
                              "least 67: 8 partitions of 8, and 3 for "
                              "messages")));
}

// The options of a row are those of both programs.
TEST(ReplayPlanTest, TheOptionsOfARowRun) {
  const std::vector<std::string> rows = PlannedRows(
      "--memory 80GB --multiprocessors 132 replay-cpu --schedule 1f1b");
  ASSERT_EQ(rows.size(), 3);  // serial, and four partitions for four ranks
  for (const std::string& row : {rows[1], rows[2]}) {
    const std::string options = row.substr(row.rfind(',') + 1);
    EXPECT_EQ(RunSimulator(absl::StrCat("simulate ", options)).exit_code, 0);
    const ProgramRun run = RunWeir(absl::StrCat("replay --steps 1 ", options));
    EXPECT_EQ(run.exit_code, 0) << run.err;
  }
}

TEST(ReplayPlanTest, AGpuIsDescribedCompletelyOrFound) {
  const ProgramRun half = RunWeir("replay --plan --memory 80GiB");
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_THAT(half.err, HasSubstr("--multiprocessors is missing"));
  const ProgramRun without = RunWeir("replay --memory 80GiB");
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.err, HasSubstr("--memory requires --plan"));
  const ProgramRun none = RunWeirAfter(
      "WEIR_FAKE='missing=no NVIDIA driver on this machine'", "replay --plan");
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("no NVIDIA driver"));
  EXPECT_EQ(RunWeir("replay --plan --cpu").exit_code, 2);
}

TEST(ReplayPlanTest, AReplayWithoutAProfileStartsFromThePresetOfItsGpu) {
  ASSERT_TRUE(WriteInput("any.textproto", R"(
      name: "any" model: "tiny-gpt" cluster: "one-gpu" schedule: "1f1b"
      parallelism { pipeline: 2 } batch { global_batch_size: 4 }
      training { precision: MIXED_BF16 fp32_gradients: true
                 flash_attention: true }
      runtime: "weir")") != "");
  const ProgramRun run = RunWeir("replay ./any.textproto --steps 1");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("no --profile: batches and memory of ranks "
                                 "are predicted with the preset h200-sxm"));
  const ProgramRun simulated = RunSimulator("simulate ./any.textproto");
  EXPECT_EQ(simulated.exit_code, 2);
  EXPECT_THAT(simulated.err,
              HasSubstr("profile is empty, expected a device profile, because "
                        "the cluster one-gpu names no GPU (--profile"));
}

TEST(CalibrateReplayCommandTest, AFileWithoutFlushHasNoFormula) {
  const ProgramRun shown = RunSimulator(
      "schedule show 2bw --pp 4 --microbatches 8 --batches 2 --format json");
  ASSERT_TRUE(WriteFile(TestFolder() + "/mine.json", shown.out).ok());
  const ProgramRun run = RunWeir("replay --cpu --schedule ./mine.json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(
      run.err,
      HasSubstr(
          "the training result was not checked: ./mine.json: no formula"));
  EXPECT_THAT(run.err, Not(HasSubstr("Known:")));
}

// Interrupts a long replay after `seconds` and returns its exit code.
int ExitOfInterrupted(const char* signal, int seconds) {
  const int status = std::system(
      absl::StrCat("cd '", TestFolder(),
                   "' && rm -f i.pb && { WEIR_MAX_SECONDS=1e9 '", WEIR_PROGRAM,
                   "' replay replay-cpu --cpu --steps 1000000 --out i.pb "
                   ">.out 2>.err & pid=$!; sleep ",
                   seconds, "; kill -", signal,
                   " $pid; wait $pid; } 2>/dev/null")
          .c_str());
  return WEXITSTATUS(status);
}

TEST(CalibrateReplayCommandTest, InterruptedItShowsAndWritesWhatThereIs) {
  const std::string results = TestFolder() + "/i.pb";
  for (const auto& [signal, code] : {std::pair("INT", 130), {"TERM", 143}}) {
    // A slow machine needs longer for its first step.
    for (int seconds : {1, 10, 60}) {
      EXPECT_EQ(ExitOfInterrupted(signal, seconds), code);
      if (std::filesystem::exists(results)) break;
    }
    ASSERT_TRUE(std::filesystem::exists(results));
    EXPECT_GT(Loaded("i.pb").replay().num_steps(), 0u);
  }
}

TEST(CalibrateReplayCommandTest, ATimeLimitIsWhatTheClockCounts) {
  const std::string replay =
      "replay replay-cpu --cpu --schedule gpipe --steps 2 --timeout ";
  EXPECT_EQ(RunWeir(replay + "1e9").exit_code, 0);
  for (const char* seconds : {"1e10", "1e308", "inf", "nan", "-1", "0"}) {
    const ProgramRun run = RunWeir(replay + seconds);
    EXPECT_EQ(run.exit_code, 2) << seconds;
    EXPECT_THAT(run.err, HasSubstr("expected seconds from 0.001 to 1e+09"));
  }
}

TEST(CalibrateReplayCommandTest, HelpHasAllFlagsAndFitsATerminal) {
  const ProgramRun help = RunWeir("replay --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out,
              AllOf(HasSubstr("--partitions"), HasSubstr("--cpu"),
                    HasSubstr("--schedule S"), HasSubstr("--out FILE.pb")));
  for (absl::string_view line : absl::StrSplit(help.out, '\n')) {
    if (line.find("  weir-calibrate ") == 0) continue;
    EXPECT_LE(line.size(), 80) << line;
  }
}

}  // namespace weir::cli::replay_test
