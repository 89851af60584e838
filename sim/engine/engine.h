// SPDX-License-Identifier: Apache-2.0
// Runs a task graph on SimGrid: computation is a timer, a transfer is a flow
// that shares links max-min fairly with every other flow (network model CM02
// with exact latencies).
//
// Each run takes place in a forked child process, so an abort does not end the
// program. Results do not depend on previous runs.
#ifndef WEIR_SIM_ENGINE_ENGINE_H_
#define WEIR_SIM_ENGINE_ENGINE_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "scenarios/cluster/network.h"
#include "sim/engine/task_graph.h"

namespace weir::sim {

// Start and end of every task, in seconds from the start of the run. For graphs
// with GPU partitions, also the seconds that other partitions added to each
// task. Movable, not copyable.
class Recording {
 public:
  // The memory for a child process is shared with it. That for this process is
  // from the heap, which can reuse it for the next run.
  enum class Writer { kThisProcess, kChildProcess };

  explicit Recording(size_t num_tasks, bool shares_cards = false,
                     Writer writer = Writer::kThisProcess);
  Recording(Recording&& other) noexcept;
  Recording& operator=(Recording&& other) noexcept;
  ~Recording();

  bool valid() const { return data_ != nullptr; }  // false: out of memory
  // Returns false if some tasks wait for each other forever; their times are
  // NaN.
  bool complete() const { return num_ended_ == num_tasks_; }
  size_t num_ended() const { return num_ended_; }
  void set_num_ended(size_t num_ended) { num_ended_ = num_ended; }

  std::span<double> start_seconds() { return {data_, num_tasks_}; }
  std::span<double> end_seconds() { return {data_ + num_tasks_, num_tasks_}; }
  std::span<const double> start_seconds() const { return {data_, num_tasks_}; }
  std::span<const double> end_seconds() const {
    return {data_ + num_tasks_, num_tasks_};
  }
  // Seconds by which other partitions of the same physical GPU lengthened each
  // timer, by task. Empty if no GPU is a partition.
  std::span<double> sharing_seconds() {
    return {data_ + 2 * num_tasks_, shares_gpus_ ? num_tasks_ : 0};
  }
  std::span<const double> sharing_seconds() const {
    return {data_ + 2 * num_tasks_, shares_gpus_ ? num_tasks_ : 0};
  }

 private:
  size_t bytes() const;

  size_t num_tasks_ = 0;
  bool shares_gpus_ = false;
  Writer writer_ = Writer::kThisProcess;
  size_t num_ended_ = 0;
  double* data_ = nullptr;
};

struct EngineOptions {
  // Called from this thread about ten times a second with the completed
  // fraction.
  std::function<void(double)> progress;
};

// Runs all tasks that can run; see Recording::complete(). Returns
// ResourceExhausted if there is not enough memory, Cancelled when interrupted,
// and Internal with SimGrid's output when SimGrid fails. Bytes of flows are
// rounded down to whole numbers.
absl::StatusOr<Recording> RunTaskGraph(const TaskGraph& graph,
                                       std::span<const scenarios::Link> links,
                                       const EngineOptions& options = {});

// Returns SimGrid's version for provenance records, for example "3.32".
std::string SimGridVersion();

}  // namespace weir::sim

#endif  // WEIR_SIM_ENGINE_ENGINE_H_
