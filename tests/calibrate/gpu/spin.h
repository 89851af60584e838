// SPDX-License-Identifier: Apache-2.0
// A kernel that records where and when it ran.
#ifndef WEIR_TESTS_CALIBRATE_GPU_SPIN_H_
#define WEIR_TESTS_CALIBRATE_GPU_SPIN_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace weir::calibrate {

struct SpinRecord {
  uint64_t begin_nanoseconds, end_nanoseconds;  // %globaltimer
  uint32_t multiprocessor;                      // %smid
};

// Keeps each block of 256 threads busy for `seconds` and fills records[block].
cudaError_t LaunchSpin(cudaStream_t stream, int num_blocks, double seconds,
                       SpinRecord* records);

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_GPU_SPIN_H_
