// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/errors.h"

#include "absl/strings/str_cat.h"

namespace weir::calibrate {
namespace {

absl::StatusCode CodeOf(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return absl::StatusCode::kResourceExhausted;
    case cudaErrorNotSupported:
    case cudaErrorNoKernelImageForDevice:
      return absl::StatusCode::kUnimplemented;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::StatusCode CodeOf(cublasStatus_t code) {
  switch (code) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return absl::StatusCode::kResourceExhausted;
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status CudaStatus(cudaError_t code, absl::string_view attempted) {
  if (code == cudaSuccess) return absl::OkStatus();
  return absl::Status(CodeOf(code),
                      absl::StrCat(attempted, ": ", cudaGetErrorString(code),
                                   " (", cudaGetErrorName(code), ")"));
}

absl::Status CublasStatus(cublasStatus_t code, absl::string_view attempted) {
  if (code == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::Status(
      CodeOf(code), absl::StrCat(attempted, ": ", cublasLtGetStatusString(code),
                                 " (", cublasLtGetStatusName(code), ")"));
}

absl::Status NcclStatus(ncclResult_t code, absl::string_view attempted) {
  if (code == ncclSuccess) return absl::OkStatus();
  const char* last = ncclGetLastError(nullptr);
  return absl::InternalError(absl::StrCat(
      attempted, ": NCCL: ", ncclGetErrorString(code),
      last != nullptr && *last != '\0' ? absl::StrCat(" (", last, ")") : ""));
}

}  // namespace weir::calibrate
