// SPDX-License-Identifier: Apache-2.0
// The bench (calibrate/measure/bench.h) on a real GPU: CUDA, cuBLASLt, NCCL.
// No CUDA header is needed to use it.
#ifndef WEIR_CALIBRATE_GPU_CUDA_BENCH_H_
#define WEIR_CALIBRATE_GPU_CUDA_BENCH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "calibrate/measure/bench.h"

namespace weir {

struct CudaBenchOptions {
  int device = 0;                          // as CUDA counts those it sees
  uint64_t seed = 1;                       // of all random data
  int64_t workspace_bytes = 32LL << 20;    // of products and kernels
  int num_candidates = 8;                  // algorithms timed per product
  double timeout_seconds = 120;            // of any wait for the GPU
  std::string nvml = "libnvidia-ml.so.1";  // clocks, power, temperature
  // Cuts the card into so many equal parts (partition.h) and measures on the
  // first of them; 0: the whole card.
  int num_partitions = 0;
};

// Takes the device; one bench per process (MeasureMemorySteps looks at what the
// process has taken so far). Sets CUDA_MODULE_LOADING=EAGER unless it is set:
// call it before anything else of CUDA. FailedPrecondition, one line: no
// driver, too old a driver, no GPU, no such GPU, or one that this program was
// not built for; of num_partitions: as CardPartitions::Create. On a part
// workloads with NCCL are Unimplemented. provenance() leaves command, date and
// version of weir to the caller.
//
// DeadlineExceeded from any of its methods: the GPU hangs. Write down what
// there is and leave by std::_Exit; the driver's own exit handlers would wait.
absl::StatusOr<std::unique_ptr<Bench>> OpenCudaBench(
    const CudaBenchOptions& options);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_CUDA_BENCH_H_
