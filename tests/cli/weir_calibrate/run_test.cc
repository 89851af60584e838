// SPDX-License-Identifier: Apache-2.0
// Runs weir-calibrate run with a fake GPU, as its users do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/textproto.h"
#include "calibrate/measure/journal.h"
#include "calibrate/profile/device_profile.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::run_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// One size of a small model: about 170 workloads.
constexpr char kSmall[] =
    "run --model gpt2 --microbatch-sizes 1 --sequence-lengths 128 --out p.txt";

std::string File(const std::string& name) {
  return absl::StrCat(TestFolder(), "/", name);
}

std::string Contents(const std::string& name) {
  const auto text = ReadFile(File(name));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

bool Exists(const std::string& name) { return ReadFile(File(name)).ok(); }

// Runs shell code in the test's folder with the program as $WEIR.
int Shell(const std::string& code) {
  const int status =
      std::system(absl::StrCat("cd '", TestFolder(), "' && WEIR='",
                               WEIR_PROGRAM, "' && ", code)
                      .c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Removes the files of earlier tests.
class CalibrateRunTest : public testing::Test {
 protected:
  void SetUp() override { Shell("rm -f *"); }
};

TEST_F(CalibrateRunTest, WritesAProfileThatLoadsAndAReport) {
  const ProgramRun run = RunWeir(absl::StrCat(kSmall, " --report report.csv"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto profile = calibrate::LoadDeviceProfile(File("p.txt"));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->provenance().gpu_name(), "NVIDIA H200");
  EXPECT_THAT(profile->provenance().command(),
              HasSubstr("weir-calibrate run --model gpt2"));
  EXPECT_GT(profile->kernels_size(), 90);
  EXPECT_THAT(run.out, AllOf(HasSubstr("memory_efficiency"),
                             HasSubstr("gpt2 1 block mb 1 s 128"),
                             HasSubstr("operations correct")));
  const std::string csv = Contents("report.csv");
  EXPECT_EQ(csv.find("kind,name,expected,measured,error,note\n"), 0);
  for (const char* kind : {"\nfigure,", "\nstage,", "\nmemory,", "\nkernel,",
                           "\nverify,", "\ncopy,"}) {
    EXPECT_THAT(csv, HasSubstr(kind));
  }
  EXPECT_FALSE(Exists("p.txt.partial"));
  EXPECT_TRUE(Exists("p.txt.journal"));
  // Without a terminal there is no status line.
  EXPECT_THAT(run.err, Not(HasSubstr("\r")));
}

TEST_F(CalibrateRunTest, OnPartsOfTheGpuFactorsAreMeasuredAndResumed) {
  const std::string parts = absl::StrCat(kSmall, " --partitions 4");
  // A hang stops the run, and the watchdog ends it.
  EXPECT_EQ(RunWeirAfter("WEIR_FAKE='hangs=while 4 of 4'",
                         absl::StrCat(parts, " --timeout 0.5"))
                .exit_code,
            1);
  const ProgramRun other =
      RunWeir(absl::StrCat(kSmall, " --partitions 2 --quiet"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("num_partitions is 4, this run has 2"));
  EXPECT_EQ(RunWeir(absl::StrCat(kSmall, " --quiet")).exit_code, 2);
  const ProgramRun run = RunWeir(parts);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("continues from p.txt.partial"));
  EXPECT_THAT(run.out, HasSubstr("pass with other partitions busy, s"));
  const auto profile = calibrate::LoadDeviceProfile(File("p.txt"));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->partition_slowdown().slowdowns_size(), 4 * 2);
  EXPECT_EQ(profile->partition_slowdown().multiprocessors(), 32);
  // A partition's profile cannot be the start of another run.
  const ProgramRun start = RunWeir(
      "run --model gpt2 --out q.txt --start p.txt --partitions 4 --quiet");
  EXPECT_EQ(start.exit_code, 2);
  EXPECT_THAT(start.err, HasSubstr("describes one of 4 partitions of a GPU"));
  EXPECT_EQ(RunWeir(absl::StrCat(kSmall, " --partitions 0")).exit_code, 2);
  EXPECT_THAT(RunWeir(absl::StrCat(parts, " --list")).out,
              HasSubstr("while 4 of 4 parts work"));
}

TEST_F(CalibrateRunTest, RefusedOperationIsNamedAndEverythingElseKept) {
  const ProgramRun run = RunWeirAfter("WEIR_FAKE='wrong=norm_forward'", kSmall);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("error: failed: norm_forward"),
                    HasSubstr("relative error"), Not(HasSubstr("bug"))));
  EXPECT_TRUE(calibrate::LoadDeviceProfile(File("p.txt")).ok());
  // Once the cause is fixed, the same command measures only the refused
  // workloads and those that depend on them.
  EXPECT_TRUE(Exists("p.txt.partial"));
  const ProgramRun again = RunWeir(kSmall);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("continues from p.txt.partial"));
  EXPECT_FALSE(Exists("p.txt.partial"));
}

