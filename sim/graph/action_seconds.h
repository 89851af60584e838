// SPDX-License-Identifier: Apache-2.0
// Durations of the timers of actions.
#ifndef WEIR_SIM_GRAPH_ACTION_SECONDS_H_
#define WEIR_SIM_GRAPH_ACTION_SECONDS_H_

#include <vector>

#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

// Returns the time of each action of one GPU, by position in its order. A pass
// takes its cost times its microbatches, plus the preceding estimate of the
// weights that it computes with (not needed at a distance of 0) and, if the
// schedule compresses transfers, the time to unpack its input and pack its
// output. Both actions of an overlapped pair take as long as the pair.
std::vector<double> ActionSeconds(const PipelineInputs& inputs, int gpu);

// Returns the seconds that each action of one GPU, by position, takes in
// addition to its pass: weight prediction and compression.
std::vector<double> ExtraSeconds(const PipelineInputs& inputs, int gpu);

// Returns the time of one action of a GPU that holds `rank`, together with the
// action that overlaps it (or null). The action is assumed not to be the first
// forward of its update.
double PassSeconds(const schedules::Schedule& schedule, const Costs& costs,
                   int gpu, int rank, const schedules::Action& action,
                   const schedules::Action* overlapped);

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_ACTION_SECONDS_H_
