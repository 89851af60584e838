// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/logical_device.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"

namespace weir::calibrate {
namespace {

// An event `seconds` after the last of `after`, or later than it by the
// device's time from `begin` to `end`.
struct LogicalRankEvent : RankEvent {
  std::vector<std::shared_ptr<LogicalRankEvent>> after;
  RankEventPtr begin, end;  // device events; null: use `seconds`
  RankDevice* device = nullptr;
  double seconds = 0;
  RankEventPtr passed;  // device event
  double at = -1;       // negative: not known yet
};
using LogicalPtr = std::shared_ptr<LogicalRankEvent>;

LogicalPtr Of(const RankEventPtr& event) {
  return std::const_pointer_cast<LogicalRankEvent>(
      std::static_pointer_cast<const LogicalRankEvent>(event));
}

RankEventPtr Inner(const RankEventPtr& event) {
  return event == nullptr ? nullptr : Of(event)->passed;
}

struct LogicalShared {
  const ExecutionPlan& plan;
  std::vector<LogicalPtr> events;     // since Start(), in order of creation
  std::vector<LogicalPtr> link_free;  // [from x num_ranks + to]
};

class LogicalRank : public RankDevice {
 public:
  LogicalRank(LogicalShared* shared, int rank, RankDevice* device)
      : shared_(*shared), rank_(rank), device_(device) {}

  void Restart() {
    now_ = to_host_ = from_host_ = nullptr;
    begin_ = nullptr;
    works_ = false;
  }

  absl::StatusOr<void*> AllocateMemory(int64_t num_elements,
                                       ElementFormat format,
                                       absl::string_view what) override {
    return device_->AllocateMemory(num_elements, format, what);
  }
  absl::Status FreeMemory(void* memory) override {
    return device_->FreeMemory(memory);
  }
  void* ElementAt(void* memory, int64_t index, ElementFormat format) override {
    return device_->ElementAt(memory, index, format);
  }
  absl::Status Run(int stage, ProgramPass pass, int op, uint64_t seed,
                   const Buffers& buffers) override {
    RETURN_IF_ERROR(Work());
    return device_->Run(stage, pass, op, seed, buffers);
  }
  absl::Status Update(int stage, const StageOptimizer& optimizer, int step,
                      const void* old_weights,
                      const Buffers& buffers) override {
    RETURN_IF_ERROR(Work());
    return device_->Update(stage, optimizer, step, old_weights, buffers);
  }
  absl::Status Estimate(int stage, const StageOptimizer& optimizer, int step,
                        double distance, const void* weights,
                        const void* average, const Buffers& buffers,
                        void* estimate) override {
    RETURN_IF_ERROR(Work());
    return device_->Estimate(stage, optimizer, step, distance, weights, average,
                             buffers, estimate);
  }
  absl::Status Average(int stage, double decay, const void* old_weights,
                       const void* new_weights, void* average) override {
    RETURN_IF_ERROR(Work());
    return device_->Average(stage, decay, old_weights, new_weights, average);
  }
  absl::Status Add(int64_t num_elements, const void* addend,
                   void* sum) override {
    RETURN_IF_ERROR(Work());
    return device_->Add(num_elements, addend, sum);
  }
  absl::Status Clear(int64_t num_elements, ElementFormat format,
                     void* memory) override {
    RETURN_IF_ERROR(Work());
    return device_->Clear(num_elements, format, memory);
  }
  absl::Status Upload(absl::Span<const double> values, ElementFormat format,
                      void* to) override {
    return device_->Upload(values, format, to);
  }
  absl::StatusOr<std::vector<double>> Download(const void* from,
                                               int64_t num_elements,
                                               ElementFormat format) override {
    return device_->Download(from, num_elements, format);
  }

  absl::StatusOr<RankEventPtr> Now() override {
    RETURN_IF_ERROR(Advance());
    return RankEventPtr(now_);
  }
  absl::Status WaitForEvent(const RankEventPtr& event) override {
    RETURN_IF_ERROR(device_->WaitForEvent(Inner(event)));
    RETURN_IF_ERROR(Advance());
    LogicalPtr joined = Add({now_, Of(event)});
    ASSIGN_OR_RETURN(joined->passed, device_->Now());
    now_ = std::move(joined);
    return absl::OkStatus();
  }

  absl::StatusOr<CopyEvents> Send(RankDevice* to,
                                  absl::Span<const CopyPiece> pieces,
                                  int64_t num_elements, ElementFormat format,
                                  const LinkSpec& link, int bits,
                                  const RankEventPtr& ready) override {
    auto* const other = static_cast<LogicalRank*>(to);
    ASSIGN_OR_RETURN(const CopyEvents copy,
                     device_->Send(other->device_, pieces, num_elements, format,
                                   link, bits, Inner(ready)));
    LogicalPtr& free = shared_.link_free[static_cast<size_t>(rank_) *
                                             shared_.plan.schedule.num_ranks +
                                         other->rank_];
    const double bytes =
        TransferBytes(format, bits, num_elements * std::ssize(pieces));
    const double seconds = link.SecondsOf(bytes);
    const CopyEvents copied = Copied({Of(ready), free}, seconds, copy, &free);
    // The latency of the next message overlaps with the bytes of this one.
    free = Add({Of(copied.begin)});
    free->passed = copy.begin;
    free->seconds = seconds - link.latency_seconds;
    return copied;
  }
  absl::StatusOr<CopyEvents> ToHost(int64_t slot, int64_t num_elements,
                                    ElementFormat format,
                                    const RankEventPtr& ready,
                                    const void* from) override {
    ASSIGN_OR_RETURN(
        const CopyEvents copy,
        device_->ToHost(slot, num_elements, format, Inner(ready), from));
    return Copied({Of(ready), to_host_}, -1, copy, &to_host_);
  }
  absl::StatusOr<CopyEvents> FromHost(int64_t slot, int64_t num_elements,
                                      ElementFormat format,
                                      absl::Span<const RankEventPtr> ready,
                                      void* into) override {
    std::vector<RankEventPtr> inner;
    std::vector<LogicalPtr> after = {from_host_};
    for (const RankEventPtr& event : ready) {
      inner.push_back(Inner(event));
      after.push_back(Of(event));
    }
    ASSIGN_OR_RETURN(
        const CopyEvents copy,
        device_->FromHost(slot, num_elements, format, inner, into));
    return Copied(std::move(after), -1, copy, &from_host_);
  }

