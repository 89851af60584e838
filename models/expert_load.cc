// SPDX-License-Identifier: Apache-2.0
#include "models/expert_load.h"

#include <algorithm>
#include <boost/math/quadrature/tanh_sinh.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <map>
#include <utility>

namespace weir::models {
namespace {

constexpr double kLeastConcentration = 1e-3, kMostConcentration = 1e9;

}  // namespace

double LargestShare(double n, double concentration) {
  if (n == 1) return 1;
  // Outside these limits the integrand is 1, or 0, up to this.
  constexpr double kNegligible = 1e-16;
  const double a = concentration;
  const double low = boost::math::gamma_p_inv(a, std::pow(kNegligible, 1 / n));
  const double high = boost::math::gamma_q_inv(a, kNegligible / n);
  const auto above = [&](double x) {
    // 1 - (1 - q)^n without cancellation.
    return -std::expm1(n * std::log1p(-boost::math::gamma_q(a, x)));
  };
  // For small concentrations the integrand is steep at 0.
  boost::math::quadrature::tanh_sinh<double> integrator;
  return (low + integrator.integrate(above, low, high, 1e-12)) / a;
}

double ConcentrationFor(double n, double ratio) {
  double low = std::log(kLeastConcentration);
  double high = std::log(kMostConcentration);
  // The largest share decreases with the concentration.
  while (high - low > 1e-12) {
    const double middle = (low + high) / 2;
    if (middle == low || middle == high) break;
    (LargestShare(n, std::exp(middle)) > ratio ? low : high) = middle;
  }
  return std::exp((low + high) / 2);
}

double LargestImbalance(const Transformer& transformer) {
  return 1.0 * transformer.num_experts() /
         std::max(transformer.experts_per_token(), 1u);
}

double ExpertLoad(const Transformer& transformer, double imbalance,
                  int expert_parallel) {
  const double n = transformer.num_experts();
  const double k = std::max(transformer.experts_per_token(), 1u);
  if (!(imbalance > 1) || expert_parallel <= 1 || n <= 1) return 1;
  // Searches ask for the same few models again and again.
  thread_local std::map<std::pair<double, double>, double> concentrations;
  const auto [known, added] = concentrations.try_emplace({n, imbalance});
  if (added) known->second = ConcentrationFor(n, std::min(imbalance, n));
  const double own = n / expert_parallel;  // experts of a GPU
  const double most = expert_parallel * std::min(own, k) / k;
  return std::min(LargestShare(expert_parallel, known->second * own), most);
}

}  // namespace weir::models
