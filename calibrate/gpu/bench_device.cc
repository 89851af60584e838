// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/bench_device.h"

#include <algorithm>
#include <cmath>

#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/host/partition_size.h"

namespace weir::calibrate {
namespace {

constexpr int64_t kMinFlushBytes = 64LL << 20;

// Growth of the device's memory in use. Requires: other processes are idle.
class MemoryMeter {
 public:
  absl::Status Start() {
    ASSIGN_OR_RETURN(free_, FreeMemory());
    return absl::OkStatus();
  }
  absl::StatusOr<double> Step() {
    const int64_t before = free_;
    ASSIGN_OR_RETURN(free_, FreeMemory());
    return static_cast<double>(std::max<int64_t>(before - free_, 0));
  }

 private:
  int64_t free_ = 0;
};

// NVML counts the device's memory without a context, CUDA only within one.
// Without NVML all memory in use is counted, including that of other processes.
absl::Status CreateContext(BenchDevice* device) {
  const double before =
      device->nvml != nullptr ? device->nvml->memory_in_use_bytes() : 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaSetDevice(device->facts.device), "selecting the GPU"));
  RETURN_IF_ERROR(CudaStatus(cudaFree(nullptr), "creating a context"));
  if (device->options.num_partitions != 0) {
    // Divides the GPU as a replay does.
    ASSIGN_OR_RETURN(
        device->partitions,
        GpuPartitions::Create(
            device->facts.device, device->options.num_partitions,
            MinCopyMultiprocessors(device->options.num_partitions)));
  }
  const double after =
      device->nvml != nullptr ? device->nvml->memory_in_use_bytes() : 0;
  if (before > 0 && after > before) {
    device->memory_steps.context_bytes = after - before;
    return absl::OkStatus();
  }
  size_t free = 0, total = 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaMemGetInfo(&free, &total), "querying GPU memory"));
  device->memory_steps.context_bytes = static_cast<double>(total - free);
  return absl::OkStatus();
}

// Runs some GEMMs of each kind, so that the library loads its modules.
absl::Status WarmGemms(BenchDevice* device) {
  constexpr int64_t kSize = 256;
  ASSIGN_OR_RETURN(const DeviceMemory memory,
                   Allocate(16 * kSize * kSize, "a first GEMM"));
  RETURN_IF_ERROR(
      CudaStatus(cudaMemsetAsync(memory.get(), 0, 16 * kSize * kSize,
                                 device->stream.get()),
                 "clearing memory"));
  const auto at = [&](int64_t part) {
    return static_cast<void*>(static_cast<char*>(memory.get()) +
                              4 * part * kSize * kSize);
  };
  for (const bool accumulate : {false, true}) {
    GemmSpec spec;
    spec.shape = {.m = kSize,
                  .n = kSize,
                  .k = kSize,
                  .transpose_a = accumulate,
                  .transpose_b = !accumulate,
                  .accumulate = accumulate,
                  .stride_a = kSize,
                  .stride_b = kSize,
                  .stride_d = kSize};
    spec.operands = device->facts.half_format;
    spec.result = accumulate ? ElementFormat::kFp32 : spec.operands;
    const GemmOperands operands = {at(0), at(1), nullptr, nullptr, at(2)};
    ASSIGN_OR_RETURN(const Gemm* gemm,
                     device->gemms->Plan(spec, {}, device->lane().workspace,
                                         device->stream.get()));
    RETURN_IF_ERROR(
        gemm->Run(operands, device->lane().workspace, device->stream.get()));
  }
  RETURN_IF_ERROR(CudaStatus(LaunchEmpty(device->launch()), "a first kernel"));
  return device->Wait("the first GEMM");
}

absl::Status MakeStreams(BenchDevice* device) {
  const GpuPartitions* partitions = device->partitions.get();
  ASSIGN_OR_RETURN(device->stream, partitions != nullptr
                                       ? partitions->part(0).MakeStream()
                                       : MakeStream());
  ASSIGN_OR_RETURN(
      device->background_stream,
      partitions != nullptr ? partitions->copies().MakeStream() : MakeStream());
  return absl::OkStatus();
}

absl::Status TakeLibraries(BenchDevice* device) {
  MemoryMeter meter;
  RETURN_IF_ERROR(meter.Start());
  RETURN_IF_ERROR(MakeStreams(device));
  ASSIGN_OR_RETURN(device->gemms,
                   GemmLibrary::Create(device->options.num_candidates,
                                       device->options.timeout_seconds));
  ASSIGN_OR_RETURN(const double handles, meter.Step());
  ASSIGN_OR_RETURN(device->workspace, Allocate(device->options.workspace_bytes,
                                               "the GEMM workspace"));
  ASSIGN_OR_RETURN(device->memory_steps.workspace_bytes, meter.Step());
  RETURN_IF_ERROR(WarmGemms(device));
  ASSIGN_OR_RETURN(const double modules, meter.Step());
  device->memory_steps.library_bytes = handles + modules;
  return absl::OkStatus();
}