TEST_F(CalibrateRunTest, ThrottlingAndDriftAreInTheReportAndTheRemarks) {
  const ProgramRun run = RunWeirAfter("WEIR_FAKE='hot_from=20'", kSmall);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("throttled by the power limit"),
                             HasSubstr("drifted: ")));
  EXPECT_THAT(Contents("p.txt"), HasSubstr("drifted by more than 2 %"));
}

// Removes the state of the reference, which depends on when it was measured.
std::string WithoutReference(const std::string& name) {
  auto journal = calibrate::LoadJournal(File(name));
  EXPECT_TRUE(journal.ok()) << journal.status();
  for (WorkloadResult& result : *journal->mutable_workloads()) {
    result.clear_reference_ratio();
  }
  return PrintTextProto(*journal);
}

// Runs the program until p.txt.partial has `num_workloads`, sends the signal
// and returns the exit code.
int RunUntil(int num_workloads, const std::string& signal,
             const std::string& fake) {
  return Shell(absl::StrCat("{ WEIR_FAKE='", fake, "' $WEIR ", kSmall,
                            " >.out 2>.err & pid=$!; for i in $(seq 1000); do "
                            "n=$(grep -c '^workloads' "
                            "p.txt.partial 2>/dev/null); [ \"${n:-0}\" -ge ",
                            num_workloads,
                            " ] && break; sleep 0.02; done; kill -", signal,
                            " $pid; wait $pid; } 2>/dev/null"));
}

TEST_F(CalibrateRunTest, KilledAnywhereItGoesOnAndEndsAsUndisturbed) {
  const std::string fake = "WEIR_FAKE='noise=0.01;sleep=0.0001' ";
  ASSERT_EQ(Shell(absl::StrCat(fake, "$WEIR ", kSmall,
                               " >/dev/null 2>&1 && mv p.txt whole.txt && mv "
                               "p.txt.journal whole.journal")),
            0);
  for (int num_workloads : {1, 40, 75}) {
    RunUntil(num_workloads, "KILL", "noise=0.01;sleep=0.0001");
    const auto journal = calibrate::LoadJournal(File("p.txt.partial"));
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_GE(journal->workloads_size(), num_workloads);
  }
  ASSERT_EQ(Shell(absl::StrCat(fake, "$WEIR ", kSmall, " >/dev/null 2>&1")), 0);
  EXPECT_EQ(WithoutReference("p.txt.journal"),
            WithoutReference("whole.journal"));
  EXPECT_EQ(Contents("p.txt"), Contents("whole.txt"));
}

TEST_F(CalibrateRunTest, InterruptKeepsResultsAndSaysHowToGoOn) {
  EXPECT_EQ(RunUntil(3, "INT", "sleep=0.0001"), 130);
  EXPECT_THAT(Contents(".err"),
              AllOf(HasSubstr("interrupted"), HasSubstr("p.txt.partial"),
                    HasSubstr("run the same command again to continue"),
                    Not(HasSubstr("bug"))));
  EXPECT_TRUE(calibrate::LoadJournal(File("p.txt.partial")).ok());
  EXPECT_FALSE(Exists("p.txt"));
}

