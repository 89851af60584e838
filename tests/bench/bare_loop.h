// SPDX-License-Identifier: Apache-2.0
// The least that can replay a task graph on SimGrid: what the engine's cost is
// compared with.
#ifndef WEIR_TESTS_BENCH_BARE_LOOP_H_
#define WEIR_TESTS_BENCH_BARE_LOOP_H_

#include <span>
#include <vector>

#include "scenarios/network.h"
#include "sim/task_graph.h"

namespace weir {

// Runs all tasks in a forked child, keeps nothing, checks nothing. Returns
// whether the child ended well.
bool RunBareLoop(const TaskGraph& graph, std::span<const Link> links);

// When the last task would end if nothing contended: a pass over the arrays in
// topological order, without SimGrid.
double LongestPath(const TaskGraph& graph, std::span<const Link> links);

}  // namespace weir

#endif  // WEIR_TESTS_BENCH_BARE_LOOP_H_
