// SPDX-License-Identifier: Apache-2.0
// Compares the kernels, run by the emulator, with the references.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/calibrate/gpu/emulator/emulator.h"
#include "tests/calibrate/gpu/kernels/emulated_device.h"
#include "tests/calibrate/gpu/kernels/kernel_cases.h"
#include "tests/calibrate/gpu/kernels/kernel_check.h"
#include "tests/calibrate/gpu/kernels/other_checks.h"

namespace weir::calibrate::kernels_test {

using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

void ExpectWithinBounds(
    const absl::StatusOr<std::vector<OutputError>>& errors) {
  ASSERT_TRUE(errors.ok()) << errors.status();
  for (const OutputError& error : *errors) {
    EXPECT_LE(error.error, error.bound) << error.output;
    printf("%s: %.2e\n", error.output.c_str(), error.error);
  }
}

class EmulatedKernelTest : public TestWithParam<KernelCase> {};

TEST_P(EmulatedKernelTest, ComputesWhatTheReferenceDoes) {
  EmulatedDevice device;
  ExpectWithinBounds(CheckKernel(GetParam(), &device));
}

class EmulatedOtherTest : public TestWithParam<OtherCheck> {};

TEST_P(EmulatedOtherTest, DoesWhatItSays) {
  EmulatedDevice device;
  ExpectWithinBounds(GetParam().run(&device));
}

template <typename Case>
std::string CaseName(const TestParamInfo<Case>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Rows, EmulatedKernelTest, ValuesIn(RowCases()),
                         CaseName<KernelCase>);
INSTANTIATE_TEST_SUITE_P(Attention, EmulatedKernelTest,
                         ValuesIn(AttentionCases()), CaseName<KernelCase>);
INSTANTIATE_TEST_SUITE_P(Other, EmulatedOtherTest, ValuesIn(OtherChecks()),
                         CaseName<OtherCheck>);
INSTANTIATE_TEST_SUITE_P(Training, EmulatedOtherTest,
                         ValuesIn(TrainingChecks()), CaseName<OtherCheck>);

}  // namespace weir::calibrate::kernels_test