TEST_F(CalibrateRunTest, AnotherGpuOrLibraryRefusesThePartialAndNamesBoth) {
  RunUntil(3, "INT", "sleep=0.0001");
  ASSERT_TRUE(Exists("p.txt.partial"));
  const ProgramRun other = RunWeirAfter(
      "WEIR_FAKE='gpu=NVIDIA A100-SXM4-80GB;cublas=12.4.5'", kSmall);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("NVIDIA A100-SXM4-80GB"),
                               HasSubstr("NVIDIA H200"), HasSubstr("13.1.0"),
                               HasSubstr("12.4.5"), HasSubstr("--fresh")));
  const ProgramRun fresh = RunWeirAfter("WEIR_FAKE='gpu=NVIDIA A100-SXM4-80GB'",
                                        absl::StrCat(kSmall, " --fresh"));
  EXPECT_EQ(fresh.exit_code, 0) << fresh.err;
}

TEST_F(CalibrateRunTest, WatchdogEndsAHangWithItsName) {
  const ProgramRun run = RunWeirAfter("WEIR_FAKE='hangs=attention_forward'",
                                      absl::StrCat(kSmall, " --timeout 0.5"));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("no progress for 0.5 s"),
                             HasSubstr("attention_forward"),
                             HasSubstr("p.txt.partial")));
  const auto journal = calibrate::LoadJournal(File("p.txt.partial"));
  ASSERT_TRUE(journal.ok());
  EXPECT_GT(journal->workloads_size(), 10);
}

TEST_F(CalibrateRunTest, LostGpuEndsItWithItsWords) {
  const ProgramRun run = RunWeirAfter("WEIR_FAKE='breaks=gemm'", kSmall);
  // The first timed workload is the reference GEMM.
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("illegal memory access"));
}

TEST_F(CalibrateRunTest, SecondRunOnTheSameOutputIsRefused) {
  const int code = Shell(absl::StrCat(
      "{ WEIR_FAKE='sleep=0.0002' $WEIR ", kSmall,
      " >.out 2>.err & pid=$!; until grep -q '^workloads' p.txt.partial; do "
      "sleep 0.02; done; $WEIR ",
      kSmall, " >.out2 2>.err2; second=$?; wait $pid; first=$?; [ $first = 0 ]",
      " && exit $second; } 2>/dev/null"));
  EXPECT_EQ(code, 2);
  EXPECT_THAT(Contents(".err2"), HasSubstr("p.txt: another run is writing it"));
  EXPECT_TRUE(calibrate::LoadDeviceProfile(File("p.txt")).ok());
  EXPECT_FALSE(Exists("p.txt.lock"));
}

TEST_F(CalibrateRunTest, PassAloneBringsTheOperationsThatItConsistsOf) {
  const ProgramRun run = RunWeirAfter(
      "WEIR_FAKE='wrong=norm_forward'",
      absl::StrCat(kSmall, " --only \"pass forward of gpt2 1 block\""));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("failed: norm_forward"));
  const auto journal = calibrate::LoadJournal(File("p.txt.partial"));
  ASSERT_TRUE(journal.ok());
  for (const WorkloadResult& result : journal->workloads()) {
    if (absl::StrContains(result.key(), "pass ")) {
      EXPECT_NE(result.state(), WorkloadResult::TIMED) << result.key();
    }
  }
}

TEST_F(CalibrateRunTest, UnknownGpuStartsFromTheMostSimilarOne) {
  const ProgramRun run =
      RunWeirAfter("WEIR_FAKE='gpu=NVIDIA GeForce 9800'", kSmall);
  EXPECT_EQ(run.exit_code, 0);
  constexpr char kRemark[] =
      "no preset is known for NVIDIA GeForce 9800: parameters that are not "
      "measured are those of h200-sxm, the most similar GPU (--start)";
  EXPECT_THAT(run.err, HasSubstr(absl::StrCat("warning: ", kRemark)));
  EXPECT_THAT(
      calibrate::LoadDeviceProfile(File("p.txt"))->provenance().remarks(),
      testing::Contains(kRemark));
  std::filesystem::remove(File("p.txt"));
  const ProgramRun with =
      RunWeirAfter("WEIR_FAKE='gpu=NVIDIA GeForce 9800'",
                   absl::StrCat(kSmall, " --start h200-sxm"));
  EXPECT_EQ(with.exit_code, 0) << with.err;
}

TEST_F(CalibrateRunTest, ListNeedsNoGpuAndSumsUp) {
  const ProgramRun run =
      RunWeirAfter("WEIR_FAKE='missing=no NVIDIA driver on this machine'",
                   "run --model llama-2-7b --list");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("workloads, about "), HasSubstr("copy of 1 MiB"),
                    HasSubstr("pass forward of llama-2-7b 1 block")));
}

