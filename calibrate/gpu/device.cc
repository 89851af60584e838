// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/host/architectures.h"

namespace weir::calibrate {
namespace {

absl::Status CheckDriver() {
  int driver = 0, runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return absl::FailedPreconditionError(
        "no NVIDIA driver on this machine (libcuda.so.1 was not found)");
  }
  // Drivers support all minor versions of their CUDA.
  if (driver / 1000 < runtime / 1000) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the NVIDIA driver is too old: it supports CUDA ", CudaVersion(driver),
        ", weir-calibrate was built with CUDA ", CudaVersion(runtime)));
  }
  return absl::OkStatus();
}

absl::Status CheckCount(int device) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorNoDevice || (code == cudaSuccess && count == 0)) {
    return absl::FailedPreconditionError(
        "no GPU on this machine, or all are hidden by CUDA_VISIBLE_DEVICES");
  }
  if (code != cudaSuccess) {  // for example, a driver without its kernel module
    return absl::FailedPreconditionError(
        CudaStatus(code, "no GPU can be used on this machine").message());
  }
  if (device < 0 || device >= count) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no GPU ", device, ": this machine has ", count,
                     ", counted from 0"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  RETURN_IF_ERROR(CudaStatus(cudaDeviceGetAttribute(&value, attribute, device),
                             "querying the attributes of the GPU"));
  return value;
}

}  // namespace

std::string StableHash(absl::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001B3;
  }
  return absl::StrFormat("%016x", hash);
}

absl::StatusOr<DeviceFacts> FindDevice(int device) {
  RETURN_IF_ERROR(CheckDriver());
  RETURN_IF_ERROR(CheckCount(device));
  cudaDeviceProp properties;
  RETURN_IF_ERROR(CudaStatus(cudaGetDeviceProperties(&properties, device),
                             "querying the properties of the GPU"));
  DeviceFacts facts;
  facts.device = device;
  facts.name = properties.name;
  facts.hash = StableHash(
      absl::string_view(properties.uuid.bytes, sizeof properties.uuid.bytes));
  facts.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  facts.major = properties.major;
  facts.minor = properties.minor;
  RETURN_IF_ERROR(CheckArchitecture(facts.name, facts.major, facts.minor,
                                    WEIR_CUDA_ARCHITECTURES));
  ASSIGN_OR_RETURN(facts.num_multiprocessors,
                   Attribute(cudaDevAttrMultiProcessorCount, device));
  ASSIGN_OR_RETURN(facts.l2_bytes, Attribute(cudaDevAttrL2CacheSize, device));
  ASSIGN_OR_RETURN(const int has_pools,
                   Attribute(cudaDevAttrMemoryPoolsSupported, device));
  if (has_pools == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the driver of this GPU (", facts.name, ") has no memory pools"));
  }
  char bus_id[32] = "";
  RETURN_IF_ERROR(
      CudaStatus(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device),
                 "querying the PCI address of the GPU"));
  facts.bus_id = bus_id;
  facts.half_format =
      facts.major >= 8 ? ElementFormat::kBf16 : ElementFormat::kFp16;
  return facts;
}

Provenance ProvenanceOf(const DeviceFacts& facts, const Nvml* nvml) {
  Provenance provenance;
  provenance.set_gpu_name(facts.name);
  provenance.set_gpu_hash(facts.hash);
  provenance.set_num_multiprocessors(facts.num_multiprocessors);
  provenance.set_memory_bytes(facts.memory_bytes);
  provenance.set_num_ranks(1);
  provenance.set_num_nodes(1);
  Software* software = provenance.mutable_software();
  int cuda = 0, nccl = 0;
  if (cudaRuntimeGetVersion(&cuda) == cudaSuccess) {
    software->set_cuda(CudaVersion(cuda));
  }
  const auto cublas = static_cast<int>(cublasLtGetVersion());
  software->set_cublas(
      absl::StrCat(cublas / 10000, ".", cublas / 100 % 100, ".", cublas % 100));
  if (ncclGetVersion(&nccl) == ncclSuccess) {
    software->set_nccl(
        absl::StrCat(nccl / 10000, ".", nccl / 100 % 100, ".", nccl % 100));
  }
  if (nvml != nullptr) {
    software->set_driver(nvml->driver_version());
    provenance.set_clocks(nvml->clocks());
    if (const double watts = nvml->power_limit_watts(); watts > 0) {
      provenance.add_remarks(absl::StrFormat("power limit %.0f W", watts));
    }
  }
  return provenance;
}

std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace weir::calibrate
