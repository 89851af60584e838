// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/task_graph.h"

namespace weir::sim {

void TaskGraph::Reserve(size_t num_tasks, size_t num_edges) {
  pair_.reserve(num_tasks);
  amounts_.reserve(num_tasks);
  edges_.reserve(num_edges);
}

int32_t TaskGraph::Add(int32_t pair, double amount) {
  pair_.push_back(pair);
  amounts_.push_back(amount);
  return num_tasks() - 1;
}

int32_t TaskGraph::AddTimers(int64_t count) {
  const int32_t first = num_tasks();
  pair_.resize(pair_.size() + count, kTimer);
  amounts_.resize(amounts_.size() + count, 0.0);
  return first;
}

void TaskGraph::Finish() {
  first_successor_.assign(num_tasks() + 1, 0);
  num_predecessors_.assign(num_tasks(), 0);
  for (const Edge& edge : edges_) {
    ++first_successor_[edge.before + 1];
    ++num_predecessors_[edge.after];
  }
  for (int32_t task = 0; task < num_tasks(); ++task) {
    first_successor_[task + 1] += first_successor_[task];
  }
  successors_.resize(edges_.size());
  std::vector<int32_t> next = first_successor_;
  for (const Edge& edge : edges_) {
    successors_[next[edge.before]++] = edge.after;
  }
  std::vector<Edge>().swap(edges_);
}

}  // namespace weir::sim
