// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/nccl/nccl_communicator.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr ncclDataType_t kType = ncclFloat16;  // supported by all GPUs
constexpr int64_t kTypeBytes = 2;
// Allocation granularity of cudaMalloc.
constexpr int64_t kGranuleBytes = int64_t{2} << 20;

// Polls busily at first, for short operations, then sleeps between polls.
class Patience {
 public:
  explicit Patience(double timeout_seconds) : timeout_(timeout_seconds) {}
  bool IsOver() const { return Clock::now() - begin_ > timeout_; }
  void Pause() const {
    if (Clock::now() - begin_ > std::chrono::milliseconds(2)) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  const Clock::time_point begin_ = Clock::now();
  const std::chrono::duration<double> timeout_;
};

}  // namespace

absl::Status NcclFailure(ncclResult_t code, ncclComm_t communicator,
                         absl::string_view attempted) {
  if (code == ncclSuccess) return absl::OkStatus();
  const char* last = ncclGetLastError(communicator);
  const std::string text = absl::StrCat(
      attempted, ": NCCL: ", ncclGetErrorString(code),
      last != nullptr && *last != '\0' ? absl::StrCat(" (", last, ")") : "");
  const bool misused = code == ncclInvalidArgument || code == ncclInternalError;
  return misused ? absl::InternalError(text) : absl::AbortedError(text);
}

absl::Status MessageBuffers::Reserve(int64_t num_bytes) {
  if (num_bytes <= reserved_bytes_) return absl::OkStatus();
  const int64_t rounded =
      (num_bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  from_ = DeviceMemory();
  to_ = DeviceMemory();
  reserved_bytes_ = 0;
  ASSIGN_OR_RETURN(from_, Allocate(rounded, "messages"));
  ASSIGN_OR_RETURN(to_, Allocate(rounded, "messages"));
  reserved_bytes_ = rounded;
  // A small number in any format; zeros would draw less power.
  for (void* const memory : {from_.get(), to_.get()}) {
    RETURN_IF_ERROR(
        CudaStatus(cudaMemset(memory, 0x2c, rounded), "filling messages"));
  }
  return CudaStatus(cudaDeviceSynchronize(), "filling messages");
}

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Join(
    absl::string_view id, int num_ranks, int rank, double timeout_seconds,
    MessageBuffers* buffers) {
  ncclUniqueId unique;
  if (id.size() != sizeof unique.internal) {
    return absl::InternalError(absl::StrCat("a communicator's id has ",
                                            id.size(), " bytes, expected ",
                                            sizeof unique.internal));
  }
  std::memcpy(unique.internal, id.data(), id.size());
  std::unique_ptr<NcclCommunicator> joined(
      new NcclCommunicator(num_ranks, rank, timeout_seconds, buffers));
  ASSIGN_OR_RETURN(joined->stream_, MakeStream());
  ASSIGN_OR_RETURN(joined->begin_, MakeEvent());
  ASSIGN_OR_RETURN(joined->end_, MakeEvent());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t begun = ncclCommInitRankConfig(
      &joined->communicator_, num_ranks, unique, rank, &config);
  RETURN_IF_ERROR(joined->Settle(
      begun, absl::StrCat("joining a communicator of ", num_ranks, " ranks")));
  return joined;
}

NcclCommunicator::~NcclCommunicator() {
  if (communicator_ == nullptr) return;
  // On failure, Settle() aborts the communicator, which also ends it.
  if (Settle(ncclCommFinalize(communicator_), "leaving a communicator").ok()) {
    ncclCommDestroy(communicator_);
  }
}

// Aborting also ends kernels that wait for other ranks.
absl::Status NcclCommunicator::GiveUp(absl::string_view what) {
  ncclCommAbort(std::exchange(communicator_, nullptr));
  return absl::DeadlineExceededError(absl::StrCat(
      what, ": NCCL did not finish within ", timeout_seconds_, " s"));
}

absl::Status NcclCommunicator::Settle(ncclResult_t code,
                                      absl::string_view what) {
  const Patience patience(timeout_seconds_);
  while (code == ncclInProgress) {
    if (patience.IsOver()) return GiveUp(what);
    patience.Pause();
    if (ncclResult_t asked = ncclCommGetAsyncError(communicator_, &code);
        asked != ncclSuccess) {
      code = asked;
    }
  }
  if (code == ncclSuccess) return absl::OkStatus();
  absl::Status failure = NcclFailure(code, communicator_, what);
  if (communicator_ != nullptr) {
    ncclCommAbort(std::exchange(communicator_, nullptr));
  }
  return failure;
}

absl::Status NcclCommunicator::WaitFor(cudaEvent_t event,
                                       absl::string_view what) {
  const Patience patience(timeout_seconds_);
  while (true) {
    const cudaError_t code = cudaEventQuery(event);
    if (code == cudaSuccess) return absl::OkStatus();
    if (code != cudaErrorNotReady) {
      return absl::AbortedError(CudaStatus(code, what).message());
    }
    cudaGetLastError();  // otherwise "not ready" would be NCCL's next error
    ncclResult_t error = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &error);
    if (asked != ncclSuccess) error = asked;
    if (error != ncclSuccess && error != ncclInProgress) {
      return Settle(error, what);
    }
    if (patience.IsOver()) return GiveUp(what);
    patience.Pause();
  }
}

