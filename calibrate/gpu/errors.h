// SPDX-License-Identifier: Apache-2.0
// Converts errors of CUDA and its libraries to absl::Status, with the attempted
// operation and the library's message. Insufficient memory is
// ResourceExhausted, operations unsupported by the GPU or library are
// Unimplemented, a missing driver or GPU is FailedPrecondition, all others are
// Internal.
#ifndef WEIR_CALIBRATE_GPU_ERRORS_H_
#define WEIR_CALIBRATE_GPU_ERRORS_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir::calibrate {

absl::Status CudaStatus(cudaError_t code, absl::string_view attempted);
absl::Status CublasStatus(cublasStatus_t code, absl::string_view attempted);
absl::Status NcclStatus(ncclResult_t code, absl::string_view attempted);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_ERRORS_H_
