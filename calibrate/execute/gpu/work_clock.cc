// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/execute/gpu/serial_execution.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {
namespace {

// Initial estimates: libraries take some microseconds per launch, and more for
// the first launch of a kind.
constexpr double kLaunchSeconds = 20e-6, kFirstSeconds = 1e-3;
constexpr double kMargin = 1.5;
constexpr double kMostSeconds = 0.2;

}  // namespace

absl::StatusOr<WorkClock> WorkClock::Create(const BenchDevice* device) {
  WorkClock clock;
  clock.device_ = device;
  ASSIGN_OR_RETURN(clock.watch_, Stopwatch::Create());
  return clock;
}

absl::Status WorkClock::Begin(int64_t kind, int num_launches,
                              const std::string& what) {
  if (running_) return absl::OkStatus();
  kind_ = kind;
  what_ = what;
  const auto known = host_seconds_.find(kind);
  const double expected = known != host_seconds_.end()
                              ? known->second
                              : kFirstSeconds + num_launches * kLaunchSeconds;
  RETURN_IF_ERROR(
      device_->EnqueueFlush(std::min(kMargin * expected, kMostSeconds)));
  RETURN_IF_ERROR(watch_.Start(device_->stream.get()));
  launched_ = std::chrono::steady_clock::now();
  running_ = true;
  return absl::OkStatus();
}

absl::Status WorkClock::End() {
  if (!running_) return absl::OkStatus();
  running_ = false;
  RETURN_IF_ERROR(watch_.Stop(device_->stream.get()));
  const cudaError_t begun = cudaEventQuery(watch_.started());
  if (begun == cudaErrorNotReady) cudaGetLastError();
  host_seconds_[kind_] = std::chrono::duration<double>(
                             std::chrono::steady_clock::now() - launched_)
                             .count();
  ++num_pieces_;
  num_late_ += begun == cudaSuccess;
  ASSIGN_OR_RETURN(const double seconds,
                   watch_.Seconds(device_->options.timeout_seconds, what_));
  seconds_ += seconds;
  return absl::OkStatus();
}

}  // namespace weir::calibrate
