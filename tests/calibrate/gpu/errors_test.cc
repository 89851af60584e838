// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/errors.h"

#include <gmock/gmock.h>

namespace weir::calibrate::errors_test {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ErrorsTest, SuccessIsOk) {
  EXPECT_TRUE(CudaStatus(cudaSuccess, "x").ok());
  EXPECT_TRUE(CublasStatus(CUBLAS_STATUS_SUCCESS, "x").ok());
  EXPECT_TRUE(NcclStatus(ncclSuccess, "x").ok());
}

TEST(ErrorsTest, TooLittleMemoryIsResourceExhausted) {
  const absl::Status cuda =
      CudaStatus(cudaErrorMemoryAllocation, "allocating 7 bytes");
  EXPECT_EQ(cuda.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(cuda.message(),
            "allocating 7 bytes: out of memory (cudaErrorMemoryAllocation)");
  EXPECT_EQ(CublasStatus(CUBLAS_STATUS_ALLOC_FAILED, "x").code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(ErrorsTest, WhatThisGpuOrLibraryDoesNotDoIsUnimplemented) {
  EXPECT_EQ(CudaStatus(cudaErrorNotSupported, "x").code(),
            absl::StatusCode::kUnimplemented);
  const absl::Status cublas =
      CublasStatus(CUBLAS_STATUS_NOT_SUPPORTED, "asking for a GEMM");
  EXPECT_EQ(cublas.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(cublas.message()), StartsWith("asking for a GEMM: "));
  EXPECT_THAT(std::string(cublas.message()),
              HasSubstr("CUBLAS_STATUS_NOT_SUPPORTED"));
}

TEST(ErrorsTest, WhatIsMissingOnThisMachineIsAPrecondition) {
  for (const cudaError_t code :
       {cudaErrorInsufficientDriver, cudaErrorNoDevice,
        cudaErrorDevicesUnavailable, cudaErrorSystemNotReady}) {
    EXPECT_EQ(CudaStatus(code, "x").code(),
              absl::StatusCode::kFailedPrecondition);
  }
}

TEST(ErrorsTest, TheRestIsInternalAndKeepsTheLibrarysWords) {
  const absl::Status cuda = CudaStatus(cudaErrorIllegalAddress, "norm");
  EXPECT_EQ(cuda.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(cuda.message()),
              HasSubstr("cudaErrorIllegalAddress"));
  const absl::Status nccl = NcclStatus(ncclInvalidUsage, "sending");
  EXPECT_EQ(nccl.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(nccl.message()),
              StartsWith("sending: NCCL: invalid usage"));
}

}  // namespace weir::calibrate::errors_test
