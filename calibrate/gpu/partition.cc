// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/partition.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {

// Functions with the signatures of cuda.h, whose declarations cannot be used
// directly because they would have to be linked.
struct GreenEntries {
  decltype(&cuGetErrorName) get_error_name = nullptr;
  decltype(&cuDeviceGet) device_get = nullptr;
  decltype(&cuDeviceGetDevResource) device_get_resource = nullptr;
  decltype(&cuDevSmResourceSplitByCount) split_by_count = nullptr;
  decltype(&cuDevResourceGenerateDesc) generate_desc = nullptr;
  decltype(&cuGreenCtxCreate) create = nullptr;
  decltype(&cuGreenCtxDestroy) destroy = nullptr;
  decltype(&cuGreenCtxGetDevResource) get_resource = nullptr;
  // cuGreenCtxStreamCreate, which the headers of CUDA 12.4 lack.
  CUresult (*create_stream)(CUstream*, CUgreenCtx, unsigned, int) = nullptr;

  absl::Status Status(CUresult code, absl::string_view attempted) const;
};

namespace {

absl::StatusCode CodeOf(CUresult code) {
  switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return absl::StatusCode::kResourceExhausted;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_INVALID_RESOURCE_TYPE:
    case CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION:
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kInternal;
  }
}

std::string NameOf(int device) {
  cudaDeviceProp properties;
  return cudaGetDeviceProperties(&properties, device) == cudaSuccess
             ? properties.name
             : absl::StrCat("GPU ", device);
}

absl::Status TooOld(absl::string_view symbol) {
  int version = 0;
  cudaDriverGetVersion(&version);
  return absl::UnimplementedError(absl::StrCat(
      "partitions of a GPU need an NVIDIA driver for CUDA 12.5 or later; this "
      "one supports CUDA ",
      version / 1000, ".", version % 1000 / 10, " and has no ", symbol));
}

// Looks up by version, since later drivers may change a function's signature.
template <typename Function>
absl::Status Find(const char* symbol, unsigned version, Function* function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t code = cudaGetDriverEntryPointByVersion(
      symbol, &found, version, cudaEnableDefault, &result);
#else
  (void)version;
  const cudaError_t code =
      cudaGetDriverEntryPoint(symbol, &found, cudaEnableDefault, &result);
#endif
  if (code != cudaSuccess) cudaGetLastError();  // clears the error of this call
  RETURN_IF_ERROR(CudaStatus(
      code, absl::StrCat("looking up the driver function ", symbol)));
  if (result != cudaDriverEntryPointSuccess || found == nullptr) {
    return TooOld(symbol);
  }
  *function = reinterpret_cast<Function>(found);
  return absl::OkStatus();
}

absl::Status FindAll(GreenEntries* entries) {
  constexpr unsigned kGreen = 12040, kGreenStreams = 12050;
  RETURN_IF_ERROR(Find("cuGetErrorName", 6000, &entries->get_error_name));
  RETURN_IF_ERROR(Find("cuDeviceGet", 2000, &entries->device_get));
  RETURN_IF_ERROR(
      Find("cuDeviceGetDevResource", kGreen, &entries->device_get_resource));
  RETURN_IF_ERROR(
      Find("cuDevSmResourceSplitByCount", kGreen, &entries->split_by_count));
  RETURN_IF_ERROR(
      Find("cuDevResourceGenerateDesc", kGreen, &entries->generate_desc));
  RETURN_IF_ERROR(Find("cuGreenCtxCreate", kGreen, &entries->create));
  RETURN_IF_ERROR(Find("cuGreenCtxDestroy", kGreen, &entries->destroy));
  RETURN_IF_ERROR(
      Find("cuGreenCtxGetDevResource", kGreen, &entries->get_resource));
  return Find("cuGreenCtxStreamCreate", kGreenStreams, &entries->create_stream);
}

int CountOf(const CUdevResource& resource) {
  return resource.type == CU_DEV_RESOURCE_TYPE_SM
             ? static_cast<int>(resource.sm.smCount)
             : 0;
}

}  // namespace

absl::Status GreenEntries::Status(CUresult code,
                                  absl::string_view attempted) const {
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  get_error_name(code, &name);
  return absl::Status(
      CodeOf(code),
      absl::StrCat(attempted, ": ", name != nullptr ? name : "error ",
                   name != nullptr ? "" : absl::StrCat(code)));
}

void GpuPartition::Destroy::operator()(CUgreenCtx context) const {
  if (!DeviceIsHung()) entries->destroy(context);
}

absl::StatusOr<Stream> GpuPartition::MakeStream() const {
  const GreenEntries* entries = context_.get_deleter().entries;
  CUstream stream = nullptr;
  RETURN_IF_ERROR(
      entries->Status(entries->create_stream(&stream, context_.get(),
                                             CU_STREAM_NON_BLOCKING, 0),
                      "creating a stream of a GPU partition"));
  return Stream(stream);
}

GpuPartitions::GpuPartitions() : entries_(std::make_unique<GreenEntries>()) {}
GpuPartitions::~GpuPartitions() = default;

