// SPDX-License-Identifier: Apache-2.0
// Runs many task graphs one after another in this process, on one SimGrid
// platform that grows as needed; for planners. RunTaskGraph (engine.h) creates
// a process and a platform for each run. The times of a run are bit-identical
// to those of a first run, since SimGrid's clock is reset.
#ifndef WEIR_SIM_ENGINE_GRAPH_RUNNER_H_
#define WEIR_SIM_ENGINE_GRAPH_RUNNER_H_

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "scenarios/cluster/network.h"
#include "sim/engine/engine.h"
#include "sim/engine/task_graph.h"

namespace weir::sim {

// At most one instance per process, which must not call RunTaskGraph. The
// process must not fork once a graph has run.
class GraphRunner {
 public:
  GraphRunner();
  ~GraphRunner();
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  // Returns the same as RunTaskGraph, to 1e-9 relative, with times from the
  // start of this run. A route that names a link k times uses k times its rate
  // there. Returns ResourceExhausted if there is not enough memory.
  absl::StatusOr<Recording> Run(const TaskGraph& graph,
                                std::span<const scenarios::Link> links);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_ENGINE_GRAPH_RUNNER_H_
