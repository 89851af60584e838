// SPDX-License-Identifier: Apache-2.0
// Checks which files commands replace, and what remains on disk if they cannot
// write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"
#include "tests/results/import/sample_trace.h"

namespace weir::cli::output_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kNotes[] = "years of notes\n";

// A command that writes "FILE", and the path that it writes.
struct Writer {
  std::string name;
  std::string arguments;
  std::string file;  // below an empty folder
};

void PrintTo(const Writer& writer, std::ostream* stream) {
  *stream << "weir " << writer.arguments;
}

std::vector<Writer> Writers() {
  const std::string given =
      "--schedule gpipe --costs f=1,b=2 --pp 2 --microbatches 4";
  return {
      {"SimulateOut", absl::StrCat("simulate ", given, " --out FILE"), "r"},
      {"SimulateTrace", absl::StrCat("simulate ", given, " --trace FILE"),
       "t.pftrace"},
      {"SimulateTraceInFolder",
       absl::StrCat("simulate ", given, " --trace FOLDER/"), "gpipe.pftrace"},
      {"CompareOut", absl::StrCat("compare ", given, " --out FILE"), "r"},
      {"CompareTrace", absl::StrCat("compare ", given, " --trace FILE"),
       "t.json"},
      {"SimulateReport", absl::StrCat("simulate ", given, " --report FILE"),
       "t.html"},
      {"Report", "report ../result.pb -o FILE", "t.html"},
      {"Draw", "draw 1f1b --pp 2 -o FILE", "t.svg"},
      {"ReportOfScenario", absl::StrCat("report ", given, " -o FILE"),
       "t.html"},
      {"Trace", "trace ../result.pb -o FILE", "t.json"},
      {"ImportOut", "import ../run.csv -o FILE", "r"},
      {"ImportCosts", "import ../run.csv --costs FILE", "c.textproto"},
      {"ImportReport", "import ../run.csv --report FILE", "t.html"},
      {"ValidateTrace",
       "validate --replay ../result.pb --against ../result.pb --trace FILE",
       "t.json"},
      {"ValidateOverlay",
       "validate --measured ../slow.csv --model gpt2 --dp 1 --cluster dgx-a100 "
       "--nodes 1 --gbs 16 --schedule 1f1b --calibrate --overlay FILE",
       "p.textproto"},
      {"TrainStudyOut",
       "train-study --schedule gpipe --updates 2 --seeds 1 --out FILE", "l"},
      {"SynthesizeCsv",
       "schedule synthesize --pp 2 --microbatches 2 --costs f=1,i=1,w=1 "
       "--method local --moves 10 --out FILE",
       "s.csv"},
      {"SynthesizeJson",
       "schedule synthesize --pp 2 --microbatches 2 --costs f=1,i=1,w=1 "
       "--method local --moves 10 --out FILE",
       "s.json"},
      {"EnergyClocks",
       "energy ../clocks.csv --blocking-power 50 --microbatches 2 --out FILE",
       "e"},
      {"Convert", "schedule convert 1f1b --pp 2 --microbatches 2 -o FILE",
       "s.csv"},
      {"ProfileImport",
       "profile import ../gemm.csv --profile a100-sxm-80gb --out FILE", "p"},
      {"CollectReport", "collect ../sweep --report FILE", "c.html"},
      {"ReportOfSweep", "report ../sweep -o FILE", "c.html"},
      {"TrainStudyReport",
       "train-study --schedule gpipe --updates 2 --seeds 1 --report FILE",
       "t.html"},
      {"SynthesizeReport",
       "schedule synthesize --pp 2 --microbatches 2 --costs f=1,i=1,w=1 "
       "--method local --moves 10 --report FILE",
       "s.html"},
      {"ValidateReplayReport",
       "validate --replay ../result.pb --against ../result.pb --report FILE",
       "t.html"},
      {"CollectCsv", "collect ../sweep --csv FILE", "c"},
      {"CollectSqlite", "collect ../sweep --sqlite FILE", "c"},
      {"Plan",
       "plan --model gpt2 --cluster dgx-h100 --gpus 2 --gbs 4 --mbs 1 --pp 2 "
       "--tp 1 --schedule gpipe --recompute none --plans 1 --jobs 1 --out "
       "FOLDER",
       "plan-1.textproto"},
  };
}

