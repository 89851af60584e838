// SPDX-License-Identifier: Apache-2.0
// An operation overlapped with transfers that never pause.
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/background_load.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/stage_workload.h"
#include "calibrate/gpu/workloads.h"

namespace weir::calibrate {
namespace {

class OverlappedWorkload : public PreparedWorkload {
 public:
  absl::Status Prepare(BenchDevice* device, const Workload& workload) {
    key_ = workload.key;
    // The transfers come first, since the workload then takes all remaining
    // memory for its rotating buffers.
    RETURN_IF_ERROR(PrepareTransfers(device, workload));
    ASSIGN_OR_RETURN(op_, StageWorkload::Create(device, workload));
    return absl::OkStatus();
  }

  absl::StatusOr<double> Verify() override { return op_->Verify(); }
  std::string algorithm() const override { return op_->algorithm(); }
  absl::StatusOr<LaunchBatch> Run(int num_launches) override {
    return RunOverlapped(loads_, key_, op_->timer(), num_launches);
  }

 private:
  absl::Status PrepareTransfers(BenchDevice* device, const Workload& workload) {
    const auto bytes = static_cast<int64_t>(workload.bytes);
    ASSIGN_OR_RETURN(memory_, Allocate(2 * bytes, "transfers"));
    SelfCommunicator* communicator = nullptr;
    if (workload.kind == Workload::Kind::kOpWithCollectives) {
      ASSIGN_OR_RETURN(communicator, device->Communicator(workload.max_ctas));
    }
    cudaStream_t stream = device->background_stream.get();
    char* from = static_cast<char*>(memory_.get());
    RETURN_IF_ERROR(CudaStatus(
        LaunchFillNormal({stream, device->facts.half_format,
                          device->num_multiprocessors(), nullptr, 0},
                         ElementFormat::kFp32, from, 2 * bytes / 4, 1, 1),
        "filling a buffer with random data"));
    ASSIGN_OR_RETURN(
        auto load, BackgroundLoad::Create(
                       absl::StrCat(key_, ": the background load"), stream,
                       device->options.timeout_seconds, 1, [=] {
                         if (communicator != nullptr) {
                           return communicator->Send(from, from + bytes, bytes,
                                                     stream);
                         }
                         return CudaStatus(
                             cudaMemcpyAsync(from + bytes, from, bytes,
                                             cudaMemcpyDeviceToDevice, stream),
                             "copying");
                       }));
    loads_.push_back(std::move(load));
    return absl::OkStatus();
  }

  std::string key_;
  DeviceMemory memory_;
  std::vector<std::unique_ptr<BackgroundLoad>> loads_;
  std::unique_ptr<StageWorkload> op_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PreparedWorkload>> PrepareOverlappedWorkload(
    BenchDevice* device, const Workload& workload) {
  auto prepared = std::make_unique<OverlappedWorkload>();
  RETURN_IF_ERROR(prepared->Prepare(device, workload));
  return prepared;
}

}  // namespace weir::calibrate
