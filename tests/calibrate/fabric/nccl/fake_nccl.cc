// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/fabric/nccl/fake_nccl.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace weir::calibrate {

FakeNccl& Fake() {
  static FakeNccl& fake = *new FakeNccl;
  return fake;
}

namespace {

int num_polls_left = 0;

ncclResult_t Note(std::string call) {
  Fake().calls.push_back(std::move(call));
  return ncclSuccess;
}

// Starts a call that continues in the background.
ncclResult_t Begin(std::string call) {
  Note(std::move(call));
  num_polls_left = Fake().num_polls_in_progress;
  return Fake().is_stuck || num_polls_left > 0 ? ncclInProgress : ncclSuccess;
}

template <typename Handle>
cudaError_t Make(Handle* handle) {
  *handle = reinterpret_cast<Handle>(std::malloc(1));
  return cudaSuccess;
}

}  // namespace
}  // namespace weir::calibrate

extern "C" {

using weir::calibrate::Begin;
using weir::calibrate::Fake;
using weir::calibrate::Note;

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int num_ranks,
                                    ncclUniqueId, int rank,
                                    ncclConfig_t* config) {
  weir::calibrate::Make(communicator);
  Fake().blocking = config->blocking;
  return Begin(absl::StrCat("join ", rank, " of ", num_ranks));
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = Fake().async_error;
  if (*error == ncclSuccess &&
      (Fake().is_stuck || weir::calibrate::num_polls_left-- > 0)) {
    *error = ncclInProgress;
  }
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return Begin("finalize"); }
ncclResult_t ncclCommDestroy(ncclComm_t) { return Note("destroy"); }
ncclResult_t ncclCommAbort(ncclComm_t) { return Note("abort"); }
ncclResult_t ncclGroupStart() { return Note("group {"); }
ncclResult_t ncclGroupEnd() { return Begin("}"); }
ncclResult_t ncclSend(const void*, size_t count, ncclDataType_t, int peer,
                      ncclComm_t, cudaStream_t) {
  return Note(absl::StrCat("send ", count, " to ", peer));
}
ncclResult_t ncclRecv(void*, size_t count, ncclDataType_t, int peer, ncclComm_t,
                      cudaStream_t) {
  return Note(absl::StrCat("receive ", count, " from ", peer));
}
ncclResult_t ncclAllReduce(const void*, void*, size_t count, ncclDataType_t,
                           ncclRedOp_t, ncclComm_t, cudaStream_t) {
  return Begin(absl::StrCat("all_reduce ", count));
}
ncclResult_t ncclAllGather(const void*, void*, size_t count, ncclDataType_t,
                           ncclComm_t, cudaStream_t) {
  return Begin(absl::StrCat("all_gather ", count));
}
ncclResult_t ncclReduceScatter(const void*, void*, size_t count, ncclDataType_t,
                               ncclRedOp_t, ncclComm_t, cudaStream_t) {
  return Begin(absl::StrCat("reduce_scatter ", count));
}
const char* ncclGetErrorString(ncclResult_t) { return "a remote error"; }
const char* ncclGetLastError(ncclComm_t) { return "the cable"; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return weir::calibrate::Make(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::free(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return weir::calibrate::Make(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  std::free(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  Note("record");
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) {
  return Fake().is_stuck || Fake().num_events_pending-- > 0 ? cudaErrorNotReady
                                                            : cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t,
                                 cudaEvent_t) {
  *milliseconds = Fake().elapsed_milliseconds;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, size_t num_bytes) {
  *memory = std::malloc(num_bytes);
  Note(absl::StrCat("allocate ", num_bytes));
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, size_t num_bytes) {
  std::memset(memory, value, num_bytes);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetDevice(int*) { return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
const char* cudaGetErrorName(cudaError_t) { return "cudaError"; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "an error"; }
const char* cublasLtGetStatusName(cublasStatus_t) { return "CUBLAS"; }

}  // extern "C"
