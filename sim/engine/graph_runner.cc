// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/graph_runner.h"

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "sim/engine/event_loop.h"
#include "sim/engine/platform.h"

namespace weir::sim {

class GraphRunner::Impl {
 public:
  absl::StatusOr<Recording> Run(const TaskGraph& graph,
                                std::span<const scenarios::Link> links) {
    Recording recording(graph.num_tasks(), !graph.slowdowns.curves.empty());
    if (!recording.valid()) {
      return absl::ResourceExhaustedError("the simulation ran out of memory");
    }
    std::atomic<int64_t> num_ended = 0;
    RunEventLoop(graph, links, &platform_, &recording, &num_ended);
    return recording;
  }

 private:
  Platform platform_;
};

GraphRunner::GraphRunner() : impl_(std::make_unique<Impl>()) {}
GraphRunner::~GraphRunner() = default;

absl::StatusOr<Recording> GraphRunner::Run(
    const TaskGraph& graph, std::span<const scenarios::Link> links) {
  return impl_->Run(graph, links);
}

}  // namespace weir::sim
