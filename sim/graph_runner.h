// SPDX-License-Identifier: Apache-2.0
// Runs many task graphs one after the other in this process on one SimGrid
// platform, which grows as they need: for planners. A run of RunTaskGraph
// (engine.h) costs a process and a platform each time.
// Each run has the times that it would have as the first one, to the last bit:
// SimGrid's clock starts again with it.
#ifndef WEIR_SIM_GRAPH_RUNNER_H_
#define WEIR_SIM_GRAPH_RUNNER_H_

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "scenarios/network.h"
#include "sim/engine.h"
#include "sim/task_graph.h"

namespace weir {

// One per process, which must not use RunTaskGraph beside it. Not to be
// forked once it has run.
class GraphRunner {
 public:
  GraphRunner();
  ~GraphRunner();
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  // As RunTaskGraph, to 1e-9 relative; times from the start of this run. A link
  // that a route names several times carries its flows as often.
  absl::StatusOr<Recording> Run(const TaskGraph& graph,
                                std::span<const Link> links);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir

#endif  // WEIR_SIM_GRAPH_RUNNER_H_
