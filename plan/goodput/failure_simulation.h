// SPDX-License-Identifier: Apache-2.0
// Event simulation of runs with failures. The random numbers of a run depend
// only on the seed, the run and the class of failures, so that two settings see
// the same failures, scaled by their rates (common random numbers).
//
// A cycle is `interval` seconds of work and a stall for a checkpoint. A failure
// loses the work since the last checkpoint that is safe. Then the job detects
// it, waits for a node if it needs one, restarts and loads; a failure meanwhile
// starts this again. The run ends when its last checkpoint, at the end of the
// work, is safe. Without spares to wait for, the mean with synchronous
// checkpoints is ExpectedSeconds() (plan/goodput/interval.h).
#ifndef WEIR_PLAN_GOODPUT_FAILURE_SIMULATION_H_
#define WEIR_PLAN_GOODPUT_FAILURE_SIMULATION_H_

#include <cstdint>
#include <vector>

#include "plan/goodput/checkpoint.h"
#include "plan/goodput/reliability.h"

namespace weir::plan {

struct RunModel {
  std::vector<JobFailures> failures;
  double work_seconds = 0;      // without failures and checkpoints
  double interval_seconds = 0;  // work between checkpoints
  CheckpointTimes checkpoint;
  double detection_seconds = 0;
  double restart_seconds = 0;  // without loading
  // Nodes that can take the place of a failed one at once; negative: always
  // enough. A repaired node is a spare again.
  int num_spares = -1;
  // Without a spare, the job continues with one replica fewer instead of
  // waiting, at a proportional speed. The replica returns with the next
  // checkpoint after a repair, which costs a restart. 1: it waits.
  int num_elastic_replicas = 1;
};

// Parts of the time of one run, which add up to its wall time.
struct RunTimes {
  double useful_seconds = 0;    // equal to work_seconds
  double stall_seconds = 0;     // of checkpoints that were kept, and the wait
                                // for the last one
  double lost_seconds = 0;      // work and stalls after the last safe one
  double recovery_seconds = 0;  // detection, restart, load
  double waiting_seconds = 0;   // for a repair
  double degraded_seconds = 0;  // longer work of fewer replicas
  int num_failures = 0;
  // The time at the end of the run by the clock of the simulation, to check the
  // sum of the parts.
  double end_seconds = 0;
  double wall_seconds() const {
    return useful_seconds + stall_seconds + lost_seconds + recovery_seconds +
           waiting_seconds + degraded_seconds;
  }
};

// Wall time, relative to the work, and failures beyond which a run is given up.
inline constexpr double kMostSlowdown = 1000;
inline constexpr int kMostFailures = 1'000'000;

// Simulates run number `run`. The useful seconds of a run that is given up are
// less than its work. Requires:
// checkpoint.safe_seconds <= interval_seconds + checkpoint.stall_seconds.
RunTimes SimulateRun(const RunModel& model, uint64_t seed, int run);

// Returns a standard normal number that is the same for every setting. The
// numbers of runs 0 to num_runs - 1 are stratified: each of num_runs intervals
// of equal probability has one of them, in ascending order.
double NormalNumber(uint64_t seed, int run, int num_runs);

}  // namespace weir::plan

#endif  // WEIR_PLAN_GOODPUT_FAILURE_SIMULATION_H_