class OutputTest : public testing::TestWithParam<Writer> {
 protected:
  // Creates the inputs of the commands and an empty folder for their outputs.
  void SetUp() override {
    fs::remove_all(Folder());
    fs::create_directory(Folder());
    WriteInput("gemm.csv",
               "m,n,k,latency_us\n1024,1024,1024,30\n2048,2048,2048,80\n"
               "4096,4096,4096,520\n");
    WriteInput("clocks.csv",
               "stage,instruction,frequency,time,energy\n"
               "0,forward,1400,1,300\n0,backward,1400,2,600\n");
    WriteInput("run.csv", results::SampleCsv(results::SampleOperations({})));
    // A third longer than predicted.
    WriteInput("slow.csv",
               "pp,step_ms\n1,240\n2,160\n3,120\n4,95\n6,80\n1,250\n2,150\n");
    const std::string& arguments = GetParam().arguments;
    if (absl::StrContains(arguments, "result.pb")) {
      EXPECT_EQ(RunWeir("simulate --schedule gpipe --costs f=1,b=2 --pp 2 "
                        "--microbatches 4 --out result.pb")
                    .exit_code,
                0);
    }
    if (absl::StrContains(arguments, "../sweep")) {
      EXPECT_EQ(RunWeir("sweep --schedule gpipe --costs f=1,b=2 --grid "
                        "parallelism.pipeline=2,4 --grid num_microbatches=4 "
                        "--out sweep --resume --jobs 1")
                    .exit_code,
                0);
    }
  }

  static std::string Folder() { return absl::StrCat(TestFolder(), "/w"); }
  static std::string File() {
    return absl::StrCat(Folder(), "/", GetParam().file);
  }
  // Paths are absolute if a command names a folder, else relative as users type
  // them.
  static std::string Arguments() {
    return absl::StrReplaceAll(GetParam().arguments, {{"FILE", GetParam().file},
                                                      {"FOLDER", Folder()}});
  }
  static ProgramRun Run(const std::string& more = "") {
    return RunWeirIn("w", absl::StrCat(Arguments(), " ", more));
  }
  static int NumFiles(const std::string& folder) {
    return static_cast<int>(std::distance(fs::directory_iterator(folder),
                                          fs::directory_iterator()));
  }
};

TEST_P(OutputTest, AFileThatWeirDidNotWriteIsReplacedOnlyWithForce) {
  ASSERT_TRUE(WriteFile(File(), kNotes).ok());
  const ProgramRun refused = Run();
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr(absl::StrCat(
                               GetParam().file,
                               ": was not written by weir; choose another "
                               "file, or --force to overwrite it")));
  EXPECT_EQ(*ReadFile(File()), kNotes);
  EXPECT_EQ(NumFiles(Folder()), 1);

  const ProgramRun forced = Run("--force");
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_NE(*ReadFile(File()), kNotes);
  // The program replaces its own file.
  const ProgramRun again = Run();
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_P(OutputTest, LinksInACircleAreAnError) {
  fs::create_symlink(GetParam().file, File());
  const ProgramRun run = Run();
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("cannot be written: Too many levels"));
  EXPECT_EQ(NumFiles(Folder()), 1);
}

TEST_P(OutputTest, ALinkStaysAndItsTargetIsWritten) {
  fs::create_symlink("../target", File());
  fs::remove(TestFolder() + "/target");
  const ProgramRun run = Run();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(fs::is_symlink(File()));
  EXPECT_TRUE(fs::is_regular_file(TestFolder() + "/target"));
}

struct PipedRun {
  int exit_code = -1;
  std::string text;  // standard output and error
};