absl::StatusOr<double> NcclCommunicator::Time(const Enqueue& enqueue,
                                              int num_repeats,
                                              absl::string_view what) {
  if (communicator_ == nullptr) {
    return absl::AbortedError(
        absl::StrCat(what, ": the communicator was aborted"));
  }
  // Synchronizes the ranks before any of them starts its clock.
  RETURN_IF_ERROR(enqueue());
  RETURN_IF_ERROR(
      CudaStatus(cudaEventRecord(begin_.get(), stream_.get()), what));
  for (int i = 0; i < num_repeats; ++i) RETURN_IF_ERROR(enqueue());
  RETURN_IF_ERROR(CudaStatus(cudaEventRecord(end_.get(), stream_.get()), what));
  RETURN_IF_ERROR(WaitFor(end_.get(), what));
  float milliseconds = 0;
  RETURN_IF_ERROR(CudaStatus(
      cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), what));
  return milliseconds * 1e-3 / num_repeats;
}

// Sends and receives, both at once if both are requested; -1: neither.
absl::Status NcclCommunicator::Exchange(int64_t num_bytes, int send_to,
                                        int receive_from,
                                        absl::string_view what) {
  RETURN_IF_ERROR(Settle(ncclGroupStart(), what));
  ncclResult_t sent = ncclSuccess, received = ncclSuccess;
  if (send_to >= 0) {
    sent = ncclSend(buffers_->from(), num_bytes, ncclUint8, send_to,
                    communicator_, stream_.get());
  }
  if (receive_from >= 0) {
    received = ncclRecv(buffers_->to(), num_bytes, ncclUint8, receive_from,
                        communicator_, stream_.get());
  }
  const ncclResult_t ended = ncclGroupEnd();  // also after an error
  for (const ncclResult_t code : {sent, received, ended}) {
    RETURN_IF_ERROR(Settle(code, what));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> NcclCommunicator::TimePair(PairMode mode, int from,
                                                  int to, double bytes,
                                                  int num_repeats) {
  if (rank_ != from && rank_ != to) return 0;
  const auto num_bytes = static_cast<int64_t>(bytes);
  const std::string what = absl::StrCat("sending ", num_bytes, " bytes");
  RETURN_IF_ERROR(buffers_->Reserve(num_bytes));
  const bool is_self = from == to;
  const int other = rank_ == from ? to : from;
  const auto send = [&, to_itself = is_self ? rank_ : -1] {
    return Exchange(num_bytes, other, to_itself, what);
  };
  const auto receive = [&] { return Exchange(num_bytes, -1, other, what); };
  const auto both = [&] { return Exchange(num_bytes, other, other, what); };
  const bool first = rank_ == from;
  Enqueue enqueue;
  switch (mode) {
    case PairMode::kOneWay:
      enqueue = first ? Enqueue(send) : Enqueue(receive);
      break;
    case PairMode::kBothWays:
      enqueue = both;
      break;
    case PairMode::kPingPong:
      enqueue = [&]() -> absl::Status {
        RETURN_IF_ERROR(first ? send() : receive());
        return first && !is_self ? receive() : send();
      };
      break;
  }
  return Time(enqueue, num_repeats, what);
}

absl::Status NcclCommunicator::AllToAll(int64_t count) {
  constexpr absl::string_view kWhat = "all-to-all";
  RETURN_IF_ERROR(Settle(ncclGroupStart(), kWhat));
  ncclResult_t worst = ncclSuccess;
  for (int peer = 0; peer < num_ranks_; ++peer) {
    const int64_t at = peer * count * kTypeBytes;
    const ncclResult_t sent = ncclSend(buffers_->from() + at, count, kType,
                                       peer, communicator_, stream_.get());
    const ncclResult_t received = ncclRecv(buffers_->to() + at, count, kType,
                                           peer, communicator_, stream_.get());
    if (worst == ncclSuccess) worst = sent;
    if (worst == ncclSuccess) worst = received;
  }
  const ncclResult_t ended = ncclGroupEnd();
  RETURN_IF_ERROR(Settle(worst, kWhat));
  return Settle(ended, kWhat);
}

absl::StatusOr<double> NcclCommunicator::TimeCollective(
    models::CollectiveKind kind, double bytes, int num_repeats) {
  const int64_t all =
      std::max<int64_t>(static_cast<int64_t>(bytes) / kTypeBytes, num_ranks_);
  const int64_t part = all / num_ranks_;
  RETURN_IF_ERROR(buffers_->Reserve(all * kTypeBytes));
  char* const from = buffers_->from();
  char* const to = buffers_->to();
  Enqueue enqueue;
  const std::string what =
      absl::StrCat(Name(kind), " of ", all * kTypeBytes, " bytes");
  switch (kind) {
    case models::CollectiveKind::kAllReduce:
      enqueue = [&] {
        return Settle(ncclAllReduce(from, to, all, kType, ncclSum,
                                    communicator_, stream_.get()),
                      what);
      };
      break;
    case models::CollectiveKind::kAllGather:
      enqueue = [&] {
        return Settle(
            ncclAllGather(from, to, part, kType, communicator_, stream_.get()),
            what);
      };
      break;
    case models::CollectiveKind::kReduceScatter:
      enqueue = [&] {
        return Settle(ncclReduceScatter(from, to, part, kType, ncclSum,
                                        communicator_, stream_.get()),
                      what);
      };
      break;
    case models::CollectiveKind::kAllToAll:
      enqueue = [&] { return AllToAll(part); };
      break;
    case models::CollectiveKind::kSendReceive:
      return absl::InternalError("sends are timed as pairs");
  }
  return Time(enqueue, num_repeats, what);
}

}  // namespace weir::calibrate
