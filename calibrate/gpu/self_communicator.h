// SPDX-License-Identifier: Apache-2.0
// NCCL with one rank that sends to itself. Functions return the errors of
// errors.h, and DeadlineExceeded if NCCL does not finish in time.
#ifndef WEIR_CALIBRATE_GPU_SELF_COMMUNICATOR_H_
#define WEIR_CALIBRATE_GPU_SELF_COMMUNICATOR_H_

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace weir::calibrate {

class SelfCommunicator {
 public:
  // Uses at most max_ctas thread blocks per operation; 0: NCCL's choice.
  // Requires: graphs that captured it are destroyed before it is.
  static absl::StatusOr<std::unique_ptr<SelfCommunicator>> Create(
      int max_ctas, double timeout_seconds);
  ~SelfCommunicator();

  // Enqueues a copy between the buffers; can be captured once it has run.
  absl::Status Send(const void* from, void* to, int64_t num_bytes,
                    cudaStream_t stream);

 private:
  SelfCommunicator(ncclComm_t communicator, double timeout_seconds)
      : communicator_(communicator), timeout_seconds_(timeout_seconds) {}
  const ncclComm_t communicator_;
  const double timeout_seconds_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_SELF_COMMUNICATOR_H_
