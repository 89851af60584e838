// SPDX-License-Identifier: Apache-2.0
// Runs a workload repeatedly and times it: from graphs, or launch by launch as
// a replay does. Functions return the errors of errors.h, and DeadlineExceeded
// if the GPU does not finish in time.
#ifndef WEIR_CALIBRATE_GPU_GRAPH_TIMER_H_
#define WEIR_CALIBRATE_GPU_GRAPH_TIMER_H_

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/gpu/bench_device.h"
#include "calibrate/gpu/host/rotation.h"

namespace weir::calibrate {

struct Launchable {
  std::string what;  // in errors
  int num_sets = 1;
  int ops_per_launch = 1;
  // Enqueues one launch on the device's stream, using this set of buffers.
  std::function<absl::Status(int set)> launch;
  // Times each launch alone, its operations enqueued one by one, as a serial
  // replay does (calibrate/execute/gpu/serial_execution.h). Otherwise batches
  // of launches from graphs.
  bool by_stream = false;
};

class GraphTimer {
 public:
  // Creates a timer and warms up with a launch on each of some sets.
  static absl::StatusOr<std::unique_ptr<GraphTimer>> Create(
      const BenchDevice* device, Launchable launchable);
  ~GraphTimer();
  GraphTimer(const GraphTimer&) = delete;
  GraphTimer& operator=(const GraphTimer&) = delete;

  // Captures the graphs for that many launches, unless they are the current
  // ones.
  absl::Status Prepare(int num_launches);
  // Returns the time of a batch: of launches between two events, after copies
  // that flush the cache and hide the launch time. The next batch is already
  // queued when this one ends, so that the GPU keeps the clocks of steady work.
  // With `by_stream` the GPU is idle between launches, as in a serial replay.
  absl::StatusOr<LaunchBatch> Run(int num_launches);
  // The same for a batch that is queued by this call, with nothing behind it.
  absl::StatusOr<LaunchBatch> RunAlone(int num_launches);

  // Seconds per launch of the last run, or an estimate from the warm-up.
  double seconds_per_launch() const { return seconds_per_launch_; }
  int num_launches() const { return plan_.num_launches(); }
  // Maximum time of the copies ahead of the launches.
  double lead_seconds() const { return 20 * device_->flush_seconds; }

 private:
  GraphTimer() = default;
  absl::Status WarmUp();
  absl::Status TimeHost();
  // Enqueues a batch behind copies of at least `lead_seconds`.
  absl::Status Enqueue(Stopwatch* watch, double lead_seconds);
  absl::StatusOr<LaunchBatch> Finish(Stopwatch* watch);
  // Waits for a batch that is queued but not used.
  absl::Status Drain();
  absl::StatusOr<LaunchBatch> RunByStream(int num_launches);

  const BenchDevice* device_ = nullptr;
  Launchable launchable_;
  std::array<Stopwatch, 2> watches_;  // of consecutive batches
  int current_ = 0;                   // the watch of the next result
  bool is_queued_ = false;            // a batch of that watch is enqueued
  GraphPlan plan_;
  int planned_launches_ = 0;
  std::vector<GraphExec> graphs_;
  int next_graph_ = 0, next_set_ = 0;
  double seconds_per_launch_ = 0;
  double host_seconds_ = 0;          // per launch, without a graph
  double graph_launch_seconds_ = 0;  // on the host
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_GRAPH_TIMER_H_
