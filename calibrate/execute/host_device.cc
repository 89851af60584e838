// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/host_device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "calibrate/execute/host_blocks.h"
#include "calibrate/execute/optimizer_math.h"
#include "calibrate/execute/reference/reference_ops.h"

namespace weir::calibrate {
namespace {

using Clock = std::chrono::steady_clock;

struct HostRankEvent : RankEvent {
  explicit HostRankEvent(double at) : seconds(at) {}
  double seconds;  // on the device's clock
};

double At(const RankEventPtr& event) {
  if (event == nullptr) return -std::numeric_limits<double>::infinity();
  return static_cast<const HostRankEvent&>(*event).seconds;
}

RankEventPtr EventAt(double seconds) {
  return std::make_shared<HostRankEvent>(seconds);
}

// State shared by all ranks. With HostDeviceOptions::fake_seconds, the clock
// advances only when an operation runs.
struct Shared {
  const ExecutionPlan& plan;
  HostDeviceOptions options;
  Clock::time_point origin = Clock::now();
  double fake_seconds = 0;
  double started = 0;  // at the last Start()
  std::atomic<bool> cancelled = false;

  double Now() const {
    if (options.fake_seconds) return fake_seconds;
    return std::chrono::duration<double>(Clock::now() - origin).count();
  }
};

absl::Span<double> AsDoubles(const void* memory, int64_t num_elements) {
  return {static_cast<double*>(const_cast<void*>(memory)),
          static_cast<size_t>(num_elements)};
}

// Indices of a stage's weights, gradients and state.
struct StageIndices {
  explicit StageIndices(const StageProgram& program) {
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const BufferClass of = program.buffers[i].buffer_class;
      if (of == BufferClass::kWeights) weights = i;
      if (of == BufferClass::kGradients) gradients = i;
      if (of == BufferClass::kOptimizerState) state = i;
    }
    num_elements = program.buffers[weights].num_elements;
  }
  size_t weights = 0, gradients = 0, state = 0;
  int64_t num_elements = 0;
};

class HostRank : public RankDevice {
 public:
  HostRank(Shared* shared, int rank)
      : shared_(*shared),
        rank_(rank),
        link_free_(shared->plan.schedule.num_ranks, 0) {
    for (const auto& program : shared->plan.programs) {
      indices_.emplace_back(*program);
    }
  }

  absl::StatusOr<void*> AllocateMemory(int64_t num_elements,
                                       ElementFormat /*format*/,
                                       absl::string_view /*what*/) override {
    return blocks_.Allocate(num_elements);
  }
  absl::Status FreeMemory(void* memory) override {
    return blocks_.Free(memory);
  }

  void* ElementAt(void* memory, int64_t index,
                  ElementFormat /*format*/) override {
    return static_cast<double*>(memory) + index;
  }

  absl::Status Run(int stage, ProgramPass pass, int index, uint64_t seed,
                   const Buffers& buffers) override;
  absl::Status Update(int stage, const StageOptimizer& optimizer, int step,
                      const void* old_weights, const Buffers& buffers) override;
  absl::Status Estimate(int stage, const StageOptimizer& optimizer, int step,
                        double distance, const void* weights,
                        const void* average, const Buffers& buffers,
                        void* estimate) override;

  absl::Status Average(int stage, double decay, const void* old_weights,
                       const void* new_weights, void* average) override {
    const int64_t n = indices_[stage].num_elements;
    MoveAverage(decay, AsDoubles(old_weights, n), AsDoubles(new_weights, n),
                AsDoubles(average, n));
    return absl::OkStatus();
  }
  absl::Status Add(int64_t num_elements, const void* addend,
                   void* sum) override {
    const auto from = AsDoubles(addend, num_elements);
    const auto into = AsDoubles(sum, num_elements);
    for (size_t i = 0; i < from.size(); ++i) into[i] += from[i];
    return absl::OkStatus();
  }
  absl::Status Clear(int64_t num_elements, ElementFormat /*format*/,
                     void* memory) override {
    const auto values = AsDoubles(memory, num_elements);
    std::fill(values.begin(), values.end(), 0);
    return absl::OkStatus();
  }

