// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/cuda_bench.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/bench_device.h"
#include "calibrate/gpu/stage_memory.h"
#include "calibrate/gpu/workloads.h"

namespace weir::calibrate {
namespace {

class CudaBench : public Bench {
 public:
  CudaBench(std::unique_ptr<BenchDevice> device, const absl::Status& nvml)
      : device_(std::move(device)),
        provenance_(ProvenanceOf(device_->facts, device_->nvml.get())) {
    if (!nvml.ok()) provenance_.add_remarks(std::string(nvml.message()));
    const GpuPartitions* partitions = device_->partitions.get();
    if (partitions == nullptr) return;
    provenance_.add_remarks(absl::StrCat(
        "one of ", partitions->size(), " partitions of a GPU with ",
        partitions->num_multiprocessors(), " multiprocessors, ",
        partitions->copies().num_multiprocessors(), " of them for copies"));
  }

  int num_partitions() const override {
    return device_->partitions != nullptr ? device_->partitions->size() : 1;
  }
  int part_multiprocessors() const override {
    return device_->partitions != nullptr ? device_->num_multiprocessors() : 0;
  }

  const Provenance& provenance() const override { return provenance_; }
  ElementFormat half_format() const override {
    return device_->facts.half_format;
  }

  absl::StatusOr<MemorySteps> MeasureMemorySteps() override {
    RETURN_IF_ERROR(MeasureCommunicator(device_.get()));
    return device_->memory_steps;
  }

  absl::StatusOr<std::unique_ptr<PreparedWorkload>> Prepare(
      const Workload& workload) override {
    if (workload.active_partitions > 1) {
      return PrepareLoadedWorkload(device_.get(), workload);
    }
    switch (workload.kind) {
      case Workload::Kind::kOp:
      case Workload::Kind::kPass:
        return PrepareStageWorkload(device_.get(), workload);
      case Workload::Kind::kOpWithCopies:
      case Workload::Kind::kOpWithCollectives:
        return PrepareOverlappedWorkload(device_.get(), workload);
      case Workload::Kind::kEmptyKernel:
      case Workload::Kind::kCopy:
      case Workload::Kind::kSelfSend:
        return PreparePlainWorkload(device_.get(), workload);
    }
    return absl::InternalError(
        absl::StrCat(workload.key, ": an unknown kind of workload"));
  }

  absl::StatusOr<MeasuredMemory> MeasureStageMemory(
      const StageProgram& program, int num_microbatches) override {
    return MeasureStage(*device_, program, num_microbatches);
  }

 private:
  std::unique_ptr<BenchDevice> device_;
  Provenance provenance_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Bench>> OpenCudaBench(
    const CudaBenchOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<BenchDevice> device,
                   OpenBenchDevice(options));
  const absl::Status nvml = device->nvml_status;
  if (nvml.ok()) {
    device->sampler = std::make_unique<NvmlSampler>(device->nvml.get());
  }
  return std::make_unique<CudaBench>(std::move(device), nvml);
}

}  // namespace weir::calibrate
