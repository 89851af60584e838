// SPDX-License-Identifier: Apache-2.0
// What slow operations cost a recorded run: the run is replayed with some of
// its durations replaced by ideal ones (arXiv 2505.05713, "Understanding
// Stragglers in Large Model Training Using What-if Analysis").
#ifndef WEIR_PLAN_STRAGGLERS_WHAT_IF_H_
#define WEIR_PLAN_STRAGGLERS_WHAT_IF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/stragglers/operation_graph.h"
#include "results/import/recorded_run.h"

namespace weir::plan {

// The part of some operations in the slowdown. All step times are means over
// the steps.
struct Share {
  std::string name;  // "forward", "stage 3", "replica 1"
  // Step time if only these operations keep their recorded durations, over the
  // ideal step time.
  double slowdown = 1;
  int replica = -1, rank = -1;  // of a worker
};

// What removing the stragglers of some operations gains.
struct Explained {
  // Names of workers or of the stage.
  std::vector<std::string> of;
  // Step time if these operations are ideal and all others as recorded.
  double seconds_without = 0;
  // (T - T without) / (T - T ideal): M_W and M_S of the paper, section 4.
  double share = 0;
};

struct StepWhatIf {
  int32_t step = 0;
  double recorded_seconds = 0;
  // Replayed with the recorded gaps before operations, and without them.
  double with_gaps_seconds = 0, replayed_seconds = 0;
  double ideal_seconds = 0;
};

struct WhatIf {
  std::vector<StepWhatIf> steps;
  // Means over the steps.
  double recorded_seconds = 0, with_gaps_seconds = 0, replayed_seconds = 0,
         ideal_seconds = 0;
  // S = replayed / ideal.
  double slowdown = 1;
  // Sorted by slowdown, largest first. Sends and receives are one kind.
  std::vector<Share> by_kind, by_stage, by_replica, by_worker;
  // [pipeline rank]: median slack of its passes in all replicas and steps: how
  // much longer one could take without a longer step (OperationGraph::Slack).
  std::vector<double> slack_seconds;
  Explained slowest_workers;  // M_W: the slowest 3 % of workers, at least one
  Explained last_stage;       // M_S
  int num_workers = 0;
};

// Part of the workers that M_W counts as slow.
inline constexpr int kSlowWorkersPercent = 3;

// Computes all of these. Ideal durations are, by kind of operation, the mean of
// passes, optimizer steps and garbage collection and the median of the transfer
// of all communication, over all workers and steps. The slowdown of a worker is
// the smaller one of its replica and of its pipeline rank, as in the paper,
// which avoids a replay for each worker. "Stage" is the pipeline rank.
// Returns InvalidArgument if operations of a step wait for each other.
absl::StatusOr<WhatIf> AnalyzeRun(const results::RecordedRun& run);

// Returns "replica 0, stage 3".
std::string WorkerName(int replica, int rank);

}  // namespace weir::plan

#endif  // WEIR_PLAN_STRAGGLERS_WHAT_IF_H_