  absl::Status Finish() override { return device_->Finish(); }
  absl::StatusOr<double> SecondsOf(const RankEventPtr& event) override {
    if (event == nullptr) return 0;
    RETURN_IF_ERROR(Resolve());
    return std::max(Of(event)->at, 0.0);
  }
  bool HasPassed(const RankEventPtr& event) override {
    return device_->HasPassed(Inner(event));
  }
  absl::StatusOr<double> PeakBytes() override { return device_->PeakBytes(); }
  absl::Status ResetPeak() override { return device_->ResetPeak(); }

 private:
  LogicalPtr Add(std::vector<LogicalPtr> after) {
    auto event = std::make_shared<LogicalRankEvent>();
    for (LogicalPtr& one : after) {
      if (one != nullptr) event->after.push_back(std::move(one));
    }
    event->device = device_;
    shared_.events.push_back(event);
    return event;
  }

  // Starts timing at the first operation: the time since this rank's last event
  // includes work of other ranks.
  absl::Status Work() {
    if (works_) return absl::OkStatus();
    works_ = true;
    ASSIGN_OR_RETURN(begin_, device_->Now());
    return absl::OkStatus();
  }
  absl::Status Advance() {
    if (now_ != nullptr && !works_) return absl::OkStatus();
    LogicalPtr next = Add({now_});
    ASSIGN_OR_RETURN(next->passed, device_->Now());
    if (works_) {
      next->begin = begin_;
      next->end = next->passed;
    }
    works_ = false;
    now_ = std::move(next);
    return absl::OkStatus();
  }

  // Adds the events of a copy. Negative `seconds`: the device's own time.
  CopyEvents Copied(std::vector<LogicalPtr> after, double seconds,
                    const CopyEvents& copy, LogicalPtr* channel) {
    const LogicalPtr begin = Add(std::move(after));
    begin->passed = copy.begin;
    const LogicalPtr end = Add({begin});
    end->passed = copy.end;
    if (seconds >= 0) {
      end->seconds = seconds;
    } else {
      end->begin = copy.begin;
      end->end = copy.end;
    }
    *channel = end;
    return {begin, end};
  }

  absl::Status Resolve() {
    for (const LogicalPtr& event : shared_.events) {
      double at = 0;
      for (const LogicalPtr& before : event->after) {
        at = std::max(at, before->at);
      }
      double seconds = event->seconds;
      if (event->end != nullptr) {
        ASSIGN_OR_RETURN(const double begin,
                         event->device->SecondsOf(event->begin));
        ASSIGN_OR_RETURN(const double end,
                         event->device->SecondsOf(event->end));
        seconds = std::max(end - begin, 0.0);
      }
      event->at = at + seconds;
      event->after.clear();
      event->begin = event->end = nullptr;
    }
    shared_.events.clear();
    return absl::OkStatus();
  }

  LogicalShared& shared_;
  const int rank_;
  RankDevice* const device_;
  LogicalPtr now_, to_host_, from_host_;
  RankEventPtr begin_;
  bool works_ = false;
};

class LogicalDevice : public ExecutionDevice {
 public:
  LogicalDevice(const ExecutionPlan& plan, ExecutionDevice* device)
      : device_(*device), shared_{plan, {}, {}} {
    for (int rank = 0; rank < plan.schedule.num_ranks; ++rank) {
      ranks_.push_back(
          std::make_unique<LogicalRank>(&shared_, rank, device->rank(rank)));
    }
    Restart();
  }
  ~LogicalDevice() override { Forget(); }
  RankDevice* rank(int rank) override { return ranks_[rank].get(); }
  bool concurrent() const override { return false; }
  absl::Status Start() override {
    Restart();
    return device_.Start();
  }
  void Cancel() override { device_.Cancel(); }
  const Provenance& provenance() const override { return device_.provenance(); }
  std::string description() const override { return device_.description(); }

 private:
  // Clears unresolved events, whose chains would be destroyed recursively.
  void Forget() {
    for (const LogicalPtr& event : shared_.events) event->after.clear();
    shared_.events.clear();
  }
  void Restart() {
    const size_t num_ranks = ranks_.size();
    Forget();
    shared_.link_free.assign(num_ranks * num_ranks, nullptr);
    for (const auto& rank : ranks_) rank->Restart();
  }

  ExecutionDevice& device_;
  LogicalShared shared_;
  std::vector<std::unique_ptr<LogicalRank>> ranks_;
};

}  // namespace

std::unique_ptr<ExecutionDevice> MakeLogicalDevice(const ExecutionPlan& plan,
                                                   ExecutionDevice* device) {
  return std::make_unique<LogicalDevice>(plan, device);
}

}  // namespace weir::calibrate
