// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/architectures.h"

#include <gtest/gtest.h>

namespace weir::calibrate::architectures_test {

constexpr char kDefault[] = "75-real;80-real;90";

bool Runs(int major, int minor, const char* compiled) {
  return CheckArchitecture("a card", major, minor, compiled).ok();
}

TEST(ArchitecturesTest, MachineCodeRunsOnLaterGpusOfItsMajorNumber) {
  EXPECT_TRUE(Runs(7, 5, kDefault));
  EXPECT_TRUE(Runs(8, 0, kDefault));
  EXPECT_TRUE(Runs(8, 6, kDefault));
  EXPECT_TRUE(Runs(8, 9, kDefault));
  EXPECT_FALSE(Runs(7, 0, kDefault));
  EXPECT_FALSE(Runs(7, 2, kDefault));
  EXPECT_FALSE(Runs(9, 0, "75-real,80-real"));
}

TEST(ArchitecturesTest, PortableCodeRunsOnAllLaterGpus) {
  EXPECT_TRUE(Runs(9, 0, kDefault));
  EXPECT_TRUE(Runs(10, 0, kDefault));
  EXPECT_TRUE(Runs(12, 1, kDefault));
  EXPECT_TRUE(Runs(10, 0, "70-virtual"));
  EXPECT_TRUE(Runs(9, 0, "native"));
}

TEST(ArchitecturesTest, FeaturesOfOneArchitectureRunOnNoOther) {
  EXPECT_TRUE(Runs(9, 0, "90a"));
  EXPECT_FALSE(Runs(10, 0, "90a"));
}

TEST(ArchitecturesTest, GpusBeforeTheV100AreTooOldWhateverWasCompiled) {
  EXPECT_FALSE(Runs(6, 1, "native"));
  EXPECT_FALSE(Runs(6, 1, "60"));
}

TEST(ArchitecturesTest, TheErrorNamesGpuAndBuildInOneLine) {
  const absl::Status status = CheckArchitecture("Tesla P40", 6, 1, kDefault);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "this GPU (Tesla P40) is sm_61; weir-calibrate was built for "
            "sm_75, sm_80, sm_90 and later (CMAKE_CUDA_ARCHITECTURES)");
}

}  // namespace weir::calibrate::architectures_test
