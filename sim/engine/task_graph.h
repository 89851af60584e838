// SPDX-License-Identifier: Apache-2.0
// The task graph that the engine runs: timers and flows with dependencies,
// stored in flat arrays.
#ifndef WEIR_SIM_ENGINE_TASK_GRAPH_H_
#define WEIR_SIM_ENGINE_TASK_GRAPH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scenarios/cluster/network.h"

namespace weir::sim {

// A pair of GPUs that at least one flow uses.
struct GpuPair {
  int32_t from = 0;
  int32_t to = 0;
  scenarios::Route route;  // has at least one link
};

// The engine that moves data on a GPU: kernels of a communication library or
// the GPU's copy engines.
enum class Mover : uint8_t { kKernels, kCopies };

// Slowdowns of compute timers while they run. The factors of the two causes
// multiply, and whenever one of them changes, the timer continues at the new
// speed. The causes are
// - flows that touch the GPU, from their start to their end: the factor of
//   their mover, or the larger factor if both movers are active;
// - other partitions of the same physical GPU (card): a factor that depends on
//   the number of partitions that currently run such a timer, this one
//   included.
struct Slowdowns {
  struct Timer {
    int32_t gpu = -1;      // -1: never slowed down
    int32_t curve = -1;    // index into `curves`; -1: no partitions
    bool by_flows = true;  // false: slowed only by partitions
  };
  struct Touch {
    Mover mover = Mover::kKernels;
    std::vector<int32_t> gpus;
  };
  std::vector<Timer> timers;   // [task]; empty: no timer is slowed down
  std::vector<Touch> touches;  // [pair]
  std::vector<std::array<double, 2>> factors;  // [gpu][mover]
  // [gpu]: index of its physical GPU; -1: not partitioned. Empty: none is.
  std::vector<int32_t> physical_gpu;
  // [curve][number of computing partitions - 1]: slowdown factor. A curve has
  // as many entries as a physical GPU has partitions.
  std::vector<std::vector<double>> curves;
};

// Tasks are numbered from 0. A task starts when all its predecessors have
// ended. A timer takes its seconds; a flow takes its route's latency and then
// moves its bytes at the rate that the network grants.
class TaskGraph {
 public:
  static constexpr int32_t kTimer = -1;

  // Reserves memory for about this many tasks and edges.
  void Reserve(size_t num_tasks, size_t num_edges);

  int32_t AddTimer(double seconds) { return Add(kTimer, seconds); }
  // Adds a flow over pairs[pair].
  int32_t AddFlow(int32_t pair, double bytes) { return Add(pair, bytes); }
  // Adds `count` timers of zero seconds and returns the first.
  int32_t AddTimers(int64_t count);
  // Turns a flow into a timer of zero seconds.
  void DropFlow(int32_t flow) {
    pair_[flow] = kTimer;
    amounts_[flow] = 0;
  }
  void SetSeconds(int32_t timer, double seconds) { amounts_[timer] = seconds; }

  void AddEdge(int32_t before, int32_t after) {
    edges_.push_back({before, after});
  }

  // Orders the edges by their first task. Call once, after the last AddEdge.
  void Finish();

  int32_t num_tasks() const { return static_cast<int32_t>(amounts_.size()); }
  bool is_timer(int32_t task) const { return pair_[task] == kTimer; }
  int32_t pair(int32_t task) const { return pair_[task]; }
  // Returns the seconds of a timer or the bytes of a flow.
  double amount(int32_t task) const { return amounts_[task]; }
  // Requires: Finish() was called. The same holds for num_predecessors().
  std::span<const int32_t> successors(int32_t task) const {
    return {successors_.data() + first_successor_[task],
            successors_.data() + first_successor_[task + 1]};
  }
  const std::vector<int32_t>& num_predecessors() const {
    return num_predecessors_;
  }

  std::vector<GpuPair> pairs;
  Slowdowns slowdowns;

 private:
  struct Edge {
    int32_t before, after;
  };

  int32_t Add(int32_t pair, double amount);

  std::vector<int32_t> pair_;
  std::vector<double> amounts_;
  std::vector<Edge> edges_;
  std::vector<int32_t> first_successor_;
  std::vector<int32_t> successors_;
  std::vector<int32_t> num_predecessors_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_ENGINE_TASK_GRAPH_H_
