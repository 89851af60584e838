// SPDX-License-Identifier: Apache-2.0
// The kernels, run by the emulator, against the references.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/calibrate/gpu/kernels/emulated_device.h"
#include "tests/calibrate/gpu/kernels/kernel_cases.h"
#include "tests/calibrate/gpu/kernels/kernel_check.h"

namespace weir {
namespace {

using ::testing::TestWithParam;

class EmulatedKernelTest : public TestWithParam<KernelCase> {};

TEST_P(EmulatedKernelTest, ComputesWhatTheReferenceDoes) {
  EmulatedDevice device;
  const auto errors = CheckKernel(GetParam(), &device);
  ASSERT_TRUE(errors.ok()) << errors.status();
  for (const OutputError& error : *errors) {
    EXPECT_LE(error.error, error.bound) << error.output;
    printf("%s: %.2e\n", error.output.c_str(), error.error);
  }
}

std::string CaseName(const testing::TestParamInfo<KernelCase>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Rows, EmulatedKernelTest,
                         testing::ValuesIn(RowCases()), CaseName);
INSTANTIATE_TEST_SUITE_P(Attention, EmulatedKernelTest,
                         testing::ValuesIn(AttentionCases()), CaseName);

}  // namespace
}  // namespace weir