absl::Status TakeFlush(BenchDevice* device) {
  device->flush_bytes = std::max(device->facts.l2_bytes, kMinFlushBytes);
  ASSIGN_OR_RETURN(device->flush,
                   Allocate(2 * device->flush_bytes, "flushing the cache"));
  ASSIGN_OR_RETURN(Stopwatch watch, Stopwatch::Create());
  constexpr int kCopies = 4;
  device->flush_seconds = 1;                 // one copy per call
  for (int round = 0; round < 2; ++round) {  // the first one warms up
    RETURN_IF_ERROR(watch.Start(device->stream.get()));
    for (int i = 0; i < kCopies; ++i) {
      RETURN_IF_ERROR(device->EnqueueFlush(0));
    }
    RETURN_IF_ERROR(watch.Stop(device->stream.get()));
    ASSIGN_OR_RETURN(const double seconds,
                     watch.Seconds(device->options.timeout_seconds,
                                   "copying to flush the cache"));
    if (round == 1) device->flush_seconds = seconds / kCopies;
  }
  return absl::OkStatus();
}

cudaError_t Enqueue(const Launch& launch, const Fill& fill,
                    ElementFormat format, void* data, int64_t num_elements,
                    uint64_t seed) {
  switch (fill.kind) {
    case Fill::Kind::kNormal:
      return LaunchFillNormal(launch, format, data, num_elements,
                              fill.deviation, seed);
    case Fill::Kind::kTokens:
      return LaunchFillTokens(launch, static_cast<int32_t*>(data), num_elements,
                              fill.limit, seed);
    case Fill::Kind::kBytes:
      return cudaMemsetAsync(data, fill.byte, num_elements * BytesOf(format),
                             launch.stream);
  }
  return cudaSuccess;
}

}  // namespace

absl::Status BenchDevice::EnqueueFlush(double seconds) const {
  const int count =
      std::clamp(static_cast<int>(std::ceil(seconds / flush_seconds)), 1, 1000);
  for (int i = 0; i < count; ++i) {
    RETURN_IF_ERROR(CudaStatus(
        cudaMemcpyAsync(static_cast<char*>(flush.get()) + flush_bytes,
                        flush.get(), flush_bytes, cudaMemcpyDeviceToDevice,
                        stream.get()),
        "copying to flush the cache"));
  }
  return absl::OkStatus();
}

absl::StatusOr<SelfCommunicator*> BenchDevice::Communicator(int max_ctas) {
  // NCCL's blocks wait for each other, so all of them must fit, and NCCL does
  // not know how few multiprocessors a partition has.
  if (partitions != nullptr) {
    return absl::UnimplementedError(
        "NCCL is not measured on a partition of a GPU: its kernels may "
        "deadlock there");
  }
  auto& communicator = communicators[max_ctas];
  if (communicator == nullptr) {
    ASSIGN_OR_RETURN(communicator, SelfCommunicator::Create(
                                       max_ctas, options.timeout_seconds));
  }
  return communicator.get();
}

absl::StatusOr<std::unique_ptr<BenchDevice>> OpenBenchDevice(
    const CudaBenchOptions& options) {
  if (options.num_partitions != 0) RequestManyQueues();
  auto device = std::make_unique<BenchDevice>();
  device->options = options;
  ASSIGN_OR_RETURN(device->facts, FindDevice(options.device));
  absl::StatusOr<std::unique_ptr<Nvml>> nvml =
      Nvml::Open(options.nvml, device->facts.bus_id);
  device->nvml_status = nvml.status();
  if (nvml.ok()) device->nvml = *std::move(nvml);
  RETURN_IF_ERROR(CreateContext(device.get()));
  RETURN_IF_ERROR(TakeLibraries(device.get()));
  RETURN_IF_ERROR(TakeFlush(device.get()));
  return device;
}

absl::Status MeasureCommunicator(BenchDevice* device) {
  if (device->memory_steps.communicator_bytes > 0 ||
      device->partitions != nullptr) {
    return absl::OkStatus();
  }
  constexpr int64_t kBytes = 1 << 20;
  ASSIGN_OR_RETURN(const DeviceMemory memory,
                   Allocate(2 * kBytes, "a first message"));
  MemoryMeter meter;
  RETURN_IF_ERROR(meter.Start());
  ASSIGN_OR_RETURN(SelfCommunicator * communicator, device->Communicator(0));
  ASSIGN_OR_RETURN(device->memory_steps.communicator_bytes, meter.Step());
  RETURN_IF_ERROR(communicator->Send(memory.get(),
                                     static_cast<char*>(memory.get()) + kBytes,
                                     kBytes, device->stream.get()));
  RETURN_IF_ERROR(device->Wait("NCCL's first message to self"));
  ASSIGN_OR_RETURN(device->memory_steps.communication_bytes, meter.Step());
  return absl::OkStatus();
}

absl::Status FillPiece(const Launch& launch, const StageProgram& program,
                       const std::vector<PieceFill>& fills, const Piece& piece,
                       void* data, uint64_t seed) {
  const ElementFormat format = program.buffers[piece.buffer].format;
  for (const PieceFill& each : fills) {
    if (each.piece.buffer != piece.buffer) continue;
    const int64_t begin = std::max(each.piece.first, piece.first);
    const int64_t end = std::min(each.piece.first + each.piece.num_elements,
                                 piece.first + piece.num_elements);
    if (begin >= end) continue;
    RETURN_IF_ERROR(CudaStatus(
        Enqueue(
            launch, each.fill, format,
            static_cast<char*>(data) + (begin - piece.first) * BytesOf(format),
            end - begin, seed),
        "filling a buffer with random data"));
  }
  return absl::OkStatus();
}

}  // namespace weir::calibrate
