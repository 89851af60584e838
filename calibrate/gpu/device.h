// SPDX-License-Identifier: Apache-2.0
// Identifies the GPU.
#ifndef WEIR_CALIBRATE_GPU_DEVICE_H_
#define WEIR_CALIBRATE_GPU_DEVICE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "calibrate/execute/stage/stage_op.h"
#include "calibrate/gpu/host/nvml.h"
#include "calibrate/profile/provenance.pb.h"

namespace weir::calibrate {

struct DeviceFacts {
  int device = 0;
  std::string name, bus_id;
  std::string hash;  // hash of the UUID
  int major = 0, minor = 0;
  int num_multiprocessors = 0;
  int64_t l2_bytes = 0, memory_bytes = 0;
  ElementFormat half_format = ElementFormat::kBf16;
};

// Finds a device without creating a context. Returns FailedPrecondition, in one
// line, if there is no driver, one older than this program's CUDA, no GPU, no
// GPU of this number, or one that does not support the compiled kernels or
// memory pools.
absl::StatusOr<DeviceFacts> FindDevice(int device);

// Returns the provenance without command, date and version of weir. `nvml` may
// be null.
Provenance ProvenanceOf(const DeviceFacts& facts, const Nvml* nvml);

// Returns "13.0" for CUDA's version number 13000.
std::string CudaVersion(int version);

// Returns the 64-bit FNV-1a hash in hexadecimal.
std::string StableHash(absl::string_view bytes);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_DEVICE_H_
