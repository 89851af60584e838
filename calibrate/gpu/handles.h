// SPDX-License-Identifier: Apache-2.0
// Owners of CUDA and cuBLASLt handles. Once the watchdog has found the GPU
// hung, handles are leaked, since destroying them would wait for it. Functions
// return the errors of errors.h.
#ifndef WEIR_CALIBRATE_GPU_HANDLES_H_
#define WEIR_CALIBRATE_GPU_HANDLES_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <utility>

#include "absl/status/statusor.h"
#include "calibrate/gpu/watchdog.h"

namespace weir::calibrate {

template <typename Handle, auto Destroy>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr && !DeviceIsHung()) Destroy(handle_);
  }

  Handle get() const { return handle_; }
  Handle* receive() { return &handle_; }  // Requires: empty

 private:
  Handle handle_ = nullptr;
};

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;
using LtHandle = Owned<cublasLtHandle_t, cublasLtDestroy>;
using MatmulDesc = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using MatmulPreference =
    Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;
using DeviceMemory = Owned<void*, cudaFree>;

absl::StatusOr<Stream> MakeStream();
absl::StatusOr<Event> MakeEvent();
absl::StatusOr<DeviceMemory> Allocate(int64_t num_bytes,
                                      absl::string_view what_for);
// Returns the free memory of the device, not of this process.
absl::StatusOr<int64_t> FreeMemory();

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HANDLES_H_
