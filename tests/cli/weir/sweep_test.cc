// SPDX-License-Identifier: Apache-2.0
// Runs "weir sweep" and "weir collect" as users do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::sweep_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kGrid[] =
    "sweep --costs f=1,b=2 --grid parallelism.pipeline=2,4 --grid "
    "num_microbatches=4,8 ";

TEST(SweepCommandTest, AGridIsSweptAndCollected) {
  ProgramRun run = RunWeir(absl::StrCat(kGrid, "--schedule gpipe --out a"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_THAT(run.out, AllOf(HasSubstr("4 points: 4 done, 0 refused, 0 failed"),
                             HasSubstr("best: point 0, 15 s per batch")));
  run = RunWeir("collect a --complete --csv a.csv --sqlite a.sqlite");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::string csv = *ReadFile(TestFolder() + "/a.csv");
  EXPECT_THAT(csv, HasSubstr("\n3,4,8,done,,full,4,1,8,33,33,"));
  EXPECT_EQ(RunWeir("collect a --format csv").out, csv);
  EXPECT_THAT(RunWeir("collect a --format json").out,
              HasSubstr("\"batch_seconds\": 15.0"));
}

TEST(SweepCommandTest, FlagsNameFieldsAndResumeNeedsOnlyTheFolder) {
  const std::string grid =
      "sweep --costs f=1,b=2 --microbatches 8 --schedule gpipe --grid "
      "pp=2,4 --grid chunks=1,2 --out r --shard 0/2";
  EXPECT_EQ(RunWeir(grid).exit_code, 0);
  const ProgramRun rest = RunWeir("sweep --resume --out r");
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("4 points: 2 already done"));
  EXPECT_THAT(RunWeir("collect r --format csv").out,
              testing::StartsWith("point,pp,chunks,outcome,error,"));
  EXPECT_EQ(RunWeir("sweep --resume --out nowhere").exit_code, 2);
}

TEST(SweepCommandTest, CollectPrintsPointsAndPivots) {
  ASSERT_EQ(RunWeir("sweep --costs f=1,b=2 --microbatches 8 --grid pp=2,4,8 "
                    "--grid schedule=gpipe,1f1b,nosuch --out p")
                .exit_code,
            0);
  const ProgramRun table = RunWeir("collect p --top 2");
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out,
              AllOf(HasSubstr("point  pp  schedule  gpus  step time"),
                    HasSubstr("0      2   gpipe        2       27 s"),
                    HasSubstr("... 4 more (--top 0)"),
                    HasSubstr("3 points: schedule is nosuch, expected")));
  const ProgramRun pivot = RunWeir("collect p --pivot pp,schedule");
  EXPECT_EQ(pivot.exit_code, 0) << pivot.err;
  EXPECT_EQ(pivot.out,
            "best step time of the points that fit\n"
            "pp \\ schedule  gpipe  1f1b  nosuch\n"
            "2               27 s  27 s       -\n"
            "4               33 s  33 s       -\n"
            "8               45 s  45 s       -\n");
  EXPECT_THAT(RunWeir("collect p --pivot pp,tp").err,
              HasSubstr("--pivot has tp, expected fields of the sweep: pp, "
                        "schedule"));
  EXPECT_THAT(RunWeir("collect p --pivot pp,schedule --metric mfux").err,
              HasSubstr("did you mean mfu?"));
}

TEST(SweepCommandTest, AFileAndFlagsOverIt) {
  WriteInput("s.textproto", R"(
    base: "given-costs-1f1b"
    axes { field: "parallelism.pipeline" values: "2..4" }
    axes { field: "schedule" values: ["gpipe", "interleaved-1f1b"] }
  )");
  const ProgramRun run =
      RunWeir("sweep s.textproto --grid parallelism.pipeline=4 --out b");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  // Without a flag, chunks follow the schedule.
  EXPECT_THAT(run.out, HasSubstr("2 points: 2 done"));
}

TEST(SweepCommandTest, TheExampleOfTheDocumentationRuns) {
  const ProgramRun run = RunWeir(
      absl::StrCat("sweep ", WEIR_SOURCE_DIR, "/docs/sweep.textproto --out x"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("72 points: 70 done, 2 refused"));
}

TEST(SweepCommandTest, PointsThatAreMissingAreNamed) {
  ASSERT_EQ(RunWeir(absl::StrCat(kGrid, "--schedule gpipe --out c --shard 1/2"))
                .exit_code,
            0);
  ProgramRun run = RunWeir("collect c");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("2 of 4 points are missing: 0, 2 "));
  EXPECT_EQ(RunWeir("collect c --complete").exit_code, 1);
  // One process runs the points that the shards have left.
  run = RunWeir(absl::StrCat(kGrid, "--schedule gpipe --out c --resume"));
  EXPECT_THAT(run.out, HasSubstr("4 points: 2 already done, 2 done"));
  EXPECT_EQ(RunWeir("collect c --complete").exit_code, 0);
}

