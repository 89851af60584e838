// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/gpu/serial_execution.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/execute/optimizer_math.h"
#include "calibrate/execute/pool_sizes.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {
namespace {

// Fraction of the free memory that is divided among the ranks in advance. A
// rank that needs more takes it from the rest, or from memory that other ranks
// have not used.
constexpr double kSerialPrimedShare = 0.95;

struct SerialRankEvent : RankEvent {
  explicit SerialRankEvent(double at) : seconds(at) {}
  double seconds;  // on the work clock
};

RankEventPtr EventAt(double seconds) {
  return std::make_shared<SerialRankEvent>(seconds);
}

}  // namespace

class SerialRank : public CudaRank {
 public:
  SerialRank(SerialExecution* replay, RankTools tools)
      : CudaRank(std::move(tools)), execution_(*replay) {}
  ~SerialRank() override {
    memory_.reset();
    ClosePool();
  }

  absl::Status Open(int64_t pool_bytes, int64_t primed_bytes) {
    RETURN_IF_ERROR(CudaRank::Open(pool_bytes, primed_bytes));
    memory_ = std::make_unique<SpilledMemory>(pool(), &execution_.host_,
                                              stream(), timeout_seconds());
    return absl::OkStatus();
  }

  absl::StatusOr<void*> AllocateMemory(int64_t num_elements,
                                       ElementFormat format,
                                       absl::string_view what) override {
    RETURN_IF_ERROR(MakeCurrent());
    const int64_t num_bytes = num_elements * BytesOf(format);
    for (bool trimmed = false;;) {
      absl::StatusOr<void*> memory = memory_->Allocate(num_bytes, what);
      if (!absl::IsResourceExhausted(memory.status())) return memory;
      ASSIGN_OR_RETURN(const bool more, execution_.MakeRoom(this, &trimmed));
      if (!more) return OutOfMemory(memory.status());
    }
  }
  absl::Status FreeMemory(void* memory) override {
    RETURN_IF_ERROR(MakeCurrent());
    return memory_->Free(memory);
  }

  absl::StatusOr<RankEventPtr> Now() override {
    RETURN_IF_ERROR(execution_.clock_.End());
    return EventAt(execution_.clock_.seconds());
  }
  // All work is in order on one stream.
  absl::Status WaitForEvent(const RankEventPtr& /*event*/) override {
    return absl::OkStatus();
  }

  absl::StatusOr<CopyEvents> Send(RankDevice* to,
                                  absl::Span<const CopyPiece> pieces,
                                  int64_t num_elements, ElementFormat format,
                                  const LinkSpec& /*link*/, int bits,
                                  const RankEventPtr& ready) override {
    RETURN_IF_ERROR(MakeCurrent());
    RETURN_IF_ERROR(End());
    auto* receiver = static_cast<SerialRank*>(to);
    for (const CopyPiece& piece : pieces) {
      RETURN_IF_ERROR(
          bits > 0
              ? SendRounded(receiver, piece, num_elements, format, bits)
              : SendPiece(*receiver, piece, num_elements * BytesOf(format)));
    }
    return CopyEvents{ready, ready};
  }
  absl::StatusOr<CopyEvents> ToHost(int64_t slot, int64_t num_elements,
                                    ElementFormat format,
                                    const RankEventPtr& /*ready*/,
                                    const void* from) override {
    RETURN_IF_ERROR(MakeCurrent());
    const int64_t num_bytes = num_elements * BytesOf(format);
    ASSIGN_OR_RETURN(void* at, Locate(from));
    ASSIGN_OR_RETURN(
        PinnedBlocks::Block block,
        execution_.host_.Allocate(num_bytes, "offloaded activations"));
    ASSIGN_OR_RETURN(CopyEvents copy,
                     TimedCopy(block.memory.get(), at, num_bytes));
    slots_[slot] = std::move(block);
    return copy;
  }
  absl::StatusOr<CopyEvents> FromHost(int64_t slot, int64_t num_elements,
                                      ElementFormat format,
                                      absl::Span<const RankEventPtr> /*ready*/,
                                      void* into) override {
    RETURN_IF_ERROR(MakeCurrent());
    const int64_t num_bytes = num_elements * BytesOf(format);
    const auto kept = slots_.find(slot);
    if (kept == slots_.end() || kept->second.num_bytes != num_bytes) {
      return absl::InternalError(absl::StrCat(
          name(), ": slot ", slot, " is reloaded, but was not offloaded"));
    }
    ASSIGN_OR_RETURN(void* at, Locate(into));
    ASSIGN_OR_RETURN(CopyEvents copy,
                     TimedCopy(at, kept->second.memory.get(), num_bytes));
    execution_.host_.Free(std::move(kept->second));
    slots_.erase(kept);
    return copy;
  }

