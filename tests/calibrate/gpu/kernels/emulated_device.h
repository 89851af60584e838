// SPDX-License-Identifier: Apache-2.0
// The emulator as a test device. Each buffer ends at a guard page.
#ifndef WEIR_TESTS_CALIBRATE_GPU_KERNELS_EMULATED_DEVICE_H_
#define WEIR_TESTS_CALIBRATE_GPU_KERNELS_EMULATED_DEVICE_H_

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "tests/calibrate/gpu/emulator/guarded_memory.h"
#include "tests/calibrate/gpu/kernels/kernel_check.h"

namespace weir::calibrate {

class EmulatedDevice : public TestDevice {
 public:
  void* Upload(const std::vector<uint8_t>& bytes) override {
    auto memory = std::make_unique<emulator::GuardedMemory>(bytes.size());
    void* data = memory->data();
    if (!bytes.empty()) memcpy(data, bytes.data(), bytes.size());
    buffers_[data] = std::move(memory);
    return data;
  }

  absl::StatusOr<std::vector<uint8_t>> Download(const void* buffer) override {
    for (const auto& [data, memory] : buffers_) {
      if (!memory->Intact()) {
        return absl::InternalError("written before or after a buffer");
      }
    }
    const auto* bytes = static_cast<const uint8_t*>(buffer);
    return std::vector<uint8_t>(bytes, bytes + buffers_[buffer]->size());
  }

  // A small number, so that persistent blocks have several rows each.
  int num_multiprocessors() const override { return 2; }

 private:
  std::map<const void*, std::unique_ptr<emulator::GuardedMemory>> buffers_;
};

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_GPU_KERNELS_EMULATED_DEVICE_H_
