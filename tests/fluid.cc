// SPDX-License-Identifier: Apache-2.0
#include "tests/fluid.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>

namespace weir::fluid {
namespace {

// Returns the factor by which the flows slow down a timer on GPU `gpu`.
double ByFlows(const std::vector<Task>& tasks, const std::vector<bool>& runs,
               int gpu, const Factors& factors) {
  bool kernels = false, copies = false;
  for (size_t k = 0; k < tasks.size(); ++k) {
    const std::vector<int>& moves = tasks[k].moves;
    const bool here =
        runs[k] && std::count(moves.begin(), moves.end(), gpu) > 0;
    (tasks[k].copies ? copies : kernels) |= here;
  }
  if (kernels && copies) return std::max(factors.kernels, factors.copies);
  if (!kernels && !copies) return 1;
  return kernels ? factors.kernels : factors.copies;
}

// Returns the factor by which the computing partitions of the same physical GPU
// slow down `task`.
double ByParts(const std::vector<Task>& tasks, const std::vector<bool>& runs,
               const std::vector<Factors>& gpus, const Task& task) {
  if (task.by_parts.empty()) return 1;
  std::set<int> computing;
  for (size_t k = 0; k < tasks.size(); ++k) {
    if (runs[k] && tasks[k].gpu >= 0 && tasks[k].seconds > 0 &&
        gpus[tasks[k].gpu].gpu == gpus[task.gpu].gpu) {
      computing.insert(tasks[k].gpu);
    }
  }
  return task.by_parts[computing.size() - 1];
}

}  // namespace

std::vector<double> EndSeconds(const std::vector<Task>& tasks,
                               const std::vector<Factors>& gpus) {
  const size_t n = tasks.size();
  std::vector<double> left(n), end(n, -1);
  for (size_t i = 0; i < n; ++i) left[i] = tasks[i].seconds;
  double now = 0;
  for (size_t num_ended = 0; num_ended < n;) {
    std::vector<bool> runs(n);
    for (size_t i = 0; i < n; ++i) {
      runs[i] = end[i] < 0 &&
                std::all_of(tasks[i].after.begin(), tasks[i].after.end(),
                            [&](int before) { return end[before] >= 0; });
    }
    std::vector<double> slower(n, 1);
    for (size_t i = 0; i < n; ++i) {
      if (!runs[i] || tasks[i].gpu < 0) continue;
      if (tasks[i].by_flows) {
        slower[i] = ByFlows(tasks, runs, tasks[i].gpu, gpus[tasks[i].gpu]);
      }
      slower[i] *= ByParts(tasks, runs, gpus, tasks[i]);
    }
    double step = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < n; ++i) {
      if (runs[i]) step = std::min(step, left[i] * slower[i]);
    }
    now += step;
    for (size_t i = 0; i < n; ++i) {
      if (!runs[i]) continue;
      left[i] -= step / slower[i];
      if (left[i] <= 1e-13 * tasks[i].seconds) {
        end[i] = now;
        ++num_ended;
      }
    }
  }
  return end;
}

}  // namespace weir::fluid
