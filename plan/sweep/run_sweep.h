// SPDX-License-Identifier: Apache-2.0
// Runs the points of one shard in worker processes and appends what they find.
#ifndef WEIR_PLAN_SWEEP_RUN_SWEEP_H_
#define WEIR_PLAN_SWEEP_RUN_SWEEP_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/processes.h"
#include "plan/sweep/counts.h"
#include "plan/sweep/shard.h"
#include "plan/sweep/sweep.h"
#include "scenarios/scenario.h"

namespace weir {

struct SweepOptions {
  std::string folder;  // of the shards
  Shard shard;
  // Goes on where the shards of the folder end: points that are done or refused
  // there are left out, those that failed run again, unless they were over a
  // time limit that was as long.
  bool resume = false;
  double time_limit_seconds = kNoTimeLimit;  // of a point
  bool force = false;  // empties a file of the shard's name that is no shard
  int num_processes = 1;
  // Runs in the workers.
  std::function<absl::StatusOr<ResolvedScenario>(const std::string& label,
                                                 const Scenario& scenario)>
      resolve = ResolveScenario;
  // Called about ten times a second, and as points end.
  std::function<void(const SweepCounts&)> progress;
  // Told of each damaged record; its point runs again.
  std::function<void(const std::string& text)> warn = [](const auto&) {};
  std::function<bool()> stop = [] { return false; };
};

// InvalidArgument where the folder holds another sweep or, without `resume`,
// points of this shard; FailedPrecondition where another process writes it.
absl::StatusOr<SweepCounts> RunSweep(const ResolvedSweep& sweep,
                                     const SweepOptions& options);

// InvalidArgument where RunSweep would refuse the folder.
absl::Status CheckSweepFolder(const ResolvedSweep& sweep,
                              const std::string& folder, bool resume);

}  // namespace weir

#endif  // WEIR_PLAN_SWEEP_RUN_SWEEP_H_
