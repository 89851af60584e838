// SPDX-License-Identifier: Apache-2.0
// What CUDA and its libraries return, as absl::Status: what was attempted and
// the library's words. Too little memory is ResourceExhausted, what this GPU or
// library does not do Unimplemented, a missing driver or GPU
// FailedPrecondition, the rest Internal.
#ifndef WEIR_CALIBRATE_GPU_ERRORS_H_
#define WEIR_CALIBRATE_GPU_ERRORS_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir {

absl::Status CudaStatus(cudaError_t code, absl::string_view attempted);
absl::Status CublasStatus(cublasStatus_t code, absl::string_view attempted);
absl::Status NcclStatus(ncclResult_t code, absl::string_view attempted);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_ERRORS_H_