absl::StatusOr<std::unique_ptr<GpuPartitions>> GpuPartitions::Create(
    int device, int num_parts, int min_copy_multiprocessors) {
  std::unique_ptr<GpuPartitions> partitions(new GpuPartitions);
  RETURN_IF_ERROR(FindAll(partitions->entries_.get()));
  RETURN_IF_ERROR(
      partitions->Split(device, num_parts, min_copy_multiprocessors));
  return partitions;
}

absl::StatusOr<GpuPartition> GpuPartitions::Make(
    int device, CUdevResource* resource) const {
  CUdevResourceDesc description = nullptr;
  RETURN_IF_ERROR(
      entries_->Status(entries_->generate_desc(&description, resource, 1),
                       "describing a GPU partition"));
  CUdevice gpu = 0;
  RETURN_IF_ERROR(
      entries_->Status(entries_->device_get(&gpu, device), "querying the GPU"));
  CUgreenCtx created = nullptr;
  RETURN_IF_ERROR(entries_->Status(
      entries_->create(&created, description, gpu, CU_GREEN_CTX_DEFAULT_STREAM),
      "creating a context for a GPU partition"));
  GpuPartition::Context context(created, {entries_.get()});
  CUdevResource got{};
  RETURN_IF_ERROR(entries_->Status(
      entries_->get_resource(created, &got, CU_DEV_RESOURCE_TYPE_SM),
      "querying the multiprocessors of a GPU partition"));
  return GpuPartition(std::move(context), CountOf(got));
}

// Returns Unimplemented if this size is not possible.
absl::Status GpuPartitions::CutParts(int device, int num_parts, int size,
                                     int min_copy_multiprocessors,
                                     CUdevResource* all) {
  std::vector<CUdevResource> groups(num_parts);
  CUdevResource rest{};
  unsigned count = num_parts;
  RETURN_IF_ERROR(entries_->Status(
      entries_->split_by_count(groups.data(), &count, all, &rest, 0, size),
      "dividing the GPU into partitions"));
  if (static_cast<int>(count) < num_parts ||
      CountOf(rest) < std::max(min_copy_multiprocessors, 1)) {
    return absl::UnimplementedError("too few multiprocessors are left over");
  }
  // Neither the minimum size of a context nor the driver's error for a smaller
  // one is documented.
  absl::StatusOr<GpuPartition> copies = Make(device, &rest);
  if (!copies.ok() && !absl::IsResourceExhausted(copies.status())) {
    return absl::UnimplementedError(absl::StrCat(
        "a partition of the ", CountOf(rest), " multiprocessors left over for ",
        "copies: ", copies.status().message()));
  }
  RETURN_IF_ERROR(copies.status());
  std::vector<GpuPartition> parts;
  for (CUdevResource& group : groups) {
    ASSIGN_OR_RETURN(GpuPartition part, Make(device, &group));
    if (!parts.empty() &&
        part.num_multiprocessors() != parts[0].num_multiprocessors()) {
      return absl::UnimplementedError(
          absl::StrCat("the driver made partitions of different sizes (",
                       parts[0].num_multiprocessors(), " and ",
                       part.num_multiprocessors(), " multiprocessors)"));
    }
    parts.push_back(std::move(part));
  }
  parts_ = std::move(parts);
  copies_.clear();
  copies_.push_back(*std::move(copies));
  return absl::OkStatus();
}

absl::Status GpuPartitions::Split(int device, int num_parts,
                                  int min_copy_multiprocessors) {
  const std::string name = NameOf(device);
  CUdevice gpu = 0;
  RETURN_IF_ERROR(
      entries_->Status(entries_->device_get(&gpu, device), "querying the GPU"));
  CUdevResource all{};
  RETURN_IF_ERROR(entries_->Status(
      entries_->device_get_resource(gpu, &all, CU_DEV_RESOURCE_TYPE_SM),
      absl::StrCat(name, " cannot be divided into partitions")));
  num_multiprocessors_ = CountOf(all);
  const int step = std::max<int>(all.sm.smCoscheduledAlignment, 1);
  const int least = std::max<int>(all.sm.minSmPartitionSize, step);
  absl::Status last = absl::OkStatus();
  const auto smaller_may_do = [&] { return absl::IsUnimplemented(last); };
  if (num_parts > 0) {
    const int most = num_multiprocessors_ / num_parts / step * step;
    for (int size = most; size >= least; size -= step) {
      last = CutParts(device, num_parts, size, min_copy_multiprocessors, &all);
      if (!smaller_may_do()) return last;
    }
  }
  unsigned fit = 0;
  RETURN_IF_ERROR(entries_->Status(
      entries_->split_by_count(nullptr, &fit, &all, nullptr, 0, least),
      absl::StrCat(name, " cannot be divided into partitions")));
  const int for_copies = std::max(min_copy_multiprocessors, 1);
  const int leave = std::max(0, num_multiprocessors_ - for_copies) / least;
  return absl::InvalidArgumentError(absl::StrCat(
      name, " cannot be divided into ", num_parts, " partitions: it has ",
      num_multiprocessors_, " multiprocessors, partitions have at least ",
      least, ", and ", for_copies, " are needed for copies; at most ",
      std::min<int>(fit, leave), " partitions fit",
      last.ok() ? "" : absl::StrCat(" (", last.message(), ")")));
}

void RequestManyQueues() {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
}

}  // namespace weir::calibrate
