// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/gpu/partitioned_rank.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/kernels/training_kernels.h"

namespace weir::calibrate {
namespace {

struct CudaRankEvent : RankEvent {
  explicit CudaRankEvent(std::unique_ptr<RecordedEvent> event)
      : event(std::move(event)) {}
  std::unique_ptr<RecordedEvent> event;
};

cudaEvent_t EventOf(const RankEventPtr& event) {
  return static_cast<const CudaRankEvent&>(*event).event->get();
}

}  // namespace

PartitionedRank::PartitionedRank(PartitionedExecution* replay, Own own,
                                 RankTools tools)
    : CudaRank(std::move(tools)), execution_(*replay), own_(std::move(own)) {}

PartitionedRank::~PartitionedRank() {
  if (DeviceIsHung()) return;
  for (void* memory : taken_) pool()->Free(memory, stream()).IgnoreError();
  ClosePool();
}

absl::Status PartitionedRank::Open(int64_t pool_bytes, int64_t primed_bytes,
                                   const std::vector<int>& sends_to) {
  RETURN_IF_ERROR(CudaRank::Open(pool_bytes, primed_bytes));
  for (const int rank : sends_to) RETURN_IF_ERROR(ChannelTo(rank).status());
  return absl::OkStatus();
}

absl::StatusOr<void*> PartitionedRank::AllocateMemory(int64_t num_elements,
                                                      ElementFormat format,
                                                      absl::string_view what) {
  RETURN_IF_ERROR(MakeCurrent());
  const int64_t num_bytes = num_elements * BytesOf(format);
  absl::StatusOr<void*> memory = pool()->Allocate(num_bytes, stream(), what);
  if (absl::IsResourceExhausted(memory.status())) {
    // The pool merges free pieces only when its stream is idle, and unsuitable
    // pieces count as full until they are trimmed.
    RETURN_IF_ERROR(Wait("reserving its memory pool"));
    RETURN_IF_ERROR(pool()->Trim());
    memory = pool()->Allocate(num_bytes, stream(), what);
  }
  RETURN_IF_ERROR(Explain(memory.status()));
  taken_.insert(*memory);
  return memory;
}

absl::Status PartitionedRank::FreeMemory(void* memory) {
  RETURN_IF_ERROR(MakeCurrent());
  if (taken_.erase(memory) == 0) {
    return absl::InternalError(
        absl::StrCat(name(), ": memory is freed that was not allocated"));
  }
  return pool()->Free(memory, stream());
}

absl::StatusOr<RankEventPtr> PartitionedRank::Record(
    cudaStream_t stream) const {
  ASSIGN_OR_RETURN(auto event,
                   RecordedEvent::Record(execution_.events_, stream));
  return std::make_shared<CudaRankEvent>(std::move(event));
}

absl::StatusOr<RankEventPtr> PartitionedRank::Now() {
  RETURN_IF_ERROR(MakeCurrent());
  return Record(stream());
}

absl::Status PartitionedRank::WaitOn(cudaStream_t stream,
                                     const RankEventPtr& event) const {
  if (event == nullptr) return absl::OkStatus();
  return CudaStatus(cudaStreamWaitEvent(stream, EventOf(event), 0),
                    absl::StrCat(name(), ": waiting for an event"));
}

absl::Status PartitionedRank::WaitForEvent(const RankEventPtr& event) {
  RETURN_IF_ERROR(MakeCurrent());
  return WaitOn(stream(), event);
}

absl::StatusOr<PartitionedRank::Channel*> PartitionedRank::ChannelTo(int rank) {
  Channel& channel = channels_[rank];
  if (channel.stream.get() != nullptr) return &channel;
  ASSIGN_OR_RETURN(channel.stream, execution_.parts_->copies().MakeStream());
  ASSIGN_OR_RETURN(channel.scratch,
                   Allocate(kRoundWorkspaceBytes, "rounding messages"));
  return &channel;
}

absl::Status PartitionedRank::Copy(const Channel& channel,
                                   absl::Span<const CopyPiece> pieces,
                                   int64_t num_elements, ElementFormat format,
                                   const LinkSpec& link, int bits) const {
  Launch launch;
  launch.stream = channel.stream.get();
  launch.format = format;
  launch.num_multiprocessors =
      execution_.parts_->copies().num_multiprocessors();
  launch.workspace = channel.scratch.get();
  launch.workspace_bytes = kRoundWorkspaceBytes;
  const std::string what = absl::StrCat(name(), ": sending a message");
  const int64_t num_bytes = num_elements * BytesOf(format);
  const bool at_once = link.latency_seconds == 0 && link.bytes_per_second == 0;
  if (bits > 0) {
    // It transfers fewer bytes than it writes: first the time, then the values.
    const double seconds = link.SecondsOf(
        TransferBytes(format, bits, num_elements * std::ssize(pieces)));
    if (seconds > 0) {
      RETURN_IF_ERROR(CudaStatus(
          LaunchPacedCopy(launch, {.latency_seconds = seconds}), what));
    }
    for (const CopyPiece& piece : pieces) {
      RETURN_IF_ERROR(CudaStatus(
          LaunchRoundToBits(launch, bits, piece.from, piece.into, num_elements),
          what));
    }
    return absl::OkStatus();
  }
  double latency = link.latency_seconds;
  for (const CopyPiece& piece : pieces) {
    const cudaError_t launched =
        at_once ? cudaMemcpyAsync(piece.into, piece.from, num_bytes,
                                  cudaMemcpyDeviceToDevice, launch.stream)
                : LaunchPacedCopy(launch,
                                  {.from = piece.from,
                                   .to = piece.into,
                                   .num_bytes = num_bytes,
                                   .latency_seconds = latency,
                                   .bytes_per_second = link.bytes_per_second});
    RETURN_IF_ERROR(CudaStatus(launched, what));
    latency = 0;  // once per message, not per piece
  }
  return absl::OkStatus();
}

absl::StatusOr<CopyEvents> PartitionedRank::Send(
    RankDevice* to, absl::Span<const CopyPiece> pieces, int64_t num_elements,
    ElementFormat format, const LinkSpec& link, int bits,
    const RankEventPtr& ready) {
  RETURN_IF_ERROR(MakeCurrent());
  const int rank = static_cast<PartitionedRank*>(to)->tools().rank;
  ASSIGN_OR_RETURN(const Channel* channel, ChannelTo(rank));
  RETURN_IF_ERROR(WaitOn(channel->stream.get(), ready));
  CopyEvents copy;
  ASSIGN_OR_RETURN(copy.begin, Record(channel->stream.get()));
  RETURN_IF_ERROR(Copy(*channel, pieces, num_elements, format, link, bits));
  ASSIGN_OR_RETURN(copy.end, Record(channel->stream.get()));
  return copy;
}

absl::StatusOr<cudaStream_t> PartitionedRank::HostStream(Stream* stream) const {
  if (stream->get() == nullptr) {
    ASSIGN_OR_RETURN(*stream, execution_.parts_->copies().MakeStream());
  }
  return stream->get();
}

absl::StatusOr<CopyEvents> PartitionedRank::HostCopy(cudaStream_t stream,
                                                     void* to, const void* from,
                                                     int64_t num_bytes) const {
  CopyEvents copy;
  ASSIGN_OR_RETURN(copy.begin, Record(stream));
  RETURN_IF_ERROR(CudaStatus(
      cudaMemcpyAsync(to, from, num_bytes, cudaMemcpyDefault, stream),
      absl::StrCat(name(), ": a copy to or from the host")));
  ASSIGN_OR_RETURN(copy.end, Record(stream));
  return copy;
}

absl::StatusOr<CopyEvents> PartitionedRank::ToHost(int64_t slot,
                                                   int64_t num_elements,
                                                   ElementFormat format,
                                                   const RankEventPtr& ready,
                                                   const void* from) {
  RETURN_IF_ERROR(MakeCurrent());
  ASSIGN_OR_RETURN(cudaStream_t stream, HostStream(&to_host_));
  const int64_t num_bytes = num_elements * BytesOf(format);
  Slot& kept = slots_[slot];
  if (kept.block.num_bytes != num_bytes) {
    if (kept.block.num_bytes > 0) {
      return absl::InternalError(
          absl::StrCat(name(), ": slot ", slot, " is reused for another size"));
    }
    ASSIGN_OR_RETURN(kept.block, execution_.host_.Allocate(
                                     num_bytes, "offloaded activations"));
  }
  RETURN_IF_ERROR(WaitOn(stream, kept.read));
  RETURN_IF_ERROR(WaitOn(stream, ready));
  ASSIGN_OR_RETURN(CopyEvents copy,
                   HostCopy(stream, kept.block.memory.get(), from, num_bytes));
  kept.kept = copy.end;
  return copy;
}

absl::StatusOr<CopyEvents> PartitionedRank::FromHost(
    int64_t slot, int64_t num_elements, ElementFormat format,
    absl::Span<const RankEventPtr> ready, void* into) {
  RETURN_IF_ERROR(MakeCurrent());
  const auto found = slots_.find(slot);
  const int64_t num_bytes = num_elements * BytesOf(format);
  if (found == slots_.end() || found->second.kept == nullptr ||
      found->second.block.num_bytes != num_bytes) {
    return absl::InternalError(absl::StrCat(
        name(), ": slot ", slot, " is reloaded, but was not offloaded"));
  }
  Slot& kept = found->second;
  ASSIGN_OR_RETURN(cudaStream_t stream, HostStream(&from_host_));
  RETURN_IF_ERROR(WaitOn(stream, kept.kept));
  for (const RankEventPtr& event : ready) {
    RETURN_IF_ERROR(WaitOn(stream, event));
  }
  ASSIGN_OR_RETURN(CopyEvents copy,
                   HostCopy(stream, into, kept.block.memory.get(), num_bytes));
  kept.read = copy.end;
  return copy;
}

absl::Status PartitionedRank::Finish() {
  RETURN_IF_ERROR(MakeCurrent());
  RETURN_IF_ERROR(Wait("the end of its passes"));
  for (const auto& [to, channel] : channels_) {
    RETURN_IF_ERROR(
        WaitFor(channel.stream.get(), timeout_seconds(),
                absl::StrCat(name(), ", its messages to rank ", to)));
  }
  for (const Stream* stream : {&to_host_, &from_host_}) {
    if (stream->get() == nullptr) continue;
    RETURN_IF_ERROR(
        WaitFor(stream->get(), timeout_seconds(),
                absl::StrCat(name(), ", its copies to or from ", "the host")));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> PartitionedRank::SecondsOf(const RankEventPtr& event) {
  if (event == nullptr) return 0.0;
  RETURN_IF_ERROR(MakeCurrent());
  const std::string what = absl::StrCat(name(), ": the time of an event");
  RETURN_IF_ERROR(WaitFor(EventOf(event), timeout_seconds(), what));
  if (execution_.started_ == nullptr) return 0.0;
  float milliseconds = 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaEventElapsedTime(&milliseconds, execution_.started_->get(),
                                      EventOf(event)),
                 what));
  return std::max(1e-3 * milliseconds, 0.0);
}

bool PartitionedRank::HasPassed(const RankEventPtr& event) {
  if (event == nullptr || !MakeCurrent().ok()) return true;
  return static_cast<const CudaRankEvent&>(*event).event->HasPassed();
}

}  // namespace weir::calibrate
