// SPDX-License-Identifier: Apache-2.0
// How long the timer of every action runs.
#ifndef WEIR_SIM_ACTION_SECONDS_H_
#define WEIR_SIM_ACTION_SECONDS_H_

#include <vector>

#include "sim/pipeline_graph.h"

namespace weir {

// [position] of one GPU's order. A pass takes its cost times its microbatches,
// before it the estimate of weights that it computes with (a distance of 0
// needs none), and where its schedule compresses transfers, what it takes to
// unpack what came and to pack what leaves. Both of an overlapped pair take as
// long as the pair.
std::vector<double> ActionSeconds(const PipelineInputs& inputs, int gpu);

// [position] of one GPU's order: what the action by itself takes besides its
// pass, for estimates of weights and for compression.
std::vector<double> ExtraSeconds(const PipelineInputs& inputs, int gpu);

// Of one action of a GPU that holds this rank, and the one that it runs
// together with (or null); as if it were not the first forward of its update.
double PassSeconds(const Schedule& schedule, const Costs& costs, int gpu,
                   int rank, const Action& action, const Action* overlapped);

}  // namespace weir

#endif  // WEIR_SIM_ACTION_SECONDS_H_
