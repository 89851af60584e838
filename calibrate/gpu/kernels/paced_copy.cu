// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/launch.cuh"
#include "calibrate/gpu/kernels/paced_copy.cuh"

namespace weir::calibrate {

cudaError_t LaunchPacedCopy(const Launch& launch, const PacedCopy& copy) {
  if (copy.num_bytes < 0 || !(copy.latency_seconds >= 0) ||
      !(copy.bytes_per_second >= 0)) {
    return cudaErrorInvalidValue;
  }
  const int64_t num_chunks = CeilDivide(copy.num_bytes, kPacedChunk);
  const int64_t num_blocks = std::min(
      {int64_t{NumPacedCopyBlocks(copy.bytes_per_second)},
       int64_t{MaxPacedCopyBlocks(launch.num_multiprocessors)}, num_chunks});
  return Start(launch, CopyPaced, std::max<int64_t>(num_blocks, 1),
               kPacedThreads, 0, static_cast<const unsigned char*>(copy.from),
               static_cast<unsigned char*>(copy.to), copy.num_bytes,
               1e9 * copy.latency_seconds,
               copy.bytes_per_second > 0 ? 1e9 / copy.bytes_per_second : 0.0);
}

}  // namespace weir::calibrate
