// SPDX-License-Identifier: Apache-2.0
// Tests check, doctor, and errors of the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::usage_test {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kCheck[] = "check --model gpt2 --microbatch-sizes 1";
constexpr char kNoDriver[] =
    "WEIR_FAKE='missing=no NVIDIA driver on this machine'";

TEST(CalibrateUsageTest, CheckVerifiesAndTimesNothing) {
  const ProgramRun run = RunWeirAfter("WEIR_FAKE='hangs=gemm'", kCheck);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("right      0.003  norm_forward"),
                             HasSubstr("operations are correct")));
}

TEST(CalibrateUsageTest, CheckFailsWithTheNameAndError) {
  const ProgramRun run =
      RunWeirAfter("WEIR_FAKE='wrong=norm_backward;wrong=adam'", kCheck);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("failed: norm_backward"), HasSubstr("nan"),
                    HasSubstr("failed: adam"), HasSubstr("0.37")));
}

TEST(CalibrateUsageTest, DoctorSaysWhatIsThereAndWhatToDo) {
  const ProgramRun well = RunWeir("doctor");
  EXPECT_EQ(well.exit_code, 0);
  EXPECT_THAT(well.out, AllOf(HasSubstr("NVIDIA H200"),
                              HasSubstr("NVML      not found: clocks")));
  const ProgramRun ill = RunWeirAfter(kNoDriver, "doctor");
  EXPECT_EQ(ill.exit_code, 3);
  EXPECT_THAT(ill.out, HasSubstr("GPU       not found: no NVIDIA driver"));
  const ProgramRun json = RunWeirAfter(kNoDriver, "doctor --json");
  EXPECT_EQ(json.exit_code, 3);
  const auto answer = nlohmann::json::parse(json.out);
  EXPECT_EQ(answer["tool"], "weir-calibrate");
  EXPECT_EQ(answer["result"]["usable"], false);
  EXPECT_EQ(answer["result"]["findings"][1]["advice"],
            "no NVIDIA driver on this machine");
}

TEST(CalibrateUsageTest, MessagesAreObjectsWithMessageFormatJson) {
  const ProgramRun usage = RunWeir("run --bogus --message-format json");
  EXPECT_EQ(usage.exit_code, 2);
  EXPECT_THAT(usage.err, HasSubstr("\"file\":\"weir-calibrate run\""));
  const ProgramRun none =
      RunWeirAfter(kNoDriver, absl::StrCat("--message-format json ", kCheck));
  EXPECT_EQ(none.exit_code, 3);
  const auto error = nlohmann::json::parse(none.err);
  EXPECT_EQ(error["severity"], "error");
  EXPECT_EQ(error["message"],
            "no NVIDIA driver on this machine (weir-calibrate doctor)");
  const ProgramRun failed = RunWeirAfter(
      "WEIR_FAKE='wrong=adam'", absl::StrCat(kCheck, " --message-format=json"));
  EXPECT_EQ(failed.exit_code, 1);
  for (const absl::string_view line :
       absl::StrSplit(failed.err, '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
  const ProgramRun judge =
      RunWeir("judge --check no.csv --message-format json");
  EXPECT_EQ(nlohmann::json::parse(judge.err)["severity"], "note");
}

TEST(CalibrateUsageTest, WithoutAGpuThereIsOneLineAndExit3) {
  for (const char* arguments : {"run --model gpt2 --out p", kCheck}) {
    const ProgramRun run = RunWeirAfter(kNoDriver, arguments);
    EXPECT_EQ(run.exit_code, 3);
    EXPECT_EQ(run.err,
              "error: no NVIDIA driver on this machine (weir-calibrate "
              "doctor)\n");
    EXPECT_EQ(run.out, "");
  }
}

TEST(CalibrateUsageTest, BadCommandLinesAreUsageErrors) {
  const struct {
    const char* arguments;
    const char* message;
  } cases[] = {
      {"",
       "no command given (run, check, replay, network, judge, doctor, help)"},
      {"rum", "unknown command rum; did you mean run?"},
      {"run", "--model is missing"},
      {"run --model gpt2", "--out is missing"},
      {"run --model gpt2 --out p --microbatch-size 2",
       "unknown option --microbatch-size; did you mean --microbatch-sizes?"},
      {"run --model gpt2 --out p --microbatch-sizes 0",
       "--microbatch-sizes is 0, expected a whole number from 1 to"},
      {"run --model gpt2 --out p --attention flash", "--attention is flash"},
      {"run --model gpt2 --out p --dropout 1.5",
       "--dropout is 1.5, expected a number from 0 to 0.99"},
      {"run --out p --dropout nan --devise 1", "--model is missing"},
      {"run --out p --dropout nan --devise 1", "--dropout is nan"},
      {"run --out p --dropout nan --devise 1", "did you mean --device?"},
      {"run --model gpt3 --list", "gpt3: is neither a file nor a preset"},
      {"run --model gpt2 --sequence-lengths 4096 --list", "sequence_length"},
      {"run --model mixtral-8x7b --list", "experts"},
      {"run --model gpt2 --list --start h300",
       "h300: is neither a file nor a preset"},
      {"network --out p", "--start is missing"},
      {"doctor --jsn", "unknown option --jsn; did you mean --json?"},
  };
  for (const auto& [arguments, message] : cases) {
    const ProgramRun run = RunWeir(arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments;
    EXPECT_THAT(run.err, AllOf(HasSubstr("error: "), HasSubstr(message)))
        << arguments;
    EXPECT_EQ(run.out, "") << arguments;
  }
}

TEST(CalibrateUsageTest, HelpAndVersion) {
  const ProgramRun help = RunWeir("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("doctor"), HasSubstr("network")));
  const ProgramRun run_help = RunWeir("run --help");
  EXPECT_EQ(run_help.exit_code, 0);
  EXPECT_THAT(run_help.out, HasSubstr("--microbatch-sizes"));
  const ProgramRun version = RunWeir("--version");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, HasSubstr("weir-calibrate 0."));
}

}  // namespace weir::cli::usage_test
