// SPDX-License-Identifier: Apache-2.0
// State of a GPU from the driver's management library (NVML). It is part of the
// driver and is opened at run time, so nothing links it.
#ifndef WEIR_CALIBRATE_GPU_HOST_NVML_H_
#define WEIR_CALIBRATE_GPU_HOST_NVML_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/measure/bench.h"

namespace weir::calibrate {

class Nvml {
 public:
  // `library` is a name or a path, `bus_id` is in CUDA's format
  // ("0000:3B:00.0"). Returns Unavailable if the library, one of its functions
  // or the GPU is missing; the message is suitable for a profile's remarks.
  static absl::StatusOr<std::unique_ptr<Nvml>> Open(const std::string& library,
                                                    const std::string& bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Returns the current state, with the power of this moment rather than a mean
  // if the driver reports it; unavailable values are 0. Thread-safe.
  DeviceState Sample() const;
  // Returns, for example, "580.65.06"; empty if unknown.
  std::string driver_version() const;
  // Returns the clocks set by `nvidia-smi -ac`: "default", "application clocks
  // at 1305 MHz". Clocks locked by `nvidia-smi -lgc` cannot be queried.
  std::string clocks() const;
  double power_limit_watts() const;    // 0: unknown
  double memory_in_use_bytes() const;  // by all processes; 0: unknown
  // Returns the distinct targets of the GPU's NVLinks: "nvswitch" (for all
  // switches of a node), or "0000:3b:00.0-0000:5e:00.0" for a link between two
  // GPUs, which is the same string on both.
  std::vector<std::string> link_addresses() const;

  // Returns the name of the link between two GPUs. Bus addresses are in CUDA's
  // or NVML's format.
  static std::string LinkBetween(absl::string_view bus_id,
                                 absl::string_view other);

 private:
  struct Library;
  Nvml() = default;
  std::unique_ptr<Library> library_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_NVML_H_
