// SPDX-License-Identifier: Apache-2.0
// Several jobs at once on one cluster, whose transfers share links.
#ifndef WEIR_SIM_JOBS_H_
#define WEIR_SIM_JOBS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "results/result.pb.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"

namespace weir::sim {

struct JobOutcome {
  // Result of the first step next to the other jobs; without flush, of the
  // whole run.
  Result result;
  double alone_seconds = 0;  // a step without other jobs
  // Mean of the steps that ended while all jobs that share links with it were
  // running. Of a run without flush or of overlapping batches: of its steady
  // state, or, if it has none, of the second half of these steps.
  double step_seconds = 0;
  int num_steps = 1;  // of which this is the mean
  // Indices of the jobs with which it is simulated, because their transfers
  // share links, directly or through other jobs.
  std::vector<int> shares_with;

  double slowdown() const { return step_seconds / alone_seconds; }
};

// Simulates jobs that start at once and repeat their steps. With a flush, one
// step waits for the end of the one before; other jobs run as many batches as
// show their steady state. Jobs get further steps until all run until the
// longest first step, or the last of these batches before the drain, has ended.
// Jobs that share no link with others are simulated alone, so their results are
// those of Simulate to the last bit.
//
// Requires: all scenarios have the same cluster. Returns InvalidArgument if
// two jobs have the same GPU, or a job has no cluster, or a given number of
// batches; and the errors of Simulate.
absl::StatusOr<std::vector<JobOutcome>> SimulateJobs(
    std::span<const scenarios::ResolvedScenario> jobs,
    const SimulateOptions& options = {});

}  // namespace weir::sim

#endif  // WEIR_SIM_JOBS_H_
