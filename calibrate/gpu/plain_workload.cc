// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/graph_timer.h"
#include "calibrate/gpu/host/rotation.h"
#include "calibrate/gpu/workloads.h"

namespace weir::calibrate {
namespace {

// Computes nothing; moves bytes from the first half of a set to the second.
class PlainWorkload : public PreparedWorkload {
 public:
  absl::Status Prepare(BenchDevice* device, const Workload& workload) {
    Launchable launchable;
    launchable.what = workload.key;
    if (workload.kind == Workload::Kind::kEmptyKernel) {
      launchable.launch = [device](int) {
        return CudaStatus(LaunchEmpty(device->launch()), "an empty kernel");
      };
    } else {
      const auto bytes = static_cast<int64_t>(workload.bytes);
      RETURN_IF_ERROR(
          TakeMemory(*device, workload.key, bytes, &launchable.num_sets));
      RETURN_IF_ERROR(SetLaunch(device, workload, bytes, &launchable));
    }
    ASSIGN_OR_RETURN(timer_, GraphTimer::Create(device, std::move(launchable)));
    return absl::OkStatus();
  }

  absl::StatusOr<double> Verify() override { return 0.0; }
  absl::StatusOr<LaunchBatch> Run(int num_launches) override {
    return timer_->Run(num_launches);
  }

 private:
  absl::Status TakeMemory(const BenchDevice& device, absl::string_view key,
                          int64_t bytes, int* num_sets) {
    if (bytes < 16 || bytes % 16 != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, ": copies ", bytes,
                       " bytes, expected a positive multiple of 16"));
    }
    ASSIGN_OR_RETURN(const int64_t free, FreeMemory());
    stride_ = (bytes + 255) / 256 * 256;
    ASSIGN_OR_RETURN(*num_sets, NumSets(2 * bytes, 2 * stride_,
                                        device.facts.l2_bytes, free, false));
    ASSIGN_OR_RETURN(memory_, Allocate(2 * stride_ * *num_sets, "copies"));
    // Random data, since zeros draw less power.
    RETURN_IF_ERROR(CudaStatus(
        LaunchFillNormal(device.launch(), ElementFormat::kFp32, memory_.get(),
                         2 * stride_ * *num_sets / 4, 1, device.options.seed),
        "filling a buffer with random data"));
    return device.Wait("filling buffers with random data");
  }

  absl::Status SetLaunch(BenchDevice* device, const Workload& workload,
                         int64_t bytes, Launchable* launchable) {
    SelfCommunicator* communicator = nullptr;
    if (workload.kind == Workload::Kind::kSelfSend) {
      ASSIGN_OR_RETURN(communicator, device->Communicator(workload.max_ctas));
    }
    char* memory = static_cast<char*>(memory_.get());
    const int64_t stride = stride_;
    launchable->launch = [=](int set) {
      char* from = memory + 2 * stride * set;
      if (communicator != nullptr) {
        return communicator->Send(from, from + stride, bytes,
                                  device->stream.get());
      }
      return CudaStatus(
          LaunchCopy(device->launch(), from, from + stride, bytes), "copying");
    };
    return absl::OkStatus();
  }

  DeviceMemory memory_;
  int64_t stride_ = 0;
  std::unique_ptr<GraphTimer> timer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PreparedWorkload>> PreparePlainWorkload(
    BenchDevice* device, const Workload& workload) {
  auto prepared = std::make_unique<PlainWorkload>();
  RETURN_IF_ERROR(prepared->Prepare(device, workload));
  return prepared;
}

}  // namespace weir::calibrate