  absl::Status Upload(absl::Span<const double> values, ElementFormat /*format*/,
                      void* to) override {
    std::copy(values.begin(), values.end(), static_cast<double*>(to));
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<double>> Download(
      const void* from, int64_t num_elements,
      ElementFormat /*format*/) override {
    const auto values = AsDoubles(from, num_elements);
    return std::vector<double>(values.begin(), values.end());
  }

  absl::StatusOr<RankEventPtr> Now() override { return EventAt(shared_.Now()); }
  absl::Status WaitForEvent(const RankEventPtr& event) override {
    return SleepUntil(At(event));
  }

  absl::StatusOr<CopyEvents> Send(RankDevice* to,
                                  absl::Span<const CopyPiece> pieces,
                                  int64_t num_elements, ElementFormat format,
                                  const LinkSpec& link, int bits,
                                  const RankEventPtr& ready) override;
  absl::StatusOr<CopyEvents> ToHost(int64_t slot, int64_t num_elements,
                                    ElementFormat /*format*/,
                                    const RankEventPtr& ready,
                                    const void* from) override {
    const auto values = AsDoubles(from, num_elements);
    slots_[slot].assign(values.begin(), values.end());
    return AtOnce(ready);
  }
  absl::StatusOr<CopyEvents> FromHost(int64_t slot, int64_t num_elements,
                                      ElementFormat /*format*/,
                                      absl::Span<const RankEventPtr> ready,
                                      void* into) override;

  absl::Status Finish() override { return SleepUntil(last_copy_); }
  absl::StatusOr<double> SecondsOf(const RankEventPtr& event) override {
    return std::max(At(event) - shared_.started, 0.0);
  }
  bool HasPassed(const RankEventPtr& event) override {
    return !shared_.options.concurrent || At(event) <= shared_.Now();
  }

  absl::StatusOr<double> PeakBytes() override { return 0; }
  absl::Status ResetPeak() override { return absl::OkStatus(); }

 private:
  absl::Status SleepUntil(double seconds) {
    if (!shared_.options.concurrent) return absl::OkStatus();
    const double most = shared_.Now() + shared_.plan.timeout_seconds;
    const double until = std::min(seconds, most);
    constexpr double kLookEvery = 0.01;
    while (true) {
      const double now = shared_.Now();
      if (now >= until) break;
      if (shared_.cancelled)
        return absl::CancelledError("the replay was stopped");
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::min(until - now, kLookEvery)));
    }
    if (seconds <= most) return absl::OkStatus();
    return absl::DeadlineExceededError(absl::StrCat(
        "rank ", rank_, " would wait ",
        seconds - most + shared_.plan.timeout_seconds, " s for a transfer"));
  }
  CopyEvents AtOnce(const RankEventPtr& ready) const {
    const RankEventPtr at = EventAt(std::max(At(ready), shared_.Now()));
    return {at, at};
  }
  // First moments follow the master weights in the state.
  Moments MomentsOf(const StageIndices& at, const Buffers& buffers) const {
    const auto state = AsDoubles(buffers[at.state], 3 * at.num_elements);
    return {state.subspan(at.num_elements, at.num_elements),
            state.subspan(2 * at.num_elements, at.num_elements)};
  }
  void FakeWork(int stage, ProgramPass pass) {
    if (shared_.options.fake_seconds) {
      shared_.fake_seconds += shared_.options.fake_seconds(stage, pass);
    }
  }

  Shared& shared_;
  const int rank_;
  std::vector<StageIndices> indices_;
  HostBlocks blocks_;
  std::vector<double> link_free_;  // [to]
  std::unordered_map<int64_t, std::vector<double>> slots_;
  double last_copy_ = 0;
};

absl::Status HostRank::Run(int stage, ProgramPass pass, int index,
                           uint64_t seed, const Buffers& buffers) {
  const StageProgram& program = *shared_.plan.programs[stage];
  const StageOp& op = program.ops(pass)[index];
  std::vector<const double*> inputs;
  std::vector<double*> outputs;
  std::string missing;
  const auto at = [&](const TensorView& view) -> double* {
    if (!view.present()) return nullptr;
    auto* base = static_cast<double*>(buffers[view.buffer]);
    if (base == nullptr) {
      missing = program.buffers[view.buffer].name;
      return nullptr;
    }
    return base + view.offset;
  };
  for (const TensorView& view : op.inputs) inputs.push_back(at(view));
  for (const TensorView& view : op.outputs) outputs.push_back(at(view));
  if (!missing.empty()) {
    return absl::InternalError(absl::StrCat(op.name, " of stage ", stage,
                                            ": the buffer ", missing,
                                            " is missing when it is needed"));
  }
  if (index == 0) FakeWork(stage, pass);
  if (op.dropout == 0) {
    RunReference(op, inputs, outputs);
  } else {
    StageOp own = op;
    own.seed ^= seed;
    RunReference(own, inputs, outputs);
  }
  return absl::OkStatus();
}