// Runs a shell command whose output goes into a pipe, which is not subject to
// file size limits.
PipedRun Piped(const std::string& command) {
  PipedRun run;
  std::FILE* pipe =
      popen(absl::StrCat("cd '", TestFolder(), "/w' && { ", command, "; } 2>&1")
                .c_str(),
            "r");
  if (pipe == nullptr) return run;
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof(buffer), pipe)) {
    run.text.append(buffer, n);
  }
  const int status = pclose(pipe);
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

// Returns the lines with errors.
std::vector<std::string> ErrorLines(const std::string& text) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "error:")) lines.emplace_back(line);
  }
  return lines;
}

TEST_P(OutputTest, AFileSizeLimitIsAnErrorAndLeavesNothing) {
  const PipedRun run =
      Piped(absl::StrCat("ulimit -f 0; '", WEIR_PROGRAM, "' ", Arguments()));
  EXPECT_EQ(run.exit_code, 2) << run.text;
  ASSERT_EQ(ErrorLines(run.text).size(), 1) << run.text;
  EXPECT_THAT(ErrorLines(run.text)[0], AllOf(HasSubstr(GetParam().file),
                                             HasSubstr("cannot be written")));
  EXPECT_EQ(NumFiles(Folder()), 0) << run.text;
}

TEST_P(OutputTest, AFullDiskIsAnErrorAndLeavesNothing) {
  if (mount("tmpfs", Folder().c_str(), "tmpfs", 0, "size=4k") != 0) {
    GTEST_SKIP() << "this user may not mount a small file system";
  }
  EXPECT_TRUE(WriteFile(Folder() + "/filler", std::string(4096, 'x')).ok());
  const PipedRun run =
      Piped(absl::StrCat("'", WEIR_PROGRAM, "' ", Arguments()));
  const int num_files = NumFiles(Folder());
  EXPECT_EQ(umount2(Folder().c_str(), MNT_DETACH), 0);
  EXPECT_EQ(run.exit_code, 2) << run.text;
  ASSERT_EQ(ErrorLines(run.text).size(), 1) << run.text;
  EXPECT_THAT(ErrorLines(run.text)[0], HasSubstr("cannot be written"));
  EXPECT_EQ(num_files, 1);
}

// Returns a prefix that runs a program as a user who is subject to permissions,
// or an empty string if that is not possible.
std::string AsUser() {
  if (geteuid() != 0) return " ";
  const std::string user =
      "setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs ";
  // A program that starts another one has lost the rights of the first user,
  // which may be needed to reach weir's folder.
  const std::string test =
      absl::StrCat(user, "env '", WEIR_PROGRAM, "' --version >/dev/null 2>&1");
  return std::system(test.c_str()) == 0 ? user : "";
}

TEST_P(OutputTest, AReadOnlyFolderIsAnErrorAndLeavesNothing) {
  const std::string user = AsUser();
  if (user.empty()) GTEST_SKIP() << "no other user can run the program";
  fs::permissions(TestFolder(), fs::perms(0755));
  fs::permissions(Folder(), fs::perms(0555));
  const PipedRun run =
      Piped(absl::StrCat(user, "'", WEIR_PROGRAM, "' ", Arguments()));
  fs::permissions(Folder(), fs::perms(0755));
  EXPECT_EQ(run.exit_code, 2) << run.text;
  ASSERT_EQ(ErrorLines(run.text).size(), 1) << run.text;
  EXPECT_THAT(ErrorLines(run.text)[0],
              HasSubstr("cannot be written: Permission denied"));
  EXPECT_EQ(NumFiles(Folder()), 0);
}

INSTANTIATE_TEST_SUITE_P(Commands, OutputTest, testing::ValuesIn(Writers()),
                         [](const testing::TestParamInfo<Writer>& info) {
                           return info.param.name;
                         });

