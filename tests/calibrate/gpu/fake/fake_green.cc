// SPDX-License-Identifier: Apache-2.0
// The driver's green contexts as documented for compute capability 9.0.
#include <cuda.h>

#include <algorithm>
#include <cstring>

#include "tests/calibrate/gpu/fake/fake.h"

using weir::calibrate::Gpu;

namespace weir::calibrate {

double Slowed(cudaStream_t stream, double seconds) {
  if (stream->part == nullptr) return seconds;
  const double begin = std::max(stream->busy_until, Gpu().now);
  std::set<const CUgreenCtx_st*> busy;
  for (const cudaStream_t other : Gpu().streams) {
    if (other->part != nullptr && other->part != stream->part &&
        other->busy_until > begin) {
      busy.insert(other->part);
    }
  }
  return seconds *
         (1 + Gpu().slowdown_per_busy_part * static_cast<double>(busy.size()));
}

}  // namespace weir::calibrate

struct CUdevResourceDesc_st {
  unsigned num_multiprocessors;
};

namespace {

CUdevResource Resource(unsigned num_multiprocessors) {
  CUdevResource resource{};
  if (num_multiprocessors == 0) return resource;
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm.smCount = num_multiprocessors;
  resource.sm.minSmPartitionSize = Gpu().multiprocessor_step;
  resource.sm.smCoscheduledAlignment = Gpu().multiprocessor_step;
  return resource;
}

CUresult GetErrorName(CUresult code, const char** name) {
  *name = code == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
              ? "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"
              : "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}
CUresult DeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult DeviceGetDevResource(CUdevice, CUdevResource* resource,
                              CUdevResourceType) {
  *resource = Resource(Gpu().num_multiprocessors);
  return CUDA_SUCCESS;
}
CUresult Split(CUdevResource* groups, unsigned* num_groups,
               const CUdevResource* input, CUdevResource* rest, unsigned,
               unsigned least) {
  const unsigned step = Gpu().multiprocessor_step, all = input->sm.smCount;
  const unsigned size = std::max((least + step - 1) / step, 1U) * step;
  const unsigned fit = all / size;
  *num_groups = groups == nullptr ? fit : std::min(fit, *num_groups);
  if (groups == nullptr) return CUDA_SUCCESS;
  std::fill_n(groups, *num_groups, Resource(size));
  if (rest != nullptr) *rest = Resource(all - *num_groups * size);
  return CUDA_SUCCESS;
}
CUresult GenerateDesc(CUdevResourceDesc* description, CUdevResource* resource,
                      unsigned) {
  *description = new CUdevResourceDesc_st{resource->sm.smCount};
  return CUDA_SUCCESS;
}
CUresult Create(CUgreenCtx* context, CUdevResourceDesc description, CUdevice,
                unsigned flags) {
  const unsigned count = description->num_multiprocessors;
  delete description;  // the driver has no call for this
  if (count < Gpu().least_part) {
    return Gpu().small_part_is_invalid
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  }
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  *context = new CUgreenCtx_st{count};
  Gpu().parts.insert(*context);
  return CUDA_SUCCESS;
}
CUresult Destroy(CUgreenCtx context) {
  Gpu().num_streams_without_part += context->num_streams;
  Gpu().parts.erase(context);
  delete context;
  return CUDA_SUCCESS;
}
CUresult GetDevResource(CUgreenCtx context, CUdevResource* resource,
                        CUdevResourceType) {
  *resource = Resource(context->num_multiprocessors);
  return CUDA_SUCCESS;
}
CUresult StreamCreate(CUstream* stream, CUgreenCtx context, unsigned flags,
                      int) {
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::recursive_mutex> lock(weir::calibrate::GpuMutex());
  *stream = new CUstream_st;
  (*stream)->part = context;
  ++context->num_streams;
  Gpu().streams.insert(*stream);
  return CUDA_SUCCESS;
}

struct Entry {
  const char* name;
  int version;
  void* function;
};
template <typename Function>
void* Address(Function* function) {
  return reinterpret_cast<void*>(function);
}
const Entry kEntries[] = {
    {"cuGetErrorName", 6000, Address(GetErrorName)},
    {"cuDeviceGet", 2000, Address(DeviceGet)},
    {"cuDeviceGetDevResource", 12040, Address(DeviceGetDevResource)},
    {"cuDevSmResourceSplitByCount", 12040, Address(Split)},
    {"cuDevResourceGenerateDesc", 12040, Address(GenerateDesc)},
    {"cuGreenCtxCreate", 12040, Address(Create)},
    {"cuGreenCtxDestroy", 12040, Address(Destroy)},
    {"cuGreenCtxGetDevResource", 12040, Address(GetDevResource)},
    {"cuGreenCtxStreamCreate", 12050, Address(StreamCreate)},
};

}  // namespace

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(
    const char* symbol, void** function, unsigned version,
    unsigned long long,  // NOLINT(google-runtime-int): CUDA's signature.
    cudaDriverEntryPointQueryResult* result) {
  *function = nullptr;
  *result = cudaDriverEntryPointSymbolNotFound;
  if (Gpu().missing_entry == symbol) return cudaSuccess;
  for (const Entry& entry : kEntries) {
    if (std::strcmp(entry.name, symbol) != 0) continue;
    if (entry.version > Gpu().driver_version ||
        entry.version > static_cast<int>(version)) {
      *result = cudaDriverEntryPointVersionNotSufficent;
      return cudaSuccess;
    }
    *function = entry.function;
    *result = cudaDriverEntryPointSuccess;
  }
  return cudaSuccess;
}
