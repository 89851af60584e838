// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/handles.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {

absl::StatusOr<Stream> MakeStream() {
  Stream stream;
  RETURN_IF_ERROR(CudaStatus(
      cudaStreamCreateWithFlags(stream.receive(), cudaStreamNonBlocking),
      "creating a stream"));
  return stream;
}

absl::StatusOr<Event> MakeEvent() {
  Event event;
  RETURN_IF_ERROR(
      CudaStatus(cudaEventCreate(event.receive()), "creating an event"));
  return event;
}

absl::StatusOr<DeviceMemory> Allocate(int64_t num_bytes,
                                      absl::string_view what_for) {
  DeviceMemory memory;
  const cudaError_t code = cudaMalloc(memory.receive(), num_bytes);
  // Clears the error, so that a later call does not report it.
  if (code != cudaSuccess) cudaGetLastError();
  RETURN_IF_ERROR(
      CudaStatus(code, absl::StrCat("allocating ", num_bytes, " bytes of GPU ",
                                    "memory for ", what_for)));
  return memory;
}

absl::StatusOr<int64_t> FreeMemory() {
  size_t free = 0, total = 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaMemGetInfo(&free, &total), "querying free GPU memory"));
  return static_cast<int64_t>(free);
}

}  // namespace weir::calibrate