TEST(OutputCommandTest, APictureIsReplacedWhereWeirDrewIt) {
  const std::string command =
      "train-study --schedule gpipe --updates 2 --seeds 1 --plot p.svg ";
  WriteInput("p.svg", "<svg>mine</svg>");
  EXPECT_EQ(RunWeir(command).exit_code, 2);
  EXPECT_EQ(*ReadFile(TestFolder() + "/p.svg"), "<svg>mine</svg>");
  EXPECT_EQ(RunWeir(command + "--force").exit_code, 0);
  EXPECT_EQ(RunWeir(command).exit_code, 0);
}

TEST(OutputCommandTest, ForeignFilesOfTheSameFormatStay) {
  WriteInput("mine.csv", "0F0,0B0\n1F0,1B0\n");
  EXPECT_THAT(RunWeir("schedule convert 1f1b --pp 2 -o mine.csv").err,
              HasSubstr("mine.csv: was not written by weir"));
  WriteInput("study.csv", "schedule,loss\ngpipe,1\n");
  EXPECT_THAT(RunWeir("train-study --schedule gpipe --updates 2 --out "
                      "study.csv")
                  .err,
              HasSubstr("study.csv: was not written by weir"));
  WriteInput("trace.json", "{\"traceEvents\":[]}");
  EXPECT_THAT(
      RunWeir("simulate --schedule gpipe --costs f=1,b=2 --trace trace.json")
          .err,
      HasSubstr("trace.json: was not written by weir"));
}

constexpr char kSweep[] =
    "sweep --schedule gpipe --costs f=1,b=2 --grid parallelism.pipeline=2,4 "
    "--grid num_microbatches=4 --jobs 1 --out ";

TEST(OutputCommandTest, AForeignShardIsEmptiedOnlyWithForce) {
  const std::string command = absl::StrCat(kSweep, "shards ");
  // Without an end of line, it looks like the remains of a killed process.
  for (const char* text : {kNotes, "years of notes"}) {
    WriteInput("shards/shard-0-of-1.jsonl", text);
    const ProgramRun refused = RunWeir(command);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(
        refused.err,
        HasSubstr(
            "shard-0-of-1.jsonl: does not start with the header of a sweep"));
    EXPECT_EQ(*ReadFile(TestFolder() + "/shards/shard-0-of-1.jsonl"), text);
  }
  EXPECT_EQ(RunWeir(command + "--force").exit_code, 0);
  EXPECT_EQ(RunWeir("collect shards --complete").exit_code, 0);
}

