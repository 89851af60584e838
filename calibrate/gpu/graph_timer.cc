// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/graph_timer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {
namespace {

using Clock = std::chrono::steady_clock;

// Longer than a graph takes to launch.
constexpr double kLeadSeconds = 3e-4;
// The driver's launch queue holds about a thousand; below that the host does
// not wait for the device.
constexpr int kQueuedOps = 400;
constexpr double kHostTimingSeconds = 0.02;
// Copies ahead of a launch by stream, in multiples of its time on the host.
constexpr double kStreamLead = 1.5;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GraphTimer>> GraphTimer::Create(
    const BenchDevice* device, Launchable launchable) {
  std::unique_ptr<GraphTimer> timer(new GraphTimer);
  timer->device_ = device;
  timer->launchable_ = std::move(launchable);
  for (Stopwatch& watch : timer->watches_) {
    ASSIGN_OR_RETURN(watch, Stopwatch::Create());
  }
  RETURN_IF_ERROR(timer->WarmUp());
  RETURN_IF_ERROR(timer->TimeHost());
  return timer;
}

// Memory that the batch uses may be freed next.
GraphTimer::~GraphTimer() {
  if (!DeviceIsHung()) Drain().IgnoreError();
}

absl::Status GraphTimer::WarmUp() {
  const int count = std::min(launchable_.num_sets, 3);
  cudaStream_t stream = device_->stream.get();
  Stopwatch& watch = watches_[0];
  RETURN_IF_ERROR(launchable_.launch(0));
  RETURN_IF_ERROR(watch.Start(stream));
  for (int set = 0; set < count; ++set) {
    RETURN_IF_ERROR(launchable_.launch(set));
  }
  RETURN_IF_ERROR(watch.Stop(stream));
  ASSIGN_OR_RETURN(
      const double seconds,
      watch.Seconds(device_->options.timeout_seconds, launchable_.what));
  seconds_per_launch_ = std::max(seconds / count, 1e-7);
  return absl::OkStatus();
}

absl::Status GraphTimer::TimeHost() {
  const int fit = std::max(1, kQueuedOps / launchable_.ops_per_launch);
  const int count = std::clamp(
      static_cast<int>(kHostTimingSeconds / seconds_per_launch_), 1, fit);
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i) {
    RETURN_IF_ERROR(launchable_.launch(i % launchable_.num_sets));
  }
  host_seconds_ = SecondsSince(begin) / count;
  return device_->Wait(launchable_.what);
}

absl::Status GraphTimer::Prepare(int num_launches) {
  num_launches = std::max(num_launches, 1);
  if (num_launches == planned_launches_) return absl::OkStatus();
  RETURN_IF_ERROR(Drain());
  graphs_.clear();
  plan_ = PlanGraphs(num_launches, launchable_.num_sets,
                     launchable_.ops_per_launch);
  for (const int first : plan_.first_sets) {
    ASSIGN_OR_RETURN(GraphExec graph,
                     CaptureGraph(device_->stream.get(), [&]() -> absl::Status {
                       for (int i = 0; i < plan_.launches_per_graph; ++i) {
                         RETURN_IF_ERROR(launchable_.launch(
                             (first + i) % launchable_.num_sets));
                       }
                       return absl::OkStatus();
                     }));
    graphs_.push_back(std::move(graph));
  }
  planned_launches_ = num_launches;
  next_graph_ = 0;
  return device_->Wait(launchable_.what);
}

absl::Status GraphTimer::Enqueue(Stopwatch* watch, double lead_seconds) {
  cudaStream_t stream = device_->stream.get();
  RETURN_IF_ERROR(device_->EnqueueFlush(lead_seconds));
  RETURN_IF_ERROR(watch->Start(stream));
  for (int replay = 0; replay < plan_.num_graph_launches; ++replay) {
    const auto begin = Clock::now();
    RETURN_IF_ERROR(CudaStatus(
        cudaGraphLaunch(graphs_[next_graph_].get(), stream), launchable_.what));
    if (replay == 0) graph_launch_seconds_ = SecondsSince(begin);
    next_graph_ = (next_graph_ + 1) % static_cast<int>(graphs_.size());
  }
  return watch->Stop(stream);
}

absl::StatusOr<LaunchBatch> GraphTimer::Finish(Stopwatch* watch) {
  ASSIGN_OR_RETURN(
      const double seconds,
      watch->Seconds(device_->options.timeout_seconds, launchable_.what));
  LaunchBatch batch;
  batch.seconds = seconds / plan_.num_launches();
  batch.host_launch_seconds = host_seconds_;
  batch.state = device_->state();
  seconds_per_launch_ = std::max(batch.seconds, 1e-9);
  return batch;
}

absl::Status GraphTimer::Drain() {
  if (!std::exchange(is_queued_, false)) return absl::OkStatus();
  return WaitFor(watches_[current_].stopped(), device_->options.timeout_seconds,
                 launchable_.what);
}

absl::StatusOr<LaunchBatch> GraphTimer::Run(int num_launches) {
  if (launchable_.by_stream) return RunByStream(num_launches);
  RETURN_IF_ERROR(Prepare(num_launches));
  if (!std::exchange(is_queued_, true)) {
    RETURN_IF_ERROR(
        Enqueue(&watches_[current_], kLeadSeconds + 2 * graph_launch_seconds_));
  }
  // The batch ahead hides this launch; one copy flushes the cache.
  RETURN_IF_ERROR(Enqueue(&watches_[1 - current_], 0));
  absl::StatusOr<LaunchBatch> batch = Finish(&watches_[current_]);
  current_ = 1 - current_;
  return batch;
}

absl::StatusOr<LaunchBatch> GraphTimer::RunAlone(int num_launches) {
  RETURN_IF_ERROR(Drain());
  RETURN_IF_ERROR(Prepare(num_launches));
  RETURN_IF_ERROR(
      Enqueue(&watches_[current_], kLeadSeconds + 2 * graph_launch_seconds_));
  return Finish(&watches_[current_]);
}

absl::StatusOr<LaunchBatch> GraphTimer::RunByStream(int num_launches) {
  cudaStream_t stream = device_->stream.get();
  Stopwatch& watch = watches_[0];
  LaunchBatch batch;
  for (int i = 0; i < num_launches; ++i) {
    RETURN_IF_ERROR(device_->EnqueueFlush(kStreamLead * host_seconds_));
    RETURN_IF_ERROR(watch.Start(stream));
    RETURN_IF_ERROR(launchable_.launch(next_set_));
    RETURN_IF_ERROR(watch.Stop(stream));
    next_set_ = (next_set_ + 1) % launchable_.num_sets;
    ASSIGN_OR_RETURN(
        const double seconds,
        watch.Seconds(device_->options.timeout_seconds, launchable_.what));
    batch.seconds += seconds / num_launches;
  }
  batch.host_launch_seconds = host_seconds_;
  batch.state = device_->state();
  return batch;
}

}  // namespace weir::calibrate
