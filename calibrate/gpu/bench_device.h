// SPDX-License-Identifier: Apache-2.0
// State shared by all workloads of the bench: the GPU, its libraries, its
// streams. Functions return the errors of errors.h, and DeadlineExceeded if the
// GPU does not finish in time.
#ifndef WEIR_CALIBRATE_GPU_BENCH_DEVICE_H_
#define WEIR_CALIBRATE_GPU_BENCH_DEVICE_H_

#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "calibrate/gpu/cuda_bench.h"
#include "calibrate/gpu/device.h"
#include "calibrate/gpu/executor.h"
#include "calibrate/gpu/gemm.h"
#include "calibrate/gpu/graph.h"
#include "calibrate/gpu/handles.h"
#include "calibrate/gpu/host/fill_plan.h"
#include "calibrate/gpu/host/nvml_sampler.h"
#include "calibrate/gpu/partition.h"
#include "calibrate/gpu/self_communicator.h"

namespace weir::calibrate {

struct BenchDevice {
  CudaBenchOptions options;
  DeviceFacts facts;
  std::unique_ptr<Nvml> nvml;                 // null: unknown clocks
  absl::Status nvml_status;                   // why `nvml` is null
  std::unique_ptr<NvmlSampler> sampler;       // null: the state is not needed
  std::unique_ptr<GpuPartitions> partitions;  // null: the whole GPU is measured
  std::unique_ptr<GemmLibrary> gemms;
  DeviceMemory workspace;
  Stream stream;  // measured work, on the first partition
  // Work overlapped with it, on the partition for copies.
  Stream background_stream;
  // Copied ahead of a measurement, so that the GPU is busy and its cache full
  // of other data while the host launches.
  DeviceMemory flush;
  int64_t flush_bytes = 0;  // size of each of the two halves
  double flush_seconds = 0;
  MemorySteps memory_steps;
  // By maximum number of CTAs; 0: the library's choice.
  std::map<int, std::unique_ptr<SelfCommunicator>> communicators;

  // Number of multiprocessors available to `stream`.
  int num_multiprocessors() const {
    return partitions != nullptr ? partitions->part(0).num_multiprocessors()
                                 : facts.num_multiprocessors;
  }
  Lane lane() const {
    return {stream.get(), {workspace.get(), options.workspace_bytes}};
  }
  Launch launch() const {
    return {stream.get(), facts.half_format, num_multiprocessors(),
            workspace.get(), options.workspace_bytes};
  }
  ExecutorOptions executor_options() const {
    return {facts.half_format, num_multiprocessors(), partitions != nullptr};
  }
  DeviceState state() const {
    return sampler != nullptr ? sampler->latest() : DeviceState{};
  }
  absl::Status Wait(absl::string_view what) const {
    return WaitFor(stream.get(), options.timeout_seconds, what);
  }
  // Enqueues copies for at least `seconds`.
  absl::Status EnqueueFlush(double seconds) const;
  // Returns Unimplemented on a partition of a GPU.
  absl::StatusOr<SelfCommunicator*> Communicator(int max_ctas);
};

// Opens the device, its libraries and the workspace, and records the memory
// each took.
absl::StatusOr<std::unique_ptr<BenchDevice>> OpenBenchDevice(
    const CudaBenchOptions& options);

// Measures the memory steps of the communicator by creating and using it. Only
// the first call measures.
absl::Status MeasureCommunicator(BenchDevice* device);

// Enqueues `fills` for a piece of a buffer; `data` is its first element.
absl::Status FillPiece(const Launch& launch, const StageProgram& program,
                       const std::vector<PieceFill>& fills, const Piece& piece,
                       void* data, uint64_t seed);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_BENCH_DEVICE_H_