TEST(OutputCommandTest, ASweepThatCannotBeWrittenSaysWhy) {
  WriteInput("file", "x");
  ProgramRun run = RunWeir(absl::StrCat(kSweep, "file/sub"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("cannot be written: Not a directory"));
  const std::string user = AsUser();
  if (user.empty()) GTEST_SKIP() << "no other user can run the program";
  fs::permissions(TestFolder(), fs::perms(0755));
  fs::create_directory(TestFolder() + "/read-only");
  fs::permissions(TestFolder() + "/read-only", fs::perms(0555));
  run = RunWeirAfter(user, absl::StrCat(kSweep, "read-only/sub"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("cannot be written: Permission denied"));
}

TEST(OutputCommandTest, AShardThatIsNoRegularFileIsAnError) {
  fs::create_directory(TestFolder() + "/pipe");
  ASSERT_EQ(mkfifo((TestFolder() + "/pipe/shard-0-of-1.jsonl").c_str(), 0600),
            0);
  for (const char* more : {"", " --resume", " --force"}) {
    const ProgramRun run = RunWeir(absl::StrCat(kSweep, "pipe", more));
    EXPECT_EQ(run.exit_code, 2) << more;
    EXPECT_THAT(run.err, HasSubstr("shard-0-of-1.jsonl: is a pipe, expected a "
                                   "file"));
  }
}

TEST(OutputCommandTest, AShardAboveTheLimitOfFilesSaysSo) {
  fs::create_directories(TestFolder() + "/w");
  const PipedRun run = Piped(absl::StrCat(
      "ulimit -f 1; '", WEIR_PROGRAM,
      "' sweep --schedule gpipe --costs f=1,b=2 --grid "
      "parallelism.pipeline=2,4 --grid num_microbatches=4..40 --jobs 1 --out "
      "limited"));
  EXPECT_EQ(run.exit_code, 2) << run.text;
  EXPECT_THAT(run.text, AllOf(HasSubstr("cannot be written: File too large"),
                              Not(HasSubstr("No space left"))));
}

// Checks commands whose second output would replace the first.
TEST(OutputCommandTest, TwoOutputsNeedTwoFiles) {
  ASSERT_EQ(RunWeir(absl::StrCat(kSweep, "distinct")).exit_code, 0);
  fs::create_symlink("file", TestFolder() + "/link");
  const std::string given =
      " --schedule gpipe --costs f=1,b=2 --pp 2 --microbatches 4 ";
  for (const std::string& command : {
           absl::StrCat("simulate", given, "--out a.json --trace ./a.json"),
           absl::StrCat("compare", given, "--out a.json --trace a.json"),
           absl::StrCat("simulate", given, "--out a.html --report a.html"),
           absl::StrCat("simulate", given, "--out t/any.pftrace --trace t/"),
           std::string("train-study --schedule gpipe --updates 2 --seeds 1 "
                       "--out z.svg --plot z.svg"),
           std::string("collect distinct --csv file --sqlite link"),
           std::string("collect distinct --csv link --sqlite file"),
       }) {
    const ProgramRun run = RunWeir(command);
    EXPECT_EQ(run.exit_code, 2) << command;
    EXPECT_THAT(run.err, AllOf(HasSubstr("the same file as --"),
                               HasSubstr("choose another file")));
    EXPECT_THAT(run.out, IsEmpty()) << command;
  }
  EXPECT_FALSE(fs::exists(TestFolder() + "/a.json"));
  EXPECT_FALSE(fs::exists(TestFolder() + "/file"));
}

TEST(OutputCommandTest, ADamagedRecordIsNamedAndItsPointRunsAgain) {
  ASSERT_EQ(RunWeir(absl::StrCat(kSweep, "damaged")).exit_code, 0);
  const std::string path = TestFolder() + "/damaged/shard-0-of-1.jsonl";
  const std::string whole = RunWeir("collect damaged --format csv").out;
  std::string bytes = *ReadFile(path);
  const size_t second = bytes.find('\n') + 1;
  const size_t at = bytes.find("batch_seconds", second) + 15;
  bytes[at] = static_cast<char>(bytes[at] ^ 1);  // changes a value
  ASSERT_TRUE(WriteFile(path, bytes).ok());
  const std::string warning =
      absl::StrCat("damaged/shard-0-of-1.jsonl: record 2 (byte ", second,
                   ") is damaged: its checksum does not match; ");
  const ProgramRun collected = RunWeir("collect damaged --complete");
  EXPECT_EQ(collected.exit_code, 1);
  EXPECT_THAT(collected.err, HasSubstr(warning + "this record is ignored"));
  const ProgramRun resumed = RunWeir(absl::StrCat(kSweep, "damaged --resume"));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr(warning + "the point is run again"));
  EXPECT_EQ(RunWeir("collect damaged --format csv").out, whole);
}

TEST(OutputCommandTest, OnlyRegularFilesBecomeDatabases) {
  ASSERT_EQ(RunWeir(absl::StrCat(kSweep, "regular")).exit_code, 0);
  fs::create_symlink("/dev/null", TestFolder() + "/null");
  const ProgramRun run = RunWeir("collect regular --sqlite null");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("null: cannot be written: is not a regular"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(OutputCommandTest, EndlessAndForeignBytesAreRefusedInOneLine) {
  ProgramRun run = RunWeir("show /dev/zero");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err, "error: /dev/zero: is larger than 64.0 MiB, the limit\n");
  // A result whose name is not UTF-8, for which protobuf has its own message.
  WriteInput("foreign.pb", "\x0a\x04\x0a\x02\xff\xfe");
  run = RunWeir("show foreign.pb");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(ErrorLines(run.err).size(), 1);
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
}

}  // namespace weir::cli::output_test
