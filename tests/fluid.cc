// SPDX-License-Identifier: Apache-2.0
#include "tests/fluid.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace weir::fluid {

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
      const Factors& factors = gpus[tasks[i].gpu];
      bool kernels = false, copies = false;
      for (size_t k = 0; k < n; ++k) {
        const bool here =
            runs[k] && std::count(tasks[k].moves.begin(), tasks[k].moves.end(),
                                  tasks[i].gpu) > 0;
        (tasks[k].copies ? copies : kernels) |= here;
      }
      if (kernels && copies) {
        slower[i] = std::max(factors.kernels, factors.copies);
      } else if (kernels || copies) {
        slower[i] = kernels ? factors.kernels : factors.copies;
      }
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
