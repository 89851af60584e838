// SPDX-License-Identifier: Apache-2.0
// What the engine runs: timers and flows with dependencies, as flat arrays.
#ifndef WEIR_SIM_TASK_GRAPH_H_
#define WEIR_SIM_TASK_GRAPH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scenarios/network.h"

namespace weir {

// A pair of GPUs that some flow uses.
struct GpuPair {
  int32_t from = 0;
  int32_t to = 0;
  Route route;  // has at least one link
};

// What moves data on a GPU: kernels of a communication library, or its copy
// engines.
enum class Mover : uint8_t { kKernels, kCopies };

// What makes timers of a GPU, which compute, slower while they run. Two causes,
// one mechanism: their factors multiply, and whenever one changes the timer
// goes on at another speed.
//   Flows that touch the GPU, from their start to their end: so many times as
//   the mover says, the larger of two.
//   Other parts of its card: by how many GPUs of one card compute at the
//   moment, which is: have such a timer under way, this one among them.
struct Slowdowns {
  struct Timer {
    int32_t gpu = -1;      // -1: takes its seconds whatever happens
    int32_t curve = -1;    // of `curves`; -1: other parts do not matter
    bool by_flows = true;  // else other parts alone matter
  };
  struct Touch {
    Mover mover = Mover::kKernels;
    std::vector<int32_t> gpus;
  };
  std::vector<Timer> timers;                   // [task]; empty: none is slower
  std::vector<Touch> touches;                  // [pair]
  std::vector<std::array<double, 2>> factors;  // [gpu][mover]
  // [gpu], -1: a card of its own; empty: all are.
  std::vector<int32_t> gpu_card;
  // [curve][GPUs of the card that compute - 1], as long as a card has GPUs.
  std::vector<std::vector<double>> curves;
};

// Tasks are numbered from 0. A task starts when all its predecessors have
// ended. A timer takes its seconds; a flow takes its route's latency and then
// moves its bytes at the rate that the network grants.
class TaskGraph {
 public:
  static constexpr int32_t kTimer = -1;

  // Room for so many, roughly.
  void Reserve(size_t num_tasks, size_t num_edges);

  int32_t AddTimer(double seconds) { return Add(kTimer, seconds); }
  // `pair` is an index into `pairs`.
  int32_t AddFlow(int32_t pair, double bytes) { return Add(pair, bytes); }
  // Adds `count` timers of zero seconds and returns the first.
  int32_t AddTimers(int64_t count);
  // A flow becomes a timer of zero seconds.
  void DropFlow(int32_t flow) {
    pair_[flow] = kTimer;
    amounts_[flow] = 0;
  }
  void SetSeconds(int32_t timer, double seconds) { amounts_[timer] = seconds; }

  void AddEdge(int32_t before, int32_t after) {
    edges_.push_back({before, after});
  }

  // Call once after the last AddEdge: orders the edges by their first task.
  void Finish();

  int32_t num_tasks() const { return static_cast<int32_t>(amounts_.size()); }
  bool is_timer(int32_t task) const { return pair_[task] == kTimer; }
  int32_t pair(int32_t task) const { return pair_[task]; }
  // Seconds of a timer, bytes of a flow.
  double amount(int32_t task) const { return amounts_[task]; }
  // REQUIRES: Finish() was called, also below.
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

}  // namespace weir

#endif  // WEIR_SIM_TASK_GRAPH_H_
