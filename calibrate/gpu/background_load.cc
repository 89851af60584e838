// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/background_load.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {
namespace {

// Long graphs, as the driver's queue holds about a thousand launches.
constexpr double kGraphSeconds = 3e-3;
// Initial estimate of the slowdown of the measured work.
constexpr double kExpectedSlowdown = 2;
constexpr int kAttempts = 6;
constexpr double kMaxSeconds = 30;

absl::Status Start(const std::vector<std::unique_ptr<BackgroundLoad>>& loads,
                   double seconds) {
  int most = 0;
  for (const auto& load : loads) {
    RETURN_IF_ERROR(load->Begin());
    most = std::max(most, load->NumGraphLaunches(seconds));
  }
  // In turn, so that no stream runs dry while the host waits for a full queue.
  for (int i = 0; i < most; ++i) {
    for (const auto& load : loads) {
      if (i < load->NumGraphLaunches(seconds)) {
        RETURN_IF_ERROR(load->EnqueueGraph());
      }
    }
  }
  for (const auto& load : loads) RETURN_IF_ERROR(load->End());
  for (const auto& load : loads) RETURN_IF_ERROR(load->WaitUntilBegun());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<BackgroundLoad>> BackgroundLoad::Create(
    std::string what, cudaStream_t stream, double timeout_seconds, int num_ops,
    const std::function<absl::Status()>& launch) {
  std::unique_ptr<BackgroundLoad> load(new BackgroundLoad);
  load->what_ = std::move(what);
  load->stream_ = stream;
  load->timeout_seconds_ = timeout_seconds;
  ASSIGN_OR_RETURN(load->watch_, Stopwatch::Create());
  const auto elapsed = [&load] {
    return load->watch_.Seconds(load->timeout_seconds_, load->what_);
  };
  RETURN_IF_ERROR(launch());  // loads modules at first use
  RETURN_IF_ERROR(load->Begin());
  RETURN_IF_ERROR(launch());
  RETURN_IF_ERROR(load->End());
  ASSIGN_OR_RETURN(const double seconds, elapsed());
  const int most = std::clamp(kMaxGraphOps / std::max(num_ops, 1), 1, 1000);
  const int count = static_cast<int>(std::clamp(
      kGraphSeconds / std::max(seconds, 1e-6), 1.0, static_cast<double>(most)));
  ASSIGN_OR_RETURN(load->graph_, CaptureGraph(stream, [&]() -> absl::Status {
                     for (int i = 0; i < count; ++i) {
                       RETURN_IF_ERROR(launch());
                     }
                     return absl::OkStatus();
                   }));
  RETURN_IF_ERROR(load->Begin());
  for (int i = 0; i < 2; ++i) RETURN_IF_ERROR(load->EnqueueGraph());
  RETURN_IF_ERROR(load->End());
  ASSIGN_OR_RETURN(const double two, elapsed());
  load->graph_seconds_ = std::max(two / 2, 1e-6);
  return load;
}

int BackgroundLoad::NumGraphLaunches(double seconds) const {
  return static_cast<int>(
      std::min(std::ceil(seconds / graph_seconds_) + 2, 1e5));
}

absl::Status BackgroundLoad::Begin() { return watch_.Start(stream_); }

absl::Status BackgroundLoad::EnqueueGraph() {
  return CudaStatus(cudaGraphLaunch(graph_.get(), stream_), what_);
}

absl::Status BackgroundLoad::End() { return watch_.Stop(stream_); }

absl::Status BackgroundLoad::WaitUntilBegun() {
  return WaitFor(watch_.started(), timeout_seconds_, what_);
}

absl::StatusOr<bool> BackgroundLoad::IsRunning() const {
  const cudaError_t code = cudaEventQuery(watch_.stopped());
  if (code == cudaErrorNotReady) {
    cudaGetLastError();  // otherwise it would be reported by a later call
    return true;
  }
  RETURN_IF_ERROR(CudaStatus(code, what_));
  return false;
}

absl::Status BackgroundLoad::WaitUntilEnded() {
  return WaitFor(watch_.stopped(), timeout_seconds_, what_);
}

absl::StatusOr<LaunchBatch> RunOverlapped(
    const std::vector<std::unique_ptr<BackgroundLoad>>& loads,
    absl::string_view key, GraphTimer* timer, int num_launches) {
  RETURN_IF_ERROR(timer->Prepare(num_launches));
  // The loads are slowed down too, so their uncontended time is a lower bound.
  double seconds =
      kExpectedSlowdown * timer->num_launches() * timer->seconds_per_launch() +
      timer->lead_seconds() + 2e-3;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    RETURN_IF_ERROR(Start(loads, seconds));
    absl::StatusOr<LaunchBatch> batch = timer->RunAlone(num_launches);
    // The GPU hangs: do not wait for the loads.
    if (absl::IsDeadlineExceeded(batch.status())) return batch;
    bool all_ran = true;
    for (const auto& load : loads) {
      ASSIGN_OR_RETURN(const bool runs, load->IsRunning());
      all_ran = all_ran && runs;
    }
    for (const auto& load : loads) RETURN_IF_ERROR(load->WaitUntilEnded());
    RETURN_IF_ERROR(batch.status());
    if (all_ran) return batch;
    seconds = std::min(2 * seconds, kMaxSeconds);
  }
  return absl::InternalError(absl::StrCat(
      key, ": the background load ended before the measured work, ", kAttempts,
      " times"));
}

}  // namespace weir::calibrate
