// SPDX-License-Identifier: Apache-2.0
// The real weir-calibrate on a machine without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "tests/cli/weir/program.h"

namespace weir::cli::missing_gpu_test {

using testing::HasSubstr;
using testing::StartsWith;

class MissingGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (access("/dev/nvidia0", F_OK) == 0) {
      GTEST_SKIP() << "this machine has a GPU";
    }
  }
};

TEST_F(MissingGpuTest, EveryCommandSaysSoInOneLineAndExits3) {
  for (const char* arguments :
       {"run --model gpt2 --out p.txt", "check --model gpt2",
        "network --out p.txt --start h200-sxm"}) {
    const ProgramRun run = RunWeir(arguments);
    EXPECT_EQ(run.exit_code, 3) << arguments << "\n" << run.err;
    EXPECT_THAT(run.err, StartsWith("error: ")) << arguments;
    EXPECT_THAT(run.err, HasSubstr("driver")) << arguments;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_EQ(run.out, "") << arguments;
  }
}

TEST_F(MissingGpuTest, DoctorShowsTheLibrariesAndWhatIsMissing) {
  const ProgramRun run = RunWeir("doctor");
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_THAT(run.out, HasSubstr("driver    not found: install"));
  EXPECT_THAT(run.out, HasSubstr("GPU       not found: no NVIDIA driver"));
  EXPECT_THAT(run.out, HasSubstr("cuBLASLt  1"));
  EXPECT_THAT(run.out, HasSubstr("NCCL      2."));
}

TEST(RealProgramTest, BadFlagsAreUsageErrorsAndThePlanNeedsNoGpu) {
  EXPECT_EQ(RunWeir("run --model gpt2 --out p --microbatch 2").exit_code, 2);
  EXPECT_EQ(RunWeir("nothing").exit_code, 2);
  const ProgramRun list = RunWeir("run --model gpt2-xl --list");
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("workloads, about "));
}

}  // namespace weir::cli::missing_gpu_test
