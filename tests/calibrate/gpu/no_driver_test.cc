// SPDX-License-Identifier: Apache-2.0
// Checks that without an NVIDIA driver the bench reports this at once and in
// one line.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <chrono>

#include "calibrate/execute/gpu/execution_device.h"
#include "calibrate/gpu/cuda_bench.h"
#include "calibrate/gpu/device.h"
#include "calibrate/gpu/partition.h"
#include "calibrate/gpu/watchdog.h"

namespace weir::calibrate::no_driver_test {

bool HasDriver() {
  int driver = 0;
  return cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
}

TEST(NoDriverTest, OpeningTheBenchSaysThatThereIsNone) {
  if (HasDriver()) GTEST_SKIP() << "this machine has an NVIDIA driver";
  for (int attempt = 0; attempt < 2; ++attempt) {
    const absl::Status status = OpenCudaBench({}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(),
              "no NVIDIA driver on this machine (libcuda.so.1 was not found)");
  }
}

TEST(NoDriverTest, CuttingAGpuSaysThatThereIsNone) {
  if (HasDriver()) GTEST_SKIP() << "this machine has an NVIDIA driver";
  EXPECT_EQ(GpuPartitions::Create(0, 2).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(NoDriverTest, OpeningAReplaySaysThatThereIsNone) {
  if (HasDriver()) GTEST_SKIP() << "this machine has an NVIDIA driver";
  for (const int num_partitions : {0, 2}) {
    CudaExecutionOptions options;
    options.num_partitions = num_partitions;
    EXPECT_EQ(OpenCudaExecutionDevice({}, options).status().message(),
              "no NVIDIA driver on this machine (libcuda.so.1 was not found)");
  }
}

TEST(NoDriverTest, ProvenanceNamesTheLibrariesThatWereLinked) {
  const Provenance provenance = ProvenanceOf({}, nullptr);
  EXPECT_THAT(provenance.software().cuda(),
              testing::MatchesRegex("1[2-9]\\.[0-9]+"));
  EXPECT_THAT(provenance.software().cublas(),
              testing::MatchesRegex("1[2-9]\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(provenance.software().nccl(),
              testing::MatchesRegex("2\\.[0-9]+\\.[0-9]+"));
  EXPECT_EQ(provenance.software().cudnn(), "");
}

TEST(NoDriverTest, HashesAreTheSameInEveryRun) {
  EXPECT_EQ(StableHash(""), "cbf29ce484222325");  // the standard's value
  EXPECT_EQ(StableHash("a"), "af63dc4c8601ec8c");
}

TEST(NoDriverTest, WorkThatDoesNotReturnIsLeftBehind) {
  if (HasDriver()) GTEST_SKIP() << "RunWithin needs a GPU or none at all";
  const absl::Status status =
      RunWithin(5, "doing nothing", [] { return absl::OkStatus(); });
  // The thread cannot select a GPU and reports this instead of running.
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace weir::calibrate::no_driver_test
