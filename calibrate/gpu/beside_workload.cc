// SPDX-License-Identifier: Apache-2.0
// An operation beside transfers that never pause.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/stage_workload.h"
#include "calibrate/gpu/workloads.h"

namespace weir {
namespace {

// Long graphs: the driver's queue holds about a thousand launches.
constexpr double kGraphSeconds = 3e-3;
// How much slower than alone the operation is taken to be at first.
constexpr double kExpectedSlowdown = 2;
constexpr int kAttempts = 6;
constexpr double kMaxBackgroundSeconds = 30;

// Transfers on the second stream.
class Background {
 public:
  absl::Status Prepare(BenchDevice* device, const Workload& workload) {
    device_ = device;
    what_ = absl::StrCat(workload.key, ": what runs beside it");
    const auto bytes = static_cast<int64_t>(workload.bytes);
    ASSIGN_OR_RETURN(memory_, Allocate(2 * bytes, "transfers"));
    ASSIGN_OR_RETURN(watch_, Stopwatch::Create());
    SelfCommunicator* communicator = nullptr;
    if (workload.kind == Workload::Kind::kOpBesideCollectives) {
      ASSIGN_OR_RETURN(communicator, device->Communicator(workload.max_ctas));
    }
    char* from = static_cast<char*>(memory_.get());
    const auto transfer = [&] {
      if (communicator != nullptr) {
        return communicator->Send(from, from + bytes, bytes, stream());
      }
      return CudaStatus(cudaMemcpyAsync(from + bytes, from, bytes,
                                        cudaMemcpyDeviceToDevice, stream()),
                        "copying");
    };
    RETURN_IF_ERROR(CudaStatus(
        LaunchFillNormal({stream(), device->facts.half_format,
                          device->facts.num_multiprocessors, nullptr, 0},
                         ElementFormat::kFp32, from, 2 * bytes / 4, 1, 1),
        "filling a buffer with random data"));
    RETURN_IF_ERROR(transfer());
    RETURN_IF_ERROR(watch_.Start(stream()));
    RETURN_IF_ERROR(transfer());
    RETURN_IF_ERROR(watch_.Stop(stream()));
    ASSIGN_OR_RETURN(const double seconds, Seconds());
    const int count = static_cast<int>(
        std::clamp(kGraphSeconds / std::max(seconds, 1e-6), 2.0, 1000.0));
    ASSIGN_OR_RETURN(graph_, CaptureGraph(stream(), [&]() -> absl::Status {
                       for (int i = 0; i < count; ++i) {
                         RETURN_IF_ERROR(transfer());
                       }
                       return absl::OkStatus();
                     }));
    // Alone: how often to replay it.
    RETURN_IF_ERROR(Enqueue(2));
    ASSIGN_OR_RETURN(const double two, Seconds());
    graph_seconds_ = std::max(two / 2, 1e-6);
    return absl::OkStatus();
  }

  // Enough for `seconds`, and waits until it runs.
  absl::Status Start(double seconds) {
    const int count = static_cast<int>(
        std::min(std::ceil(seconds / graph_seconds_) + 2, 1e5));
    RETURN_IF_ERROR(Enqueue(count));
    return WaitFor(watch_.started(), device_->options.timeout_seconds, what_);
  }
  absl::StatusOr<bool> IsRunning() const {
    const cudaError_t code = cudaEventQuery(watch_.stopped());
    if (code == cudaErrorNotReady) {
      cudaGetLastError();  // or it would be somebody's next error
      return true;
    }
    RETURN_IF_ERROR(CudaStatus(code, what_));
    return false;
  }
  // Waits for its end.
  absl::StatusOr<double> Seconds() {
    return watch_.Seconds(device_->options.timeout_seconds, what_);
  }

 private:
  cudaStream_t stream() const { return device_->background_stream.get(); }
  absl::Status Enqueue(int num_replays) {
    RETURN_IF_ERROR(watch_.Start(stream()));
    for (int i = 0; i < num_replays; ++i) {
      RETURN_IF_ERROR(
          CudaStatus(cudaGraphLaunch(graph_.get(), stream()), what_));
    }
    return watch_.Stop(stream());
  }

  BenchDevice* device_ = nullptr;
  std::string what_;
  DeviceMemory memory_;
  Stopwatch watch_;
  GraphExec graph_;
  double graph_seconds_ = 1e-3;
};

class BesideWorkload : public PreparedWorkload {
 public:
  absl::Status Prepare(BenchDevice* device, const Workload& workload) {
    device_ = device;
    key_ = workload.key;
    // First: what is left of the memory is for the rotating sets.
    RETURN_IF_ERROR(background_.Prepare(device, workload));
    ASSIGN_OR_RETURN(op_, StageWorkload::Create(device, workload));
    return absl::OkStatus();
  }

  absl::StatusOr<double> Verify() override { return op_->Verify(); }
  std::string algorithm() const override { return op_->algorithm(); }

  absl::StatusOr<LaunchBatch> Run(int num_launches) override {
    Replayer* replayer = op_->replayer();
    RETURN_IF_ERROR(replayer->Prepare(num_launches));
    // The transfers are as slowed as what runs beside them, so what they take
    // alone is the least that they take.
    double seconds = kExpectedSlowdown * replayer->num_launches() *
                         replayer->seconds_per_launch() +
                     20 * device_->flush_seconds + 2e-3;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      RETURN_IF_ERROR(background_.Start(seconds));
      const absl::StatusOr<LaunchBatch> batch = replayer->Run(num_launches);
      const absl::StatusOr<bool> ran_throughout = background_.IsRunning();
      RETURN_IF_ERROR(background_.Seconds().status());
      RETURN_IF_ERROR(batch.status());
      RETURN_IF_ERROR(ran_throughout.status());
      if (*ran_throughout) return batch;
      seconds = std::min(2 * seconds, kMaxBackgroundSeconds);
    }
    return absl::InternalError(
        absl::StrCat(key_, ": the transfers beside it ended before it did, ",
                     kAttempts, " times"));
  }

 private:
  BenchDevice* device_ = nullptr;
  std::string key_;
  Background background_;
  std::unique_ptr<StageWorkload> op_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PreparedWorkload>> PrepareBesideWorkload(
    BenchDevice* device, const Workload& workload) {
  auto prepared = std::make_unique<BesideWorkload>();
  RETURN_IF_ERROR(prepared->Prepare(device, workload));
  return prepared;
}

}  // namespace weir