  absl::Status Finish() override {
    RETURN_IF_ERROR(execution_.clock_.End());
    return Wait("the end of its passes");
  }
  absl::StatusOr<double> SecondsOf(const RankEventPtr& event) override {
    if (event == nullptr) return 0.0;
    return std::max(static_cast<const SerialRankEvent&>(*event).seconds -
                        execution_.started_,
                    0.0);
  }
  // An event is created when it has passed.
  bool HasPassed(const RankEventPtr& /*event*/) override { return true; }

 protected:
  absl::Status MakeCurrent() override {
    RETURN_IF_ERROR(UseDevice());
    if (execution_.at_work_ == this) return absl::OkStatus();
    RETURN_IF_ERROR(execution_.clock_.End());
    execution_.at_work_ = this;
    last_attended_ = ++execution_.num_attended_;
    for (bool trimmed = false; memory_->is_spilled();) {
      const absl::Status status = memory_->Restore();
      if (status.ok()) break;
      if (!absl::IsResourceExhausted(status)) return Explain(status);
      ASSIGN_OR_RETURN(const bool more, execution_.MakeRoom(this, &trimmed));
      if (!more) return OutOfMemory(status);
    }
    return absl::OkStatus();
  }
  absl::Status Begin(int stage, ProgramPass pass, int num_launches) override {
    if (execution_.clock_.is_running()) return absl::OkStatus();
    return execution_.clock_.Begin(
        stage * int64_t{kNumProgramPasses} + static_cast<int>(pass),
        num_launches,
        stage < 0 ? absl::StrCat(name(), ", its gradients")
                  : absl::StrCat(name(), ", stage ", stage, ", ", Name(pass)));
  }
  absl::Status End() override { return execution_.clock_.End(); }
  absl::StatusOr<void*> Locate(const void* memory) override {
    return memory_->Locate(memory);
  }

 private:
  friend class SerialExecution;
  absl::Status OutOfMemory(const absl::Status& status) const {
    return absl::ResourceExhaustedError(absl::StrCat(
        name(), ": ", status.message(), "; it uses ", memory_->num_bytes(),
        " bytes, and no other rank can be moved to the host"));
  }

  // Each side is on the GPU or on the host.
  absl::Status SendPiece(const SerialRank& receiver, const CopyPiece& piece,
                         int64_t num_bytes) {
    ASSIGN_OR_RETURN(void* from, memory_->Locate(piece.from));
    ASSIGN_OR_RETURN(void* into, receiver.memory_->Locate(piece.into));
    return CudaStatus(
        cudaMemcpyAsync(into, from, num_bytes, cudaMemcpyDefault, stream()),
        absl::StrCat(name(), ": sending a message"));
  }
  absl::Status SendRounded(SerialRank* receiver, const CopyPiece& piece,
                           int64_t num_elements, ElementFormat format,
                           int bits) {
    ASSIGN_OR_RETURN(std::vector<double> values,
                     Download(piece.from, num_elements, format));
    RoundToBits(bits, absl::MakeSpan(values));
    return receiver->Upload(values, format, piece.into);
  }

  absl::StatusOr<CopyEvents> TimedCopy(void* to, const void* from,
                                       int64_t num_bytes) {
    RETURN_IF_ERROR(End());
    const std::string what =
        absl::StrCat(name(), ": a copy to or from the host");
    ASSIGN_OR_RETURN(Stopwatch watch, Stopwatch::Create());
    RETURN_IF_ERROR(execution_.bench_->EnqueueFlush(0));  // hides the launch
    RETURN_IF_ERROR(watch.Start(stream()));
    RETURN_IF_ERROR(CudaStatus(
        cudaMemcpyAsync(to, from, num_bytes, cudaMemcpyDefault, stream()),
        what));
    RETURN_IF_ERROR(watch.Stop(stream()));
    ASSIGN_OR_RETURN(const double seconds,
                     watch.Seconds(timeout_seconds(), what));
    const double now = execution_.clock_.seconds();
    return CopyEvents{EventAt(now), EventAt(now + seconds)};
  }

