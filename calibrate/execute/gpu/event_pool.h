// SPDX-License-Identifier: Apache-2.0
// A pool of events that are created in advance and reused. Errors are those of
// calibrate/gpu/errors.h.
#ifndef WEIR_CALIBRATE_EXECUTE_GPU_EVENT_POOL_H_
#define WEIR_CALIBRATE_EXECUTE_GPU_EVENT_POOL_H_

#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/gpu/handles.h"

namespace weir::calibrate {

// Thread-safe.
class EventPool {
 public:
  static absl::StatusOr<std::shared_ptr<EventPool>> Create(int num_events);

  // Returns a free event; creates some new ones if there is none.
  absl::StatusOr<Event> Acquire();
  void Release(Event event);

 private:
  EventPool() = default;
  absl::Status Add(int num_events);

  std::mutex mutex_;
  std::vector<Event> free_;
};

// An event recorded on a stream; returns to its pool on destruction.
class RecordedEvent {
 public:
  static absl::StatusOr<std::unique_ptr<RecordedEvent>> Record(
      std::shared_ptr<EventPool> pool, cudaStream_t stream);
  ~RecordedEvent() { pool_->Release(std::move(event_)); }
  RecordedEvent(const RecordedEvent&) = delete;
  RecordedEvent& operator=(const RecordedEvent&) = delete;

  cudaEvent_t get() const { return event_.get(); }
  // Never waits. Errors count as passed and are reported by the next wait.
  bool HasPassed() const;

 private:
  RecordedEvent(std::shared_ptr<EventPool> pool, Event event)
      : pool_(std::move(pool)), event_(std::move(event)) {}
  std::shared_ptr<EventPool> pool_;
  Event event_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_GPU_EVENT_POOL_H_
