// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/nvml_sampler.h"

#include <chrono>

namespace weir::calibrate {

NvmlSampler::NvmlSampler(const Nvml* nvml, double period_seconds)
    : nvml_(nvml),
      period_seconds_(period_seconds),
      latest_(nvml->Sample()),
      thread_([this] { Run(); }) {}

NvmlSampler::~NvmlSampler() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_ended_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

DeviceState NvmlSampler::latest() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return latest_;
}

int64_t NvmlSampler::num_samples() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return num_samples_;
}

void NvmlSampler::Run() {
  const std::chrono::duration<double> period(period_seconds_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, period, [this] { return is_ended_; })) {
    lock.unlock();
    const DeviceState state = nvml_->Sample();
    lock.lock();
    latest_ = state;
    ++num_samples_;
  }
}

}  // namespace weir::calibrate
