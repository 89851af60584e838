// SPDX-License-Identifier: Apache-2.0
// Our CUDA kernels behind the operations of calibrate/stage/stage_op.h, which
// says what each computes; products are the library's (calibrate/gpu/). All
// launch on `stream` and return at once; sizes are not checked here. `half` is
// bf16 or fp16 by `format`; all sums are fp32. Pointers are 16-byte aligned
// device memory, null where the operation leaves a tensor out.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_KERNELS_H_
#define WEIR_CALIBRATE_GPU_KERNELS_KERNELS_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "calibrate/stage/stage_op.h"

namespace weir {

struct Launch {
  cudaStream_t stream = nullptr;
  ElementFormat format = ElementFormat::kBf16;
  int num_multiprocessors = 132;  // that the stream may use
  // At least WorkspaceBytes of what is launched, 16-byte aligned; launches of
  // one stream may share it, also with the products.
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

// Partial sums over rows (bias gradients, norms' backward), so that they add up
// in a fixed order: at most some 10 MB for 132 multiprocessors; else 0.
int64_t WorkspaceBytes(const Launch& launch, const StageOp& op);

// Row counts, widths and the rest come from the StageOp; pointers in the order
// of its table (OpKind), inputs and outputs, a view's offset already in them.
// What is updated in place is the output; Adam's and the others' inputs of the
// same view are not looked at. Error: what the launch reported,
// cudaErrorInvalidValue for too small a workspace, or cudaErrorNotSupported for
// what the kernel does not take: widths that are no multiple of 8 (rotary: head
// sizes of 16), rows with a stride, norms wider than 16384, fused attention
// with a head size other than 64 and 128 or before compute capability 8.0.
//
// The same bits on each run, but for the gradient of the embedding table
// (atomics). The gradients of fused attention take the scores twice, once by
// keys and once by queries, rather than add up in any order.
cudaError_t LaunchOp(const Launch& launch, const StageOp& op,
                     const void* const* inputs, void* const* outputs);

// True where LaunchOp runs it: all kinds but kProduct and unfused attention.
bool HasKernel(const StageOp& op);

// The softmax of unfused attention, over rows of `columns` scores, in place:
// scaled, causal (row r sees columns up to r mod `columns`), to probabilities;
// and its gradient, in place in d_probabilities.
cudaError_t LaunchSoftmax(const Launch& launch, void* scores, int64_t num_rows,
                          int64_t columns, float scale, bool causal);
cudaError_t LaunchSoftmaxGradient(const Launch& launch,
                                  const void* probabilities,
                                  void* d_probabilities, int64_t num_rows,
                                  int64_t columns, float scale);

// Normal random numbers of the format, mean 0; the same for the same seed.
cudaError_t LaunchFillNormal(const Launch& launch, ElementFormat format,
                             void* data, int64_t num_elements, float deviation,
                             uint64_t seed);
// Whole numbers in [0, limit).
cudaError_t LaunchFillTokens(const Launch& launch, int32_t* data,
                             int64_t num_elements, int32_t limit,
                             uint64_t seed);
// Does nothing: what a launch costs.
cudaError_t LaunchEmpty(const Launch& launch);
// Reads and writes 64 bytes a thread: what streaming kernels could reach.
cudaError_t LaunchCopy(const Launch& launch, const void* from, void* to,
                       int64_t bytes);

// An emulated link: a copy that takes latency_seconds + num_bytes /
// bytes_per_second from when the kernel begins (an event that it waited for and
// the launch come before), and has passed no more than one chunk a block ahead
// of its rate at any moment. Any size and alignment; pieces that do not
// overlap.
struct PacedCopy {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t num_bytes = 0;  // 0: waits for the latency
  double latency_seconds = 0;
  double bytes_per_second = 0;  // 0: as fast as its blocks are
};
// Measured by %globaltimer, whose steps are 32 ns on Hopper and later, 1 us
// before (the error of the whole copy, at most two of them). Others see the
// bytes behind an event on `launch.stream`.
cudaError_t LaunchPacedCopy(const Launch& launch, const PacedCopy& copy);
// The blocks of a copy at this rate, so that each keeps up: 16 KiB in flight
// for some 1.2 us, with room to catch up (not yet measured); at most 64, as
// many without a rate.
inline int NumPacedCopyBlocks(double bytes_per_second) {
  constexpr double kBlockBytesPerSecond = 1e10;
  constexpr double kMost = 64;
  if (!(bytes_per_second > 0)) return static_cast<int>(kMost);
  return static_cast<int>(std::clamp(
      std::ceil(bytes_per_second / kBlockBytesPerSecond), 1.0, kMost));
}
// How many are at work at the same time, by the GPU that has the fewest threads
// on a multiprocessor (1024). Copies that overlap must not have more than that
// together: those that do not fit would begin when others end. A copy alone
// never has more.
inline int MaxPacedCopyBlocks(int num_multiprocessors) {
  return 8 * num_multiprocessors;
}

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_KERNELS_KERNELS_H_
