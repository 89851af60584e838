// SPDX-License-Identifier: Apache-2.0
// Which GPU this is.
#ifndef WEIR_CALIBRATE_GPU_DEVICE_H_
#define WEIR_CALIBRATE_GPU_DEVICE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "calibrate/gpu/host/nvml.h"
#include "calibrate/provenance.pb.h"
#include "calibrate/stage/stage_op.h"

namespace weir {

struct DeviceFacts {
  int device = 0;
  std::string name, bus_id;
  std::string hash;  // of the UUID
  int major = 0, minor = 0;
  int num_multiprocessors = 0;
  int64_t l2_bytes = 0, memory_bytes = 0;
  ElementFormat half_format = ElementFormat::kBf16;
};

// Creates no context. FailedPrecondition, one line each: no driver, one older
// than this program's CUDA, no GPU, none of this number, one that the compiled
// kernels or this program's memory pools do not run on.
absl::StatusOr<DeviceFacts> FindDevice(int device);

// `nvml` may be null. Without command, date and version of weir.
Provenance ProvenanceOf(const DeviceFacts& facts, const Nvml* nvml);

// 64-bit FNV-1a, in hexadecimal.
std::string StableHash(absl::string_view bytes);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_DEVICE_H_
