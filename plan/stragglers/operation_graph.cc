// SPDX-License-Identifier: Apache-2.0
#include "plan/stragglers/operation_graph.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace weir::plan {

absl::Status OperationGraph::Finish() {
  const auto n = static_cast<size_t>(num_operations_);
  first_before_.assign(n + 1, 0);
  std::vector<int32_t> first_after(n + 1, 0);
  for (const Edge& edge : edges_) {
    ++first_before_[edge.after + 1];
    ++first_after[edge.before + 1];
  }
  for (size_t i = 0; i < n; ++i) {
    first_before_[i + 1] += first_before_[i];
    first_after[i + 1] += first_after[i];
  }
  before_.resize(edges_.size());
  std::vector<int32_t> after(edges_.size());
  std::vector<int32_t> next_before(first_before_.begin(), first_before_.end());
  std::vector<int32_t> next_after(first_after.begin(), first_after.end());
  for (const Edge& edge : edges_) {
    before_[next_before[edge.after]++] = edge.before;
    after[next_after[edge.before]++] = edge.after;
  }
  std::vector<Edge>().swap(edges_);

  std::vector<int32_t> group_of(n, -1), waiting(groups_.size(), 0);
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const int32_t i : groups_[g]) group_of[i] = static_cast<int32_t>(g);
    waiting[g] = static_cast<int32_t>(groups_[g].size());
  }
  std::vector<int32_t> open(n), ready;
  for (size_t i = 0; i < n; ++i) {
    open[i] = first_before_[i + 1] - first_before_[i];
    if (open[i] == 0) ready.push_back(static_cast<int32_t>(i));
  }
  order_.clear();
  first_of_set_ = {0};
  const auto release = [&](int32_t operation) {
    for (int32_t e = first_after[operation]; e < first_after[operation + 1];
         ++e) {
      if (--open[after[e]] == 0) ready.push_back(after[e]);
    }
  };
  for (size_t i = 0; i < ready.size(); ++i) {
    const int32_t g = group_of[ready[i]];
    const size_t begin = order_.size();
    if (g < 0) {
      order_.push_back(ready[i]);
    } else if (--waiting[g] == 0) {
      order_.insert(order_.end(), groups_[g].begin(), groups_[g].end());
    } else {
      continue;
    }
    first_of_set_.push_back(static_cast<int32_t>(order_.size()));
    for (size_t k = begin; k < order_.size(); ++k) release(order_[k]);
  }
  if (order_.size() == n) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(n - order_.size(), " of ", n,
                   " operations wait for each other, expected an order in "
                   "which all can run"));
}

void OperationGraph::Run(std::span<const double> seconds,
                         std::span<const double> delays, Times* times) const {
  times->launch.resize(num_operations_);
  times->end.resize(num_operations_);
  times->makespan = 0;
  for (size_t s = 0; s < num_sets(); ++s) {
    double begin = 0;
    for (const int32_t i : set(s)) {
      double launch = 0;
      for (const int32_t before : dependencies(i)) {
        launch = std::max(launch, times->end[before]);
      }
      if (!delays.empty()) launch += delays[i];
      times->launch[i] = launch;
      begin = std::max(begin, launch);
    }
    for (const int32_t i : set(s)) {
      times->end[i] = begin + seconds[i];
      times->makespan = std::max(times->makespan, times->end[i]);
    }
  }
}

std::vector<double> OperationGraph::Slack(std::span<const double> seconds,
                                          std::span<const double> delays,
                                          const Times& times) const {
  std::vector<double> late(num_operations_, times.makespan);
  for (size_t s = num_sets(); s-- > 0;) {
    double begin = std::numeric_limits<double>::infinity();
    for (const int32_t i : set(s)) {
      begin = std::min(begin, late[i] - seconds[i]);
    }
    for (const int32_t i : set(s)) {
      const double launch = delays.empty() ? begin : begin - delays[i];
      for (const int32_t before : dependencies(i)) {
        late[before] = std::min(late[before], launch);
      }
    }
  }
  for (int32_t i = 0; i < num_operations_; ++i) {
    late[i] = std::max(late[i] - times.end[i], 0.0);
  }
  return late;
}

std::vector<double> OperationGraph::Delays(std::span<const double> starts,
                                           std::span<const double> ends) const {
  std::vector<double> delays(num_operations_);
  for (int32_t i = 0; i < num_operations_; ++i) {
    double begin = 0;
    for (const int32_t before : dependencies(i)) {
      begin = std::max(begin, ends[before]);
    }
    delays[i] = std::max(starts[i] - begin, 0.0);
  }
  return delays;
}

}  // namespace weir::plan
