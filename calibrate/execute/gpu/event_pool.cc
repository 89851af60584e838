// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/gpu/event_pool.h"

#include <utility>

#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {

absl::StatusOr<std::shared_ptr<EventPool>> EventPool::Create(int num_events) {
  std::shared_ptr<EventPool> pool(new EventPool);
  RETURN_IF_ERROR(pool->Add(num_events));
  return pool;
}

absl::Status EventPool::Add(int num_events) {
  for (int i = 0; i < num_events; ++i) {
    ASSIGN_OR_RETURN(Event event, MakeEvent());
    free_.push_back(std::move(event));
  }
  return absl::OkStatus();
}

absl::StatusOr<Event> EventPool::Acquire() {
  constexpr int kMore = 64;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (free_.empty()) RETURN_IF_ERROR(Add(kMore));
  Event event = std::move(free_.back());
  free_.pop_back();
  return event;
}

void EventPool::Release(Event event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(std::move(event));
}

absl::StatusOr<std::unique_ptr<RecordedEvent>> RecordedEvent::Record(
    std::shared_ptr<EventPool> pool, cudaStream_t stream) {
  ASSIGN_OR_RETURN(Event event, pool->Acquire());
  std::unique_ptr<RecordedEvent> recorded(
      new RecordedEvent(std::move(pool), std::move(event)));
  RETURN_IF_ERROR(CudaStatus(cudaEventRecord(recorded->get(), stream),
                             "recording an event"));
  return recorded;
}

bool RecordedEvent::HasPassed() const {
  const cudaError_t code = cudaEventQuery(event_.get());
  if (code == cudaErrorNotReady) cudaGetLastError();
  return code != cudaErrorNotReady;
}

}  // namespace weir::calibrate
