// SPDX-License-Identifier: Apache-2.0
// CUDA kernels for the operations of calibrate/execute/stage/stage_op.h, which
// defines what each computes; GEMMs use the library (calibrate/gpu/). All
// functions launch on `stream` and return at once; sizes are not checked here.
// `half` is bf16 or fp16 by `format`; all sums are fp32. Pointers are 16-byte
// aligned device memory, null for absent tensors.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_KERNELS_H_
#define WEIR_CALIBRATE_GPU_KERNELS_KERNELS_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "calibrate/execute/stage/stage_op.h"

namespace weir::calibrate {

struct Launch {
  cudaStream_t stream = nullptr;
  ElementFormat format = ElementFormat::kBf16;
  // Available to the stream. Too few are slow, but results are the same.
  int num_multiprocessors = 1;
  // At least WorkspaceBytes() of the launched operation, 16-byte aligned.
  // Launches on one stream may share it, also with GEMMs.
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

// Returns the bytes of partial sums over rows (bias gradients, norms'
// backward), which make the order of summation fixed: at most some 10 MB for
// 132 multiprocessors; 0 for other operations.
int64_t WorkspaceBytes(const Launch& launch, const StageOp& op);

// Launches an operation. Sizes come from the StageOp; pointers are in the order
// of its table (OpKind), inputs and outputs, and include the view's offset.
// Tensors updated in place are taken from the outputs; the corresponding inputs
// are ignored. Returns the launch's error, cudaErrorInvalidValue if the
// workspace is too small, or cudaErrorNotSupported for unsupported arguments:
// widths that are not a multiple of 8 (rotary: head sizes of 16), rows with a
// stride, norms wider than 16384, fused attention with a head size other than
// 64 and 128 or before compute capability 8.0.
//
// Results are deterministic except for the gradient of the embedding table
// (atomics). To this end, the gradients of fused attention compute the scores
// twice, once by keys and once by queries.
cudaError_t LaunchOp(const Launch& launch, const StageOp& op,
                     const void* const* inputs, void* const* outputs);

// Returns true if LaunchOp supports it: all kinds but kGemm and unfused
// attention.
bool HasKernel(const StageOp& op);

// Computes the softmax of unfused attention, over rows of `columns` scores, in
// place: scaled, causal (row r sees columns up to r mod `columns`), to
// probabilities; or its gradient, in place in d_probabilities.
cudaError_t LaunchSoftmax(const Launch& launch, void* scores, int64_t num_rows,
                          int64_t columns, float scale, bool causal);
cudaError_t LaunchSoftmaxGradient(const Launch& launch,
                                  const void* probabilities,
                                  void* d_probabilities, int64_t num_rows,
                                  int64_t columns, float scale);

// Fills with normal random numbers of mean 0, a function of the seed.
cudaError_t LaunchFillNormal(const Launch& launch, ElementFormat format,
                             void* data, int64_t num_elements, float deviation,
                             uint64_t seed);
// Fills with random whole numbers in [0, limit).
cudaError_t LaunchFillTokens(const Launch& launch, int32_t* data,
                             int64_t num_elements, int32_t limit,
                             uint64_t seed);
// Launches an empty kernel, to measure the cost of a launch.
cudaError_t LaunchEmpty(const Launch& launch);
// Reads and writes 64 bytes per thread: an upper bound for streaming kernels.
cudaError_t LaunchCopy(const Launch& launch, const void* from, void* to,
                       int64_t bytes);

// An emulated link: a copy that takes latency_seconds + num_bytes /
// bytes_per_second from the start of the kernel (after events it waits for and
// the launch) and is never more than one chunk per block ahead of its rate.
// Supports any size and alignment; source and destination must not overlap.
struct PacedCopy {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t num_bytes = 0;  // 0: waits for the latency only
  double latency_seconds = 0;
  double bytes_per_second = 0;  // 0: as fast as possible
};
// Launches a paced copy. It is timed by %globaltimer, which has a resolution of
// 32 ns on Hopper and later and 1 us before (the error of the whole copy is at
// most twice that). The bytes are visible to others after an event on
// `launch.stream`.
cudaError_t LaunchPacedCopy(const Launch& launch, const PacedCopy& copy);
// Returns the number of blocks that together sustain `bytes_per_second`, at
// most 64 (also for 0, unlimited). Assumes 1e10 bytes/s per block: 16 KiB in
// flight for some 1.2 us, with a margin (not yet measured).
inline int NumPacedCopyBlocks(double bytes_per_second) {
  constexpr double kBlockBytesPerSecond = 1e10;
  constexpr double kMost = 64;
  if (!(bytes_per_second > 0)) return static_cast<int>(kMost);
  return static_cast<int>(std::clamp(
      std::ceil(bytes_per_second / kBlockBytesPerSecond), 1.0, kMost));
}
// Returns how many blocks run concurrently on a GPU with the fewest threads per
// multiprocessor (1024). Overlapping copies must not exceed this in total,
// since the excess blocks would begin only when others end. A single copy never
// exceeds it.
inline int MaxPacedCopyBlocks(int num_multiprocessors) {
  return 8 * num_multiprocessors;
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_KERNELS_H_