absl::Status HostRank::Update(int stage, const StageOptimizer& optimizer,
                              int step, const void* old_weights,
                              const Buffers& buffers) {
  const StageIndices& at = indices_[stage];
  const int64_t n = at.num_elements;
  FakeWork(stage, ProgramPass::kOptimizer);
  const auto updated = AsDoubles(buffers[at.weights], n);
  StepWeights(optimizer, step, AsDoubles(old_weights, n),
              MomentsOf(at, buffers), AsDoubles(buffers[at.gradients], n),
              updated);
  std::copy(updated.begin(), updated.end(),
            static_cast<double*>(buffers[at.state]));
  return absl::OkStatus();
}

absl::Status HostRank::Estimate(int stage, const StageOptimizer& optimizer,
                                int step, double distance, const void* weights,
                                const void* average, const Buffers& buffers,
                                void* estimate) {
  const StageIndices& at = indices_[stage];
  const int64_t n = at.num_elements;
  if (average != nullptr) {
    EstimateByAverage(distance, AsDoubles(weights, n), AsDoubles(average, n),
                      AsDoubles(estimate, n));
  } else {
    EstimateWeights(optimizer, step, distance, AsDoubles(weights, n),
                    MomentsOf(at, buffers), AsDoubles(estimate, n));
  }
  return absl::OkStatus();
}

absl::StatusOr<CopyEvents> HostRank::Send(RankDevice* to,
                                          absl::Span<const CopyPiece> pieces,
                                          int64_t num_elements,
                                          ElementFormat format,
                                          const LinkSpec& link, int bits,
                                          const RankEventPtr& ready) {
  for (const CopyPiece& piece : pieces) {
    const auto from = AsDoubles(piece.from, num_elements);
    const auto into = AsDoubles(piece.into, num_elements);
    std::copy(from.begin(), from.end(), into.begin());
    if (bits > 0) RoundToBits(bits, into);
  }
  if (!shared_.options.concurrent) return AtOnce(ready);
  const double bytes =
      TransferBytes(format, bits, num_elements * std::ssize(pieces));
  double& free = link_free_[static_cast<HostRank*>(to)->rank_];
  const double begin = std::max(At(ready), free);
  free = begin + link.SecondsOf(bytes) - link.latency_seconds;
  const double end = begin + link.SecondsOf(bytes);
  last_copy_ = std::max(last_copy_, end);
  return CopyEvents{EventAt(begin), EventAt(end)};
}

absl::StatusOr<CopyEvents> HostRank::FromHost(
    int64_t slot, int64_t num_elements, ElementFormat /*format*/,
    absl::Span<const RankEventPtr> ready, void* into) {
  const auto kept = slots_.find(slot);
  if (kept == slots_.end() || std::ssize(kept->second) != num_elements) {
    return absl::InternalError(
        absl::StrCat("slot ", slot, " is reloaded, but was not offloaded"));
  }
  std::copy(kept->second.begin(), kept->second.end(),
            static_cast<double*>(into));
  slots_.erase(kept);
  RankEventPtr last;
  for (const RankEventPtr& event : ready) {
    if (At(event) > At(last)) last = event;
  }
  return AtOnce(last);
}

class HostDevice : public ExecutionDevice {
 public:
  HostDevice(const ExecutionPlan& plan, const HostDeviceOptions& options)
      : shared_{.plan = plan, .options = options} {
    for (int rank = 0; rank < plan.schedule.num_ranks; ++rank) {
      ranks_.push_back(std::make_unique<HostRank>(&shared_, rank));
    }
  }

  RankDevice* rank(int rank) override { return ranks_[rank].get(); }
  bool concurrent() const override { return shared_.options.concurrent; }
  absl::Status Start() override {
    shared_.started = shared_.Now();
    shared_.cancelled = false;
    return absl::OkStatus();
  }
  void Cancel() override { shared_.cancelled = true; }
  const Provenance& provenance() const override { return provenance_; }
  std::string description() const override {
    return absl::StrCat("the host in double precision, ", ranks_.size(),
                        shared_.options.concurrent ? " ranks as threads"
                                                   : " ranks one at a time");
  }

 private:
  Shared shared_;
  std::vector<std::unique_ptr<HostRank>> ranks_;
  Provenance provenance_;
};

}  // namespace

std::unique_ptr<ExecutionDevice> MakeHostDevice(
    const ExecutionPlan& plan, const HostDeviceOptions& options) {
  return std::make_unique<HostDevice>(plan, options);
}

}  // namespace weir::calibrate
