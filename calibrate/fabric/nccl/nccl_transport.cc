// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/nccl/nccl_transport.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/fabric/nccl/nccl_communicator.h"
#include "calibrate/fabric/one_gpu.h"
#include "calibrate/gpu/device.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/handles.h"
#include "calibrate/gpu/host/nvml.h"

namespace weir::calibrate {
namespace {

// Returns Unavailable for a missing requirement, regardless of CUDA's error
// code.
absl::Status Missing(const absl::Status& status) {
  return absl::UnavailableError(status.message());
}

// Returns the only visible GPU, otherwise the one of the local rank.
int DeviceOf(const TransportRequest& request) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count <= 1) return 0;
  return request.one_gpu ? 0 : request.local_rank;
}

class NcclTransport : public Transport {
 public:
  NcclTransport(const TransportRequest& request, DeviceFacts facts,
                std::unique_ptr<Nvml> nvml)
      : request_(request),
        facts_(std::move(facts)),
        nvml_(std::move(nvml)),
        provenance_(ProvenanceOf(facts_, nvml_.get())) {}

  const Provenance& provenance() const override { return provenance_; }
  std::string gpu_address() const override { return facts_.bus_id; }

  std::vector<std::string> switch_addresses() const override {
    return nvml_ == nullptr ? std::vector<std::string>()
                            : nvml_->link_addresses();
  }

  // Memory of the whole device, without the message buffers.
  double memory_in_use_bytes() override {
    size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
    return static_cast<double>(total - free) -
           static_cast<double>(buffers_.num_bytes());
  }

  absl::StatusOr<std::string> MakeId() override {
    ncclUniqueId id;
    RETURN_IF_ERROR(NcclFailure(ncclGetUniqueId(&id), nullptr,
                                "creating a communicator id"));
    return std::string(id.internal, sizeof id.internal);
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Join(absl::string_view id,
                                                     int num_ranks,
                                                     int rank) override {
    ASSIGN_OR_RETURN(
        std::unique_ptr<NcclCommunicator> joined,
        NcclCommunicator::Join(id, num_ranks, rank, request_.timeout_seconds,
                               &buffers_));
    return joined;
  }

 private:
  const TransportRequest request_;
  const DeviceFacts facts_;
  const std::unique_ptr<Nvml> nvml_;
  const Provenance provenance_;
  MessageBuffers buffers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeNcclTransport(
    const TransportRequest& request) {
  if (request.one_gpu) {
    for (const auto& [name, value] : OneGpuEnvironment(request.rank)) {
      setenv(name.c_str(), value.c_str(), /*replace=*/1);
    }
  }
  absl::StatusOr<DeviceFacts> facts = FindDevice(DeviceOf(request));
  if (!facts.ok()) return Missing(facts.status());
  RETURN_IF_ERROR(
      CudaStatus(cudaSetDevice(facts->device), "selecting the GPU"));
  // Create the context, so that it does not count as a communicator's memory.
  if (absl::Status started = CudaStatus(cudaFree(nullptr), "starting the GPU");
      !started.ok()) {
    return Missing(started);
  }
  absl::StatusOr<std::unique_ptr<Nvml>> nvml =
      Nvml::Open("libnvidia-ml.so.1", facts->bus_id);
  return std::make_unique<NcclTransport>(
      request, *std::move(facts), nvml.ok() ? *std::move(nvml) : nullptr);
}

}  // namespace weir::calibrate
