// SPDX-License-Identifier: Apache-2.0
// What the driver's management library (NVML) knows of a GPU. It comes with the
// driver and is opened at run time: nothing links it.
#ifndef WEIR_CALIBRATE_GPU_HOST_NVML_H_
#define WEIR_CALIBRATE_GPU_HOST_NVML_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/measure/bench.h"

namespace weir {

class Nvml {
 public:
  // `library`: a name or a path. `bus_id` as CUDA says it ("0000:3B:00.0").
  // Unavailable: the library, one of its functions or the GPU is not there, in
  // words that can go into a profile's remarks.
  static absl::StatusOr<std::unique_ptr<Nvml>> Open(const std::string& library,
                                                    const std::string& bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // At this moment; what the GPU does not tell stays 0.
  DeviceState Sample() const;
  // "580.65.06"; empty: unknown.
  std::string driver_version() const;
  // Of clocks set by `nvidia-smi -ac`: "default", "application clocks at 1305
  // MHz". Clocks locked by `nvidia-smi -lgc` cannot be asked for.
  std::string clocks() const;
  double power_limit_watts() const;    // 0: unknown
  double memory_in_use_bytes() const;  // by all processes; 0: unknown
  // What its NVLinks lead to, each once: "nvswitch" (a node's switches are
  // one), or "0000:3b:00.0-0000:5e:00.0", a link between two GPUs, which both
  // have.
  std::vector<std::string> link_addresses() const;

  // Of the link to a GPU; bus addresses as CUDA or NVML write them.
  static std::string LinkBetween(absl::string_view bus_id,
                                 absl::string_view other);

 private:
  struct Library;
  Nvml() = default;
  std::unique_ptr<Library> library_;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_HOST_NVML_H_
