// SPDX-License-Identifier: Apache-2.0
// Queries the state of a GPU from a thread of its own, so that the thread that
// launches work never waits for NVML, which takes up to milliseconds.
#ifndef WEIR_CALIBRATE_GPU_HOST_NVML_SAMPLER_H_
#define WEIR_CALIBRATE_GPU_HOST_NVML_SAMPLER_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "calibrate/gpu/host/nvml.h"

namespace weir::calibrate {

class NvmlSampler {
 public:
  // Takes the first sample before it returns. Requires: `nvml` outlives it.
  explicit NvmlSampler(const Nvml* nvml, double period_seconds = 0.02);
  ~NvmlSampler();
  NvmlSampler(const NvmlSampler&) = delete;
  NvmlSampler& operator=(const NvmlSampler&) = delete;

  // Returns the last sample. Never waits for NVML. Thread-safe.
  DeviceState latest() const;
  // Returns the number of samples so far. Thread-safe.
  int64_t num_samples() const;

 private:
  void Run();

  const Nvml* nvml_;
  const double period_seconds_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool is_ended_ = false;
  DeviceState latest_;
  int64_t num_samples_ = 1;
  std::thread thread_;  // last, as it uses the others
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_NVML_SAMPLER_H_