  SerialExecution& execution_;
  std::unique_ptr<SpilledMemory> memory_;
  std::map<int64_t, PinnedBlocks::Block> slots_;
  int64_t last_attended_ = 0;
};

SerialExecution::~SerialExecution() {
  // Work in flight still uses the members.
  if (bench_ != nullptr && !DeviceIsHung()) {
    bench_->Wait("the end of a replay").IgnoreError();
  }
}

absl::StatusOr<std::unique_ptr<SerialExecution>> SerialExecution::Open(
    const ExecutionPlan& plan, std::unique_ptr<BenchDevice> bench,
    const CudaExecutionOptions& options) {
  std::unique_ptr<SerialExecution> replay(new SerialExecution);
  replay->bench_ = std::move(bench);
  const BenchDevice& device = *replay->bench_;
  replay->provenance_ = ProvenanceOf(device.facts, device.nvml.get());
  ASSIGN_OR_RETURN(replay->events_, EventPool::Create(64));
  ASSIGN_OR_RETURN(replay->clock_, WorkClock::Create(&device));
  std::vector<int> stages(plan.programs.size());
  std::iota(stages.begin(), stages.end(), 0);
  ASSIGN_OR_RETURN(
      replay->executors_,
      StageExecutors::Create(device, plan, stages, device.executor_options(),
                             device.gemms.get(), device.lane(),
                             options.num_candidates > 1));
  ASSIGN_OR_RETURN(const int64_t free_bytes, FreeMemory());
  const std::vector<int64_t> shares =
      DividePoolBytes(plan.predicted_peak_bytes, plan.schedule.num_ranks,
                      kSerialPrimedShare * static_cast<double>(free_bytes));
  for (int rank = 0; rank < plan.schedule.num_ranks; ++rank) {
    RankTools tools;
    tools.plan = &plan;
    tools.rank = rank;
    tools.device = options.device;
    tools.lane = device.lane();
    tools.options = device.executor_options();
    tools.executors = &replay->executors_;
    tools.events = replay->events_;
    auto made = std::make_unique<SerialRank>(replay.get(), std::move(tools));
    const int64_t primed_bytes =
        options.pool_bytes > 0 ? std::min(shares[rank], options.pool_bytes)
                               : shares[rank];
    RETURN_IF_ERROR(made->Open(options.pool_bytes, primed_bytes));
    replay->ranks_.push_back(std::move(made));
  }
  return replay;
}

RankDevice* SerialExecution::rank(int rank) { return ranks_[rank].get(); }

absl::Status SerialExecution::Start() {
  RETURN_IF_ERROR(clock_.End());
  started_ = clock_.seconds();
  return absl::OkStatus();
}

std::string SerialExecution::description() const {
  std::string words = absl::StrCat("one rank at a time on all ",
                                   bench_->facts.num_multiprocessors,
                                   " multiprocessors of ", bench_->facts.name);
  if (clock_.num_late() > 0) {
    absl::StrAppend(
        &words, "; ", clock_.num_late(), " of ", clock_.num_pieces(),
        " actions started on the GPU before all their kernels were launched");
  }
  if (num_spills_ > 0) {
    absl::StrAppend(&words, "; ranks were copied to the host ", num_spills_,
                    " times");
  }
  return words;
}

absl::StatusOr<bool> SerialExecution::MakeRoom(const SerialRank* keep,
                                               bool* trimmed) {
  RETURN_IF_ERROR(clock_.End());
  if (!std::exchange(*trimmed, true)) {
    RETURN_IF_ERROR(bench_->Wait("the freed memory"));
    for (const auto& rank : ranks_) RETURN_IF_ERROR(rank->pool()->Trim());
    return true;
  }
  SerialRank* idle = nullptr;
  for (const auto& rank : ranks_) {
    if (rank.get() == keep || rank->memory_->is_spilled() ||
        rank->memory_->num_bytes() == 0) {
      continue;
    }
    if (idle == nullptr || rank->last_attended_ < idle->last_attended_) {
      idle = rank.get();
    }
  }
  if (idle == nullptr) return false;
  ++num_spills_;
  RETURN_IF_ERROR(idle->memory_->Spill());
  return true;
}

}  // namespace weir::calibrate
