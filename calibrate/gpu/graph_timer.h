// SPDX-License-Identifier: Apache-2.0
// Runs a workload repeatedly, from graphs, and times it.
#ifndef WEIR_CALIBRATE_GPU_GRAPH_TIMER_H_
#define WEIR_CALIBRATE_GPU_GRAPH_TIMER_H_

#include <chrono>
#include <functional>
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
};

class GraphTimer {
 public:
  // Creates a replayer and warms up with a launch on each of some sets.
  static absl::StatusOr<GraphTimer> Create(const BenchDevice* device,
                                           Launchable launchable);

  // Captures the graphs for that many launches, unless they are the current
  // ones.
  absl::Status Prepare(int num_launches);
  // Runs copies that flush the cache and hide the launch time, then the
  // launches between two events.
  absl::StatusOr<LaunchBatch> Run(int num_launches);

  // Seconds per launch of the last run, or an estimate from the warm-up.
  double seconds_per_launch() const { return seconds_per_launch_; }
  int num_launches() const { return plan_.num_launches(); }
  // Maximum time of the copies ahead of the launches.
  double lead_seconds() const { return 20 * device_->flush_seconds; }

 private:
  GraphTimer() = default;
  absl::Status WarmUp();
  absl::Status TimeHost();

  const BenchDevice* device_ = nullptr;
  Launchable launchable_;
  Stopwatch watch_;
  GraphPlan plan_;
  int planned_launches_ = 0;
  std::vector<GraphExec> graphs_;
  int next_graph_ = 0;
  double seconds_per_launch_ = 0;
  double host_seconds_ = 0;          // per launch, without a graph
  double graph_launch_seconds_ = 0;  // on the host
  DeviceState state_;                // last sample
  std::chrono::steady_clock::time_point sampled_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_GRAPH_TIMER_H_
