// SPDX-License-Identifier: Apache-2.0
// A queue of timers by end time. GPUs that do the same end together and are
// started one after another: consecutive tasks with equal times share an entry
// of the heap, which thus has an entry per time, not per task. The heap has
// four children per parent: it is flatter than a binary heap and has fewer
// cache misses.
#ifndef WEIR_SIM_ENGINE_TIMER_QUEUE_H_
#define WEIR_SIM_ENGINE_TIMER_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::sim {

class TimerQueue {
 public:
  struct Timer {
    double seconds;
    int32_t task;
  };

  bool empty() const { return heap_.empty(); }
  // Requires: not empty.
  double first_seconds() const { return heap_.front().seconds; }

  void Push(double seconds, int32_t task) {
    if (last_batch_ != kNone && seconds == last_seconds_) {
      batches_[last_batch_].push_back(task);
      return;
    }
    if (free_.empty()) {
      free_.push_back(static_cast<int32_t>(batches_.size()));
      batches_.emplace_back();
    }
    last_batch_ = free_.back();
    last_seconds_ = seconds;
    free_.pop_back();
    batches_[last_batch_].push_back(task);
    PushPlace({seconds, last_batch_});
  }

  // Moves the tasks of the earliest time, at least one, to the end of `timers`.
  void Pop(std::vector<Timer>* timers) {
    const Place first = heap_.front();
    PopPlace();
    std::vector<int32_t>& batch = batches_[first.batch];
    for (const int32_t task : batch) timers->push_back({first.seconds, task});
    batch.clear();
    free_.push_back(first.batch);
    if (last_batch_ == first.batch) last_batch_ = kNone;
  }

 private:
  static constexpr size_t kChildren = 4;
  static constexpr int32_t kNone = -1;

  struct Place {
    double seconds;
    int32_t batch;
  };

  void PushPlace(Place place) {
    size_t at = heap_.size();
    heap_.push_back(place);
    while (at > 0) {
      const size_t parent = (at - 1) / kChildren;
      if (heap_[parent].seconds <= place.seconds) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = place;
  }

  void PopPlace() {
    const Place last = heap_.back();
    heap_.pop_back();
    const size_t size = heap_.size();
    if (size == 0) return;
    size_t at = 0;
    for (size_t first = 1; first < size; first = kChildren * at + 1) {
      size_t least = first;
      const size_t end = std::min(first + kChildren, size);
      for (size_t child = first + 1; child < end; ++child) {
        least = heap_[child].seconds < heap_[least].seconds ? child : least;
      }
      if (last.seconds <= heap_[least].seconds) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = last;
  }

  std::vector<Place> heap_;
  std::vector<std::vector<int32_t>> batches_;
  std::vector<int32_t> free_;  // batches that are empty
  int32_t last_batch_ = kNone;
  double last_seconds_ = 0;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_ENGINE_TIMER_QUEUE_H_
