// SPDX-License-Identifier: Apache-2.0
// Runs a task graph on SimGrid: compute is a timer, a transfer is a flow that
// shares links max-min fairly with every other flow (network model CM02 with
// exact latencies).
//
// Each run takes place in a forked child: one that aborts cannot take the
// program with it. Any number of runs in any order give the same numbers.
#ifndef WEIR_SIM_ENGINE_H_
#define WEIR_SIM_ENGINE_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "scenarios/network.h"
#include "sim/task_graph.h"

namespace weir {

// When every task started and ended, in seconds from the start of the run; of
// graphs with parts of cards, what other parts added to every task.
// Lives in memory shared with the child that wrote it; moves, never copies.
class Recording {
 public:
  explicit Recording(size_t num_tasks, bool shares_cards = false);
  Recording(Recording&& other) noexcept;
  Recording& operator=(Recording&& other) noexcept;
  ~Recording();

  bool valid() const { return data_ != nullptr; }  // false: no memory
  // False: some tasks wait for each other for ever; their times are NaN.
  bool complete() const { return num_ended_ == num_tasks_; }
  size_t num_ended() const { return num_ended_; }
  void set_num_ended(size_t num_ended) { num_ended_ = num_ended; }

  std::span<double> start_seconds() { return {data_, num_tasks_}; }
  std::span<double> end_seconds() { return {data_ + num_tasks_, num_tasks_}; }
  std::span<const double> start_seconds() const { return {data_, num_tasks_}; }
  std::span<const double> end_seconds() const {
    return {data_ + num_tasks_, num_tasks_};
  }
  // Seconds of a timer's end - start that it would not have taken had its card
  // been its own. Empty where no GPU is a part of a card.
  std::span<double> sharing_seconds() {
    return {data_ + 2 * num_tasks_, shares_cards_ ? num_tasks_ : 0};
  }
  std::span<const double> sharing_seconds() const {
    return {data_ + 2 * num_tasks_, shares_cards_ ? num_tasks_ : 0};
  }

 private:
  size_t bytes() const;

  size_t num_tasks_ = 0;
  bool shares_cards_ = false;
  size_t num_ended_ = 0;
  double* data_ = nullptr;
};

struct EngineOptions {
  // Called from this thread about ten times a second with the part done.
  std::function<void(double)> progress;
};

// Runs all tasks that can run; see Recording::complete(). ResourceExhausted
// without memory, Cancelled when interrupted, Internal when SimGrid fails, with
// what it printed. Bytes of flows are whole numbers.
absl::StatusOr<Recording> RunTaskGraph(const TaskGraph& graph,
                                       std::span<const Link> links,
                                       const EngineOptions& options = {});

// "3.32", for provenance.
std::string SimGridVersion();

}  // namespace weir

#endif  // WEIR_SIM_ENGINE_H_
