// SPDX-License-Identifier: Apache-2.0
// Speeds of the workers of a recorded run, for simulations and plans with slow
// GPUs.
#ifndef WEIR_PLAN_STRAGGLERS_WORKER_SPEEDS_H_
#define WEIR_PLAN_STRAGGLERS_WORKER_SPEEDS_H_

#include <string>
#include <vector>

#include "results/import/recorded_run.h"

namespace weir::plan {

// A worker that computes slower than the same stages of other replicas.
struct SlowWorker {
  int replica = 0, rank = 0;
  // Median over kinds and stages of the median time of other replicas over its
  // own, below 1.
  double speed = 1;
};

// Workers that are slower than this part of the others' speed are listed.
inline constexpr double kSlowWorkerSpeed = 0.97;

// Returns the slow workers, by speed. Empty with one replica, because nothing
// tells a slow GPU from a long stage then.
std::vector<SlowWorker> SlowWorkersOf(const results::RecordedRun& run);

// Returns "gpu6=0.83,gpu7=0.83", as --slow reads it, for the order tp-dp-pp and
// `tensor` GPUs of each worker.
std::string SlowFlag(const std::vector<SlowWorker>& workers, int num_replicas,
                     int tensor);

}  // namespace weir::plan

#endif  // WEIR_PLAN_STRAGGLERS_WORKER_SPEEDS_H_
