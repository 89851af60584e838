// SPDX-License-Identifier: Apache-2.0
// A device that forwards to the host device, from which tests derive faulty
// ones.
#ifndef WEIR_TESTS_CALIBRATE_EXECUTE_WRAPPED_DEVICE_H_
#define WEIR_TESTS_CALIBRATE_EXECUTE_WRAPPED_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "calibrate/execute/host_device.h"

namespace weir::calibrate {

// Forwards to another rank. Tests derive ranks that fail.
class ForwardingRank : public RankDevice {
 public:
  explicit ForwardingRank(RankDevice* rank) : rank_(*rank) {}
  absl::StatusOr<void*> AllocateMemory(int64_t num_elements,
                                       ElementFormat format,
                                       absl::string_view what) override {
    return rank_.AllocateMemory(num_elements, format, what);
  }
  absl::Status FreeMemory(void* memory) override {
    return rank_.FreeMemory(memory);
  }
  void* ElementAt(void* memory, int64_t index, ElementFormat format) override {
    return rank_.ElementAt(memory, index, format);
  }
  absl::Status Run(int stage, ProgramPass pass, int op, uint64_t seed,
                   const Buffers& buffers) override {
    return rank_.Run(stage, pass, op, seed, buffers);
  }
  absl::Status Update(int stage, const StageOptimizer& optimizer, int step,
                      const void* old_weights,
                      const Buffers& buffers) override {
    return rank_.Update(stage, optimizer, step, old_weights, buffers);
  }
  absl::Status Estimate(int stage, const StageOptimizer& optimizer, int step,
                        double distance, const void* weights,
                        const void* average, const Buffers& buffers,
                        void* estimate) override {
    return rank_.Estimate(stage, optimizer, step, distance, weights, average,
                          buffers, estimate);
  }
  absl::Status Average(int stage, double decay, const void* old_weights,
                       const void* new_weights, void* average) override {
    return rank_.Average(stage, decay, old_weights, new_weights, average);
  }
  absl::Status Add(int64_t n, const void* addend, void* sum) override {
    return rank_.Add(n, addend, sum);
  }
  absl::Status Clear(int64_t n, ElementFormat format, void* memory) override {
    return rank_.Clear(n, format, memory);
  }
  absl::Status Upload(absl::Span<const double> values, ElementFormat format,
                      void* to) override {
    return rank_.Upload(values, format, to);
  }
  absl::StatusOr<std::vector<double>> Download(const void* from, int64_t n,
                                               ElementFormat format) override {
    return rank_.Download(from, n, format);
  }
  absl::StatusOr<RankEventPtr> Now() override { return rank_.Now(); }
  absl::Status WaitForEvent(const RankEventPtr& event) override {
    return rank_.WaitForEvent(event);
  }
  absl::StatusOr<CopyEvents> Send(RankDevice* to,
                                  absl::Span<const CopyPiece> pieces, int64_t n,
                                  ElementFormat format, const LinkSpec& link,
                                  int bits,
                                  const RankEventPtr& ready) override {
    return rank_.Send(&static_cast<ForwardingRank*>(to)->rank_, pieces, n,
                      format, link, bits, ready);
  }
  absl::StatusOr<CopyEvents> ToHost(int64_t slot, int64_t n,
                                    ElementFormat format,
                                    const RankEventPtr& ready,
                                    const void* from) override {
    return rank_.ToHost(slot, n, format, ready, from);
  }
  absl::StatusOr<CopyEvents> FromHost(int64_t slot, int64_t n,
                                      ElementFormat format,
                                      absl::Span<const RankEventPtr> ready,
                                      void* into) override {
    return rank_.FromHost(slot, n, format, ready, into);
  }
  absl::Status Finish() override { return rank_.Finish(); }
  absl::StatusOr<double> SecondsOf(const RankEventPtr& event) override {
    return rank_.SecondsOf(event);
  }
  bool HasPassed(const RankEventPtr& event) override {
    return rank_.HasPassed(event);
  }
  absl::StatusOr<double> PeakBytes() override { return rank_.PeakBytes(); }
  absl::Status ResetPeak() override { return rank_.ResetPeak(); }

 private:
  RankDevice& rank_;
};

// A host device whose ranks are of type `Rank`, a ForwardingRank.
template <typename Rank>
class WrappedDevice : public ExecutionDevice {
 public:
  WrappedDevice(const ExecutionPlan& plan, bool threads)
      : device_(MakeHostDevice(plan, {.concurrent = threads})) {
    for (int rank = 0; rank < plan.schedule.num_ranks; ++rank) {
      ranks.push_back(std::make_unique<Rank>(device_->rank(rank)));
    }
  }
  RankDevice* rank(int rank) override { return ranks[rank].get(); }
  bool concurrent() const override { return device_->concurrent(); }
  absl::Status Start() override { return device_->Start(); }
  const Provenance& provenance() const override {
    return device_->provenance();
  }
  std::string description() const override { return device_->description(); }

  std::vector<std::unique_ptr<Rank>> ranks;

 private:
  std::unique_ptr<ExecutionDevice> device_;
};

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_EXECUTE_WRAPPED_DEVICE_H_
