// SPDX-License-Identifier: Apache-2.0
// Runs the points of one shard in worker processes and appends the outcomes.
#ifndef WEIR_PLAN_SWEEP_RUN_SWEEP_H_
#define WEIR_PLAN_SWEEP_RUN_SWEEP_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/worker_pool.h"
#include "plan/sweep/counts.h"
#include "plan/sweep/shard.h"
#include "plan/sweep/sweep.h"
#include "scenarios/scenario.h"

namespace weir::plan {

struct SweepOptions {
  std::string folder;  // folder of the shards
  Shard shard;
  // Continues the shards of the folder: skips points that are done or refused
  // there. Failed points run again unless they exceeded a time limit at least
  // as long.
  bool resume = false;
  double time_limit_seconds = kNoTimeLimit;  // per point
  bool force = false;  // empties any other file at the shard's path
  int num_processes = 1;
  // Called in the workers.
  std::function<absl::StatusOr<scenarios::ResolvedScenario>(
      const std::string& label, const Scenario& scenario)>
      resolve = scenarios::ResolveScenario;
  // Called about ten times a second, and whenever a point ends.
  std::function<void(const SweepCounts&)> progress;
  // Called for each damaged record, whose point runs again.
  std::function<void(const std::string& text)> warn = [](const auto&) {};
  std::function<bool()> stop = [] { return false; };
};

// Returns InvalidArgument if the folder holds another sweep or, without
// `resume`, points of this shard; FailedPrecondition if another process writes
// the shard.
absl::StatusOr<SweepCounts> RunSweep(const ResolvedSweep& sweep,
                                     const SweepOptions& options);

// Returns InvalidArgument if RunSweep would refuse the folder.
absl::Status CheckSweepFolder(const ResolvedSweep& sweep,
                              const std::string& folder, bool resume);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SWEEP_RUN_SWEEP_H_
