// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/muon.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "models/kernels.h"

namespace weir::sim {
namespace {

constexpr int kDefaultIterations = 5;  // Liu et al. 2025, section 2.1
constexpr double kElementBytes = 2;    // iterations run in bf16

// Returns the kernels of one iteration for a matrix of m x n, m <= n.
std::vector<models::Kernel> Iteration(double m, double n) {
  return {models::GemmKernel(1, m, m, n, kElementBytes),
          models::GemmKernel(1, m, m, m, kElementBytes),
          models::GemmKernel(1, m, n, m, kElementBytes)};
}

}  // namespace

bool UsesMuon(const Training& training) {
  return training.optimizer() == MUON || training.optimizer() == DIST_MUON;
}

double MatrixParameters(const models::LayerList& layers, int first, int last) {
  double parameters = 0;
  for (int l = first; l < last; ++l) {
    for (const models::WeightMatrix& matrix : layers[l].matrices) {
      parameters += matrix.count * matrix.rows * matrix.columns;
    }
  }
  return parameters;
}

Orthogonalization OrthogonalizationOf(const models::LayerList& layers,
                                      int first, int last,
                                      const Training& training, double part,
                                      const DeviceProfile& device,
                                      const calibrate::KernelPrices& prices,
                                      double peak_flops) {
  std::map<std::pair<double, double>, double> counts;
  double total = 0;
  for (int l = first; l < last; ++l) {
    for (const models::WeightMatrix& matrix : layers[l].matrices) {
      counts[std::minmax({matrix.rows, matrix.columns})] += matrix.count;
      total += matrix.count;
    }
  }
  Orthogonalization all;
  if (total == 0) return all;
  const double owned = std::ceil(total * part - 1e-9) / total;
  const double iterations = training.muon_num_ns_steps() > 0
                                ? training.muon_num_ns_steps()
                                : kDefaultIterations;
  for (const auto& [sides, count] : counts) {
    const auto [m, n] = sides;
    for (const models::Kernel& kernel : Iteration(m, n)) {
      const double times = count * owned * iterations;
      all.flops += times * kernel.flops;
      all.seconds += times * prices.Price(device, peak_flops, kernel).seconds;
    }
    // X and its successor, A and B.
    all.scratch_bytes =
        std::max(all.scratch_bytes, 2 * kElementBytes * (m * n + m * m));
  }
  return all;
}

}  // namespace weir::sim
