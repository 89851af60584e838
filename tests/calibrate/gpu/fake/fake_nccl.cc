// SPDX-License-Identifier: Apache-2.0
#include <nccl.h>

#include <cstring>

#include "tests/calibrate/gpu/fake/fake.h"

using weir::calibrate::Gpu;

struct ncclComm {
  bool used = false;
};

namespace {
constexpr int64_t kCommunicatorBytes = 30 << 20, kFirstUseBytes = 10 << 20;
const void* sent = nullptr;
}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "fake"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetUniqueId(ncclUniqueId*) { return ncclSuccess; }
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int, ncclUniqueId,
                                    int, ncclConfig_t*) {
  Gpu().used_bytes += kCommunicatorBytes;
  *communicator = new ncclComm;
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  delete communicator;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }
ncclResult_t ncclSend(const void* from, size_t, ncclDataType_t, int,
                      ncclComm_t communicator, cudaStream_t) {
  if (!communicator->used) Gpu().used_bytes += kFirstUseBytes;
  communicator->used = true;
  sent = from;
  return ncclSuccess;
}
ncclResult_t ncclRecv(void* to, size_t bytes, ncclDataType_t, int, ncclComm_t,
                      cudaStream_t stream) {
  cudaMemcpyAsync(to, sent, bytes, cudaMemcpyDeviceToDevice, stream);
  return ncclSuccess;
}

}  // extern "C"
