// SPDX-License-Identifier: Apache-2.0
// How much delay the passes and transfers of a schedule absorb before the run
// ends later.
#ifndef WEIR_SIM_REPORT_SLACK_H_
#define WEIR_SIM_REPORT_SLACK_H_

#include <cstdint>
#include <span>
#include <vector>

#include "results/result.pb.h"
#include "schedules/action.h"
#include "schedules/schedule.h"
#include "sim/engine/engine.h"
#include "sim/engine/task_graph.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

// Returns, for each task, the seconds by which its end can be delayed without
// delaying the last end, if all other tasks take as long as recorded: the total
// float of the critical path method (Kelley and Walker, 1959, "Critical-Path
// Planning and Scheduling"), from one pass backward over the graph. Exact if
// each task takes the same time whenever it runs: no two flows share a link and
// nothing slows timers (see SharedLinks and SlowsTimers). Requires: the
// recording is complete.
std::vector<double> SlackOfTasks(const TaskGraph& graph,
                                 const Recording& recording);

struct PassSlack {
  int gpu = 0;  // as in Placement::index
  int replica = 0, rank = 0;
  schedules::Action action{};
  double start_seconds = 0, end_seconds = 0;
  double slack_seconds = 0;  // of its kernels
};

struct TransferSlack {
  int gpu = 0;  // the sender
  int replica = 0, rank = 0;
  bool gradient = false;
  int32_t stage = 0, microbatch = 0;  // of the sender
  double start_seconds = 0, end_seconds = 0, slack_seconds = 0;
};

struct ScheduleSlack {
  double makespan_seconds = 0;  // of all batches
  // Seconds of the scenario's step, as in Result; set by SlackOfScenario.
  double batch_seconds = 0;
  int num_batches = 1;
  int chunks = 1;                        // stages of a rank
  std::vector<PassSlack> passes;         // by GPU, in order
  std::vector<TransferSlack> transfers;  // by their start
  // False: flows share links or slow passes down, so that a delay changes how
  // long other tasks take.
  bool is_exact = true;
};

// The slack of several passes or transfers.
struct SlackStatistics {
  int count = 0;
  int num_critical = 0;  // without slack, up to rounding errors of the run
  double median_seconds = 0, largest_seconds = 0;
};

// Requires: at least one value.
SlackStatistics StatisticsOfSlack(std::vector<double> slack,
                                  double makespan_seconds);

// Lists tensor rank 0 of each pipeline rank, without offloads and reloads.
// `links`: those of the network.
ScheduleSlack SlackOfRun(const schedules::Schedule& schedule,
                         const PipelineGraph& graph, const Recording& recording,
                         std::span<const scenarios::Link> links);

// Sets result->run_slack() from the slack of replica 0.
void FillSlack(const ScheduleSlack& slack, Result* result);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_SLACK_H_
