// SPDX-License-Identifier: Apache-2.0
// Differences between two trainings.
#ifndef WEIR_TESTS_CALIBRATE_GPU_REPLAY_DIFFERENCE_H_
#define WEIR_TESTS_CALIBRATE_GPU_REPLAY_DIFFERENCE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "calibrate/execute/execute_schedule.h"
#include "calibrate/execute/training.h"
#include "calibrate/gpu/host/difference.h"

namespace weir::calibrate {

inline std::vector<double> Joined(
    const std::vector<std::vector<double>>& parts) {
  std::vector<double> all;
  for (const auto& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

inline std::vector<double> Losses(const ExecutionRecord& record) {
  std::vector<double> losses;
  for (const StepRecord& step : record.steps) {
    losses.insert(losses.end(), step.losses.begin(), step.losses.end());
  }
  return losses;
}

inline double Differ(const std::vector<double>& a,
                     const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  Difference difference;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference.Add(a[i], b[i]);
  }
  return difference.relative();
}

// Returns the difference of the weights relative to their change in training.
inline double ChangesDiffer(const ExecutionPlan& plan, const ExecutionRecord& a,
                            const ExecutionRecord& b) {
  std::vector<double> of_a = Joined(a.weights), of_b = Joined(b.weights);
  std::vector<std::vector<double>> parts;
  for (int stage = 0; stage < plan.schedule.num_stages; ++stage) {
    parts.push_back(InitialWeights(plan, plan.first_layer[stage],
                                   plan.first_layer[stage + 1]));
  }
  const std::vector<double> initial = Joined(parts);
  for (size_t i = 0; i < initial.size(); ++i) {
    of_a[i] -= initial[i];
    of_b[i] -= initial[i];
  }
  return Differ(of_a, of_b);
}

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_GPU_REPLAY_DIFFERENCE_H_