TEST_F(CalibrateRunTest, OnlyCopiesAreAProfileTooAndOnlyNothingIsNone) {
  const ProgramRun run = RunWeir(absl::StrCat(kSmall, " --only copy"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("memory_efficiency"),
                             Not(HasSubstr("gemm.matrix_rate"))));
  const ProgramRun none = RunWeir(absl::StrCat(kSmall, " --only nonsense"));
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("--only nonsense"));
}

TEST_F(CalibrateRunTest, AFolderAsOutputIsRefusedBeforeAnythingIsMeasured) {
  std::filesystem::create_directory(File("p.txt"));
  const ProgramRun run = RunWeir(kSmall);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("is a folder"));
  EXPECT_FALSE(Exists("p.txt.partial"));
  std::filesystem::remove(File("p.txt"));
}

TEST_F(CalibrateRunTest, FilesOfOthersAreReplacedOnlyWithForce) {
  const std::string copies =
      absl::StrCat(kSmall, " --only copy --report report.csv --quiet");
  const std::string names[] = {"p.txt", "p.txt.partial", "p.txt.journal",
                               "report.csv"};
  for (const std::string& name : names) {
    WriteInput(name, "notes\n");
    const ProgramRun run = RunWeir(copies);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, HasSubstr(name + ": was not written by weir"));
    EXPECT_EQ(Contents(name), "notes\n");
    std::filesystem::remove(File(name));
  }
  // One output does not replace another.
  for (const char* name :
       {"p.txt", "./p.txt.partial", "p.txt.journal", "p.txt.lock"}) {
    const ProgramRun run =
        RunWeir(absl::StrCat(kSmall, " --only copy --report ", name));
    EXPECT_EQ(run.exit_code, 2) << name;
    EXPECT_THAT(run.err, HasSubstr(absl::StrCat("--report is ", name,
                                                ", the same file as ")));
  }
  WriteInput("p.txt.lock", "notes\n");
  EXPECT_THAT(RunWeir(copies).err, HasSubstr("p.txt.lock: is not a lock file"));
  EXPECT_EQ(Contents("p.txt.lock"), "notes\n");
  std::filesystem::remove(File("p.txt.lock"));
  for (const std::string& name : names) WriteInput(name, "notes\n");
  const ProgramRun forced = RunWeir(copies + " --force");
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  // The program replaces its own files.
  const ProgramRun again = RunWeir(copies);
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(CalibrateRunTest, LinksInACircleAreAnError) {
  std::filesystem::create_symlink("p.txt", File("p.txt"));
  const ProgramRun run = RunWeir(kSmall);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("p.txt: cannot be written: Too many levels"));
  std::filesystem::remove(File("p.txt"));
}

TEST_F(CalibrateRunTest, ADamagedResultIsNamedAndMeasuredAgain) {
  RunUntil(3, "INT", "sleep=0.0001");
  std::string journal = Contents("p.txt.partial");
  const size_t at = journal.find("p50: ", journal.find("workloads")) + 5;
  journal[at] = journal[at] == '1' ? '2' : '1';
  WriteInput("p.txt.partial", journal);
  const ProgramRun run = RunWeir(kSmall);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("warning: p.txt.partial: record 2 (byte "),
                    HasSubstr(") is damaged: its checksum does not match; this "
                              "workload is measured again")));
}

TEST_F(CalibrateRunTest, AReportThatCannotBeWrittenLosesNothing) {
  const ProgramRun run =
      RunWeir(absl::StrCat(kSmall, " --only copy --report /proc/no/where"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("run the same command again to continue"));
  EXPECT_TRUE(Exists("p.txt"));
  EXPECT_TRUE(Exists("p.txt.partial"));
}

TEST_F(CalibrateRunTest, UnfusedAttentionAndDropoutHaveTheirOwnOperations) {
  const ProgramRun run =
      RunWeir("run --model gpt2 --attention both --dropout 0.1 --list");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("mb 1 s 1024 tp 1 fused dropout bf16"));
  EXPECT_THAT(run.out, HasSubstr("mb 1 s 1024 tp 1 dropout bf16"));
}

