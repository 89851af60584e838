// SPDX-License-Identifier: Apache-2.0
// weir-calibrate as built without CUDA.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/weir/program.h"

namespace weir::cli::without_cuda_test {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kWhy[] = "built without CUDA: no toolkit in this test";

TEST(WithoutCudaTest, WhatNeedsAGpuSaysSoInOneLineAndExits3) {
  for (const char* arguments :
       {"run --model gpt2 --out p.txt", "check --model gpt2",
        "network --out p.txt --start h200-sxm"}) {
    const ProgramRun run = RunWeir(arguments);
    EXPECT_EQ(run.exit_code, 3) << arguments << "\n" << run.err;
    EXPECT_THAT(run.err, HasSubstr(kWhy)) << arguments;
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
    EXPECT_EQ(run.out, "") << arguments;
  }
}

TEST(WithoutCudaTest, DoctorSaysItAndWhatWorks) {
  const ProgramRun run = RunWeir("doctor");
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr(kWhy), HasSubstr("replay --cpu")));
}

TEST(WithoutCudaTest, WhatNeedsNoGpuWorks) {
  EXPECT_EQ(RunWeir("run --model gpt2-xl --list").exit_code, 0);
  EXPECT_EQ(RunWeir("--help").exit_code, 0);
}

}  // namespace weir::cli::without_cuda_test
