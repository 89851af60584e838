// SPDX-License-Identifier: Apache-2.0
// The bench (calibrate/measure/bench.h) on a real GPU: CUDA, cuBLASLt, NCCL.
// Sources that include this file need no CUDA headers.
#ifndef WEIR_CALIBRATE_GPU_CUDA_BENCH_H_
#define WEIR_CALIBRATE_GPU_CUDA_BENCH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "calibrate/measure/bench.h"

namespace weir::calibrate {

struct CudaBenchOptions {
  int device = 0;                          // CUDA's index among visible devices
  uint64_t seed = 1;                       // for all random data
  int64_t workspace_bytes = 32LL << 20;    // for GEMMs and kernels
  int num_candidates = 8;                  // algorithms timed per GEMM
  double timeout_seconds = 120;            // limit of any wait for the GPU
  std::string nvml = "libnvidia-ml.so.1";  // clocks, power, temperature
  // Divides the GPU into this many equal partitions (partition.h) and measures
  // on the first; 0: the whole GPU.
  int num_partitions = 0;
};

// Opens the device; one bench per process, since MeasureMemorySteps examines
// what the process has allocated. Modules are loaded at first use, as CUDA does
// by default: every workload is launched once before it is captured or timed.
// provenance() leaves command, date and version of weir to the caller.
//
// Returns FailedPrecondition, in one line, if there is no driver, too old a
// driver, no GPU, no such GPU, or a GPU that this program was not built for;
// also the errors of GpuPartitions::Create. On a partition, workloads with NCCL
// return Unimplemented.
//
// Any method returns DeadlineExceeded if the GPU hangs. The caller must then
// save its results and exit by std::_Exit, since the driver's own exit handlers
// would wait.
absl::StatusOr<std::unique_ptr<Bench>> OpenCudaBench(
    const CudaBenchOptions& options);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_CUDA_BENCH_H_
