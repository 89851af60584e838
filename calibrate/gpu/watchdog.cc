// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/watchdog.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> device_is_hung{false};

absl::Status TimedOut(absl::string_view what, double timeout_seconds) {
  device_is_hung = true;
  return absl::DeadlineExceededError(absl::StrCat(
      what, ": the GPU did not finish within ", timeout_seconds, " s"));
}

template <typename Query>
absl::Status Poll(Query query, double timeout_seconds, absl::string_view what) {
  const auto begin = Clock::now();
  const std::chrono::duration<double> timeout(timeout_seconds);
  while (true) {
    const cudaError_t code = query();
    if (code != cudaErrorNotReady) return CudaStatus(code, what);
    cudaGetLastError();  // otherwise a later call would report "not ready"
    const auto waited = Clock::now() - begin;
    if (waited > timeout) return TimedOut(what, timeout_seconds);
    // Polls busily for short work, and sleeps for long work.
    if (waited > std::chrono::milliseconds(1)) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

}  // namespace

absl::Status WaitFor(cudaEvent_t event, double timeout_seconds,
                     absl::string_view what) {
  return Poll([event] { return cudaEventQuery(event); }, timeout_seconds, what);
}

absl::Status WaitFor(cudaStream_t stream, double timeout_seconds,
                     absl::string_view what) {
  return Poll([stream] { return cudaStreamQuery(stream); }, timeout_seconds,
              what);
}

absl::Status RunWithin(double timeout_seconds, absl::string_view what,
                       std::function<absl::Status()> work) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<absl::Status> status;
  };
  auto shared = std::make_shared<Shared>();
  int device = 0;
  cudaGetDevice(&device);
  std::thread([shared, device, work = std::move(work)] {
    absl::Status status =
        CudaStatus(cudaSetDevice(device), "selecting the GPU");
    if (status.ok()) status = work();
    const std::lock_guard<std::mutex> lock(shared->mutex);
    shared->status = std::move(status);
    shared->done.notify_all();
  }).detach();
  std::unique_lock<std::mutex> lock(shared->mutex);
  if (!shared->done.wait_for(lock,
                             std::chrono::duration<double>(timeout_seconds),
                             [&] { return shared->status.has_value(); })) {
    return TimedOut(what, timeout_seconds);
  }
  return *shared->status;
}

bool DeviceIsHung() { return device_is_hung; }

}  // namespace weir::calibrate