TEST_F(CalibrateRunTest, AHeadSizeThatFusedAttentionLacksIsAUsageError) {
  const ProgramRun run = RunWeir("run --model gpt-2.2b --list");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("head_size is 72, expected 64 or 128"));
  EXPECT_THAT(run.err, HasSubstr("--attention unfused"));
  EXPECT_EQ(
      RunWeir("run --model gpt-2.2b --attention unfused --list").exit_code, 0);
}

TEST_F(CalibrateRunTest, TheProfileSaysWhatItPredicts) {
  EXPECT_EQ(RunWeir(kSmall).exit_code, 0);
  const auto frameworks = calibrate::LoadDeviceProfile(File("p.txt"));
  ASSERT_TRUE(frameworks.ok()) << frameworks.status();
  EXPECT_EQ(frameworks->purpose(), DeviceProfile::FRAMEWORKS);
  const ProgramRun run = RunWeir(absl::StrCat(kSmall, " --for replays"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto replays = calibrate::LoadDeviceProfile(File("p.txt"));
  ASSERT_TRUE(replays.ok()) << replays.status();
  EXPECT_EQ(replays->purpose(), DeviceProfile::REPLAYS);
  EXPECT_GT(replays->kernels_size(), frameworks->kernels_size());
  EXPECT_GT(replays->kernel_gap_seconds().value(),
            frameworks->kernel_gap_seconds().value());
  // Only replays use partitions.
  const std::string parts = absl::StrCat(kSmall, " --partitions 4");
  EXPECT_THAT(
      RunWeir(absl::StrCat(parts, " --list")).out,
      AllOf(HasSubstr(" launched one by one\n"), Not(HasSubstr("sustained"))));
  EXPECT_THAT(RunWeir(absl::StrCat(kSmall, " --list")).out,
              AllOf(Not(HasSubstr(" launched one by one\n")),
                    HasSubstr("  20.0 s  sustained gemm m 8192")));
  // Copies need no sustained clocks.
  EXPECT_THAT(RunWeir(absl::StrCat(kSmall, " --only copy --list")).out,
              Not(HasSubstr("sustained")));
}

TEST_F(CalibrateRunTest, ReportsAreJudged) {
  const std::string small =
      "--model gpt2 --microbatch-sizes 1 --sequence-lengths 128 ";
  const std::string fake = "WEIR_FAKE='noise=0.002;efficient=1'";
  RunWeirAfter(fake, absl::StrCat("check ", small, "--report c.csv"));
  RunWeirAfter(fake, absl::StrCat("run ", small, "--out a.txt --report a.csv"));
  RunWeirAfter("WEIR_FAKE='noise=0.002;efficient=1;seed=2'",
               absl::StrCat("run ", small, "--out b.txt --report b.csv"));
  const ProgramRun well = RunWeir(
      "judge --check c.csv --run a.csv --repeated b.csv --best no.csv "
      "--out checks.csv");
  EXPECT_EQ(well.exit_code, 0) << well.out << well.err;
  EXPECT_THAT(well.err, HasSubstr("no.csv: no such file"));
  EXPECT_THAT(well.out, AllOf(HasSubstr("holds"), HasSubstr("reported"),
                              HasSubstr("n/a"), Not(HasSubstr("FAILS"))));
  EXPECT_EQ(Contents("checks.csv").find("check,limit,value,rows,verdict\n"), 0);
  // Kernels that are much slower the second time fail by name.
  RunWeirAfter("WEIR_FAKE='efficient=1;hot_from=0'",
               absl::StrCat("run ", small, "--out d.txt --report d.csv"));
  const ProgramRun slow = RunWeir("judge --run a.csv --repeated d.csv");
  EXPECT_EQ(slow.exit_code, 1);
  EXPECT_THAT(slow.out, AllOf(HasSubstr("FAILS"),
                              HasSubstr("worst rows of: repeated calibration"),
                              HasSubstr("  gemm ")));
  EXPECT_EQ(RunWeir("judge").exit_code, 1);  // nothing was run
  EXPECT_EQ(RunWeir("judge --run p.md").exit_code, 1);
  WriteInput("bad.csv", "a,b\n1,2\n");
  EXPECT_EQ(RunWeir("judge --run bad.csv").exit_code, 2);
}

}  // namespace weir::cli::run_test
