// SPDX-License-Identifier: Apache-2.0
// The ranks of a replay (calibrate/execute/rank_device.h) on one GPU. Users
// need no CUDA headers.
//
// Serial: each rank in turn uses the whole GPU. The times of events are seconds
// of work: the time between two events on the stream, measured from when the
// GPU actually begins it. Copies run ahead of the first event to hide launches,
// as in steady work, unless a piece of work takes longer to launch than to run
// (description() reports the number of pieces launched too late for that to be
// certain). These copies also evict the rank's data from the L2 cache, as in a
// calibration. Times exclude allocation, uploads, downloads, messages and
// making room; the concurrency of ranks and messages is modeled by the runner's
// clocks (logical_device.h). A copy to or from the host lasts as long as it
// took uncontended.
//
// If the GPU cannot hold all ranks at once, idle ranks are moved to pinned host
// memory, least recently used first. Pointers returned by AllocateMemory() are
// then not addresses on the GPU, but offsets may still be added to them.
//
// Partitioned: each rank has a partition of the GPU's multiprocessors, a
// stream, and a memory pool with its share of the memory, and all ranks run
// concurrently. Events are CUDA events. Only Download, Finish and an Upload of
// more than some MiB wait for the GPU. A message is copied by a kernel at the
// pace of its link, on multiprocessors outside of the ranks' partitions if some
// are left.
#ifndef WEIR_CALIBRATE_EXECUTE_GPU_EXECUTION_DEVICE_H_
#define WEIR_CALIBRATE_EXECUTE_GPU_EXECUTION_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "calibrate/execute/rank_device.h"

namespace weir::calibrate {

struct CudaExecutionOptions {
  int device = 0;  // CUDA's index among visible devices
  // 0: serial. Otherwise 2, 4 or 8 GPU partitions, at least one per rank.
  int num_partitions = 0;
  int num_candidates = 8;  // algorithms timed per GEMM; 1: the heuristics'
  int64_t workspace_bytes = 32LL << 20;  // for GEMMs and kernels, per rank
  // Size of a rank's memory pool; 0: serial, the GPU's memory; partitioned, the
  // rank's share of the free memory.
  int64_t pool_bytes = 0;
  std::string nvml = "libnvidia-ml.so.1";  // clocks, in the provenance
};

// Sets CUDA_MODULE_LOADING=EAGER, as loading a module at its first use would be
// part of a pass, and CUDA_DEVICE_MAX_CONNECTIONS, unless they are set. Must
// precede all other uses of CUDA.
void RequestReplaySettings();

// Opens the GPU and chooses the GEMM algorithms. The plan outlives the device;
// its timeout bounds every wait. Must precede all other uses of CUDA except
// RequestReplaySettings(), which it calls.
//
// Returns FailedPrecondition, in one line, if there is no driver or GPU (as
// OpenCudaBench) or the GPU cannot be divided into so many partitions;
// Unimplemented if the kernels do not support the plan; ResourceExhausted if
// not even a rank's workspace fits.
//
// Any method of a rank returns DeadlineExceeded if the GPU hangs. The caller
// must then save its results and exit by std::_Exit.
absl::StatusOr<std::unique_ptr<ExecutionDevice>> OpenCudaExecutionDevice(
    const ExecutionPlan& plan, const CudaExecutionOptions& options);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_GPU_EXECUTION_DEVICE_H_
