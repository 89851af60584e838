// SPDX-License-Identifier: Apache-2.0
// An NCCL communicator that never blocks for longer than its time-out.
#ifndef WEIR_CALIBRATE_FABRIC_NCCL_NCCL_COMMUNICATOR_H_
#define WEIR_CALIBRATE_FABRIC_NCCL_NCCL_COMMUNICATOR_H_

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/fabric/transport.h"
#include "calibrate/gpu/handles.h"

namespace weir::calibrate {

// Converts an error of NCCL. Returns Aborted if the network, another rank or
// the driver failed, Internal if NCCL was used incorrectly. `communicator` may
// be null; its last error message is appended.
absl::Status NcclFailure(ncclResult_t code, ncclComm_t communicator,
                         absl::string_view attempted);

// Source and destination of messages; grows, never shrinks.
class MessageBuffers {
 public:
  // Returns ResourceExhausted if the GPU has too little memory.
  absl::Status Reserve(int64_t num_bytes);
  char* from() const { return static_cast<char*>(from_.get()); }
  char* to() const { return static_cast<char*>(to_.get()); }
  int64_t num_bytes() const { return 2 * reserved_bytes_; }  // device memory

 private:
  DeviceMemory from_, to_;
  int64_t reserved_bytes_ = 0;
};

class NcclCommunicator : public Communicator {
 public:
  // Joins a communicator. Returns DeadlineExceeded if not all ranks joined in
  // time. The buffers must outlive it.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Join(
      absl::string_view id, int num_ranks, int rank, double timeout_seconds,
      MessageBuffers* buffers);
  ~NcclCommunicator() override;

  absl::StatusOr<double> TimeCollective(models::CollectiveKind kind,
                                        double bytes, int num_repeats) override;
  absl::StatusOr<double> TimePair(PairMode mode, int from, int to, double bytes,
                                  int num_repeats) override;

 private:
  using Enqueue = std::function<absl::Status()>;

  NcclCommunicator(int num_ranks, int rank, double timeout_seconds,
                   MessageBuffers* buffers)
      : num_ranks_(num_ranks),
        rank_(rank),
        timeout_seconds_(timeout_seconds),
        buffers_(buffers) {}

  // Waits until NCCL has completed the operation that returned `code`.
  absl::Status Settle(ncclResult_t code, absl::string_view what);
  absl::Status WaitFor(cudaEvent_t event, absl::string_view what);
  absl::Status GiveUp(absl::string_view what);
  absl::Status Exchange(int64_t num_bytes, int send_to, int receive_from,
                        absl::string_view what);
  absl::Status AllToAll(int64_t count);
  // Returns the mean time of `num_repeats` operations after one that
  // synchronizes the ranks.
  absl::StatusOr<double> Time(const Enqueue& enqueue, int num_repeats,
                              absl::string_view what);

  const int num_ranks_;
  const int rank_;
  const double timeout_seconds_;
  MessageBuffers* const buffers_;
  ncclComm_t communicator_ = nullptr;  // null after GiveUp()
  Stream stream_;
  Event begin_, end_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_NCCL_NCCL_COMMUNICATOR_H_
