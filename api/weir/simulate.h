// SPDX-License-Identifier: Apache-2.0
// Simulates a scenario, in full or fast.
//
// Threads: all functions may be called from any thread. SimGrid's engine is
// global to a process, therefore a process runs one simulation or estimate at a
// time, and calls from several threads wait for each other. To use several
// cores, use several processes. A process that has called Simulate or Estimate
// must not call them in a child of fork(2) without exec.
#ifndef WEIR_SIMULATE_H_
#define WEIR_SIMULATE_H_

#include <string>
#include <vector>

#include "weir/error.h"
#include "weir/scenario.h"
#include "weir/schedule.h"

namespace weir::api {

// Seconds of a step in which the mean GPU is busy with something, or idle. They
// add up to Result::step_seconds.
struct Breakdown {
  double compute_seconds = 0;
  double tensor_communication_seconds = 0;
  double expert_communication_seconds = 0;
  double context_communication_seconds = 0;
  double pipeline_transfer_seconds = 0;
  double data_communication_seconds = 0;
  double optimizer_seconds = 0;
  double bubble_seconds = 0;
  double rollback_seconds = 0;  // expected, of post-validated steps
};

// One GPU.
struct Gpu {
  int number = 0;  // in the cluster
  int pipeline_rank = 0;
  int replica = 0;
  int tensor_rank = 0;
  double busy_seconds = 0, idle_seconds = 0;  // of the simulated run
  double peak_memory_bytes = 0;
  int weight_versions = 1;    // the most of any of its stages
  int staleness_updates = 0;  // of gradients, the most
};

// A pass on the timeline.
struct PassTime {
  int gpu = 0;  // index into Result::gpus
  Pass pass;
  double start_seconds = 0, end_seconds = 0;
};

struct Result {
  std::string schedule;
  int num_microbatches = 0;  // per batch and pipeline
  // Time of a step: with a flush of one batch, else of one period of the steady
  // state.
  double step_seconds = 0;
  // The time lies between them in nine cases of ten; 0 with given costs.
  double step_seconds_low = 0, step_seconds_high = 0;
  double makespan_seconds = 0;       // of the simulated run
  double samples_per_second = 0;     // 0 with given costs
  double tokens_per_second = 0;      // 0 with given costs
  double flops_utilization = 0;      // MFU, 0 to 1; 0 if unknown
  double idle_ratio = 0;             // idle part of all GPUs, 0 to 1
  double peak_memory_bytes = 0;      // of the worst GPU
  double memory_capacity_bytes = 0;  // 0 with given costs
  bool fits_memory = true;
  Breakdown breakdown;
  std::vector<Gpu> gpus;
  std::vector<PassTime> passes;  // only with SimulateOptions::timeline
  std::string limit;             // what limits the schedule, in one line
  std::vector<std::string> warnings;
};

struct SimulateOptions {
  bool timeline = false;  // fills Result::passes
};

// Simulates every GPU and microbatch. Throws Error for a scenario that is
// invalid, or whose schedule deadlocks. A scenario that does not fit in memory
// is a result.
Result Simulate(const Scenario& scenario, const SimulateOptions& options = {});

struct FastEstimate {
  double step_seconds = 0;
  double makespan_seconds = 0;
  std::vector<double> rank_peak_memory_bytes;  // [pipeline rank]
  bool fits_memory = true;
};

// Returns the step time, makespan and memory of Simulate, to 1e-9 relative,
// without simulating GPUs and microbatches that repeat others. Keeps networks,
// schedules and prices for the next call. Throws the errors of Simulate.
FastEstimate Estimate(const Scenario& scenario);

// "0.1.0"; see docs/api.md for what a version promises.
std::string Version();

}  // namespace weir::api

#endif  // WEIR_SIMULATE_H_