TEST(SweepCommandTest, WhereNothingCanRunTheReasonIsSaid) {
  const ProgramRun run =
      RunWeir(absl::StrCat(kGrid, "--schedule nosuch --out d"));
  EXPECT_EQ(run.exit_code, 1);
  const auto says =
      HasSubstr("no point can run: point 0: schedule is nosuch, expected");
  EXPECT_THAT(run.err, says);
  // A second run finds all points refused and gives the same reason.
  const ProgramRun again =
      RunWeir(absl::StrCat(kGrid, "--schedule nosuch --out d --resume"));
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, says);
  const ProgramRun collected = RunWeir("collect d --complete");
  EXPECT_EQ(collected.exit_code, 1);
  EXPECT_THAT(collected.err, says);
  EXPECT_EQ(RunWeir("collect d").exit_code, 0);
}

TEST(SweepCommandTest, BadInputIsSaidAllAtOnce) {
  const ProgramRun run = RunWeir(
      "sweep --grid paralelism.pipeline=2 --grid num_batches=x --out e");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("did you mean parallelism.pipeline?"),
                             HasSubstr("num_batches is \"x\"")));
  EXPECT_FALSE(std::filesystem::exists(TestFolder() + "/e"));
  const ProgramRun twice =
      RunWeir(absl::StrCat(kGrid, "--grid parallelism.pipeline=8 --out e"));
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err,
              HasSubstr("weir sweep: --grid parallelism.pipeline is given "
                        "twice, expected all values in one --grid"));
  EXPECT_FALSE(std::filesystem::exists(TestFolder() + "/e"));
  EXPECT_EQ(RunWeir(absl::StrCat(kGrid, "--shard 2/2 --out e")).exit_code, 2);
  EXPECT_EQ(RunWeir("collect nowhere").exit_code, 2);
  const ProgramRun same = RunWeir("collect nowhere --csv x --sqlite ./y/../x");
  EXPECT_EQ(same.exit_code, 2);
  EXPECT_THAT(
      same.err,
      HasSubstr(
          "--sqlite is ./y/../x, the same file as --csv; choose another file"));
}

TEST(SweepCommandTest, APointOverItsTimeLimitFails) {
  // Twelve million actions take many seconds on any machine.
  const std::string sweep =
      "sweep --costs f=1,b=2 --schedule 1f1b --grid "
      "parallelism.pipeline=2,1000 "
      "--microbatches 6000 --out t ";
  ProgramRun run = RunWeir(absl::StrCat(sweep, "--time-limit 2"));
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 failed (1 over the time limit)"));
  EXPECT_THAT(run.out, HasSubstr("best: point 0"));
  EXPECT_THAT(run.err, HasSubstr("point 1: took longer than 2 s"));
  run = RunWeir(absl::StrCat(sweep, "--resume --time-limit 2"));
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("2 points: 2 already done, 0 done"));
  EXPECT_EQ(RunWeir("collect t --complete").exit_code, 1);
  EXPECT_EQ(RunWeir(absl::StrCat(sweep, "--time-limit 1e10")).exit_code, 2);
}

TEST(SweepCommandTest, FlagsThatWouldBeIgnoredAreRefused) {
  ProgramRun run = RunWeir(absl::StrCat(kGrid, "--wait --out g"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--wait is given without --slurm"));
  run = RunWeir(absl::StrCat(kGrid, "--slurm --shard 1/2 --out g"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--shard is given with --slurm"));
}

TEST(SweepCommandTest, WithoutSlurmSaysWhatToInstall) {
  ASSERT_TRUE(std::filesystem::create_directory(TestFolder() + "/empty"));
  // PATH must contain "timeout" and the shell.
  const ProgramRun run = RunWeirAfter(
      "for p in timeout sh; do ln -s $(command -v $p) empty/; done; "
      "PATH=$PWD/empty",
      absl::StrCat(kGrid, "--schedule gpipe --out f --slurm"));
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("sbatch is not found"),
                             HasSubstr("slurm-client")));
}

}  // namespace weir::cli::sweep_test
