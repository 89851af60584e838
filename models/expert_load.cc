// SPDX-License-Identifier: Apache-2.0
#include "models/expert_load.h"

#include <algorithm>
#include <boost/math/quadrature/tanh_sinh.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/tools/roots.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

namespace weir::models {
namespace {

constexpr double kLeastConcentration = 1e-3;
// Above it, shares are almost normally distributed with a standard deviation of
// 1 / sqrt(concentration), and the integrals would take seconds.
constexpr double kNormalConcentration = 1e4;

// Returns ConcentrationFor() a possible imbalance. Searches ask for the same
// few models again and again.
double Concentration(double n, double imbalance) {
  thread_local std::map<std::pair<double, double>, double> concentrations;
  const auto [known, added] = concentrations.try_emplace({n, imbalance});
  if (added) known->second = ConcentrationFor(n, std::min(imbalance, n));
  return known->second;
}

}  // namespace

double LargestShare(double n, double concentration) {
  if (n == 1) return 1;
  // Outside these limits the integrand is 1, or 0, up to this.
  constexpr double kNegligible = 1e-16;
  if (concentration > kNormalConcentration) {
    return 1 + (LargestShare(n, kNormalConcentration) - 1) *
                   std::sqrt(kNormalConcentration / concentration);
  }
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
  const double normal = LargestShare(n, kNormalConcentration) - 1;
  if (ratio - 1 <= normal) {
    return kNormalConcentration * std::pow(normal / (ratio - 1), 2);
  }
  // The largest share decreases with the concentration.
  const auto excess = [&](double logarithm) {
    return LargestShare(n, std::exp(logarithm)) - ratio;
  };
  const double low = std::log(kLeastConcentration);
  if (excess(low) <= 0) return kLeastConcentration;
  std::uintmax_t num_steps = 100;
  const auto [left, right] = boost::math::tools::toms748_solve(
      excess, low, std::log(kNormalConcentration),
      boost::math::tools::eps_tolerance<double>(45), num_steps);
  return std::exp((left + right) / 2);
}

double LargestImbalance(const Transformer& transformer) {
  return 1.0 * transformer.num_experts() /
         std::max(transformer.experts_per_token(), 1u);
}

double ExpertLoad(const Transformer& transformer, double imbalance,
                  int expert_parallel) {
  const double n = transformer.num_experts();
  const double k = std::max(transformer.experts_per_token(), 1u);
  const double capacity = transformer.capacity_factor();
  if (!(imbalance > 1) || expert_parallel <= 1 || n <= 1) return 1;
  if (capacity > 0 && !transformer.unpadded_capacity()) return 1;
  const double own = n / expert_parallel;  // experts of a GPU
  const double most = expert_parallel * std::min(own, k) / k;
  const double load = std::min(
      LargestShare(expert_parallel, Concentration(n, imbalance) * own), most);
  if (capacity == 0) return load;
  return std::min(load, capacity) / AcceptedTokens(transformer, imbalance);
}

double AcceptedTokens(const Transformer& transformer, double imbalance) {
  const double n = transformer.num_experts();
  const double capacity = transformer.capacity_factor();
  if (capacity == 0 || n == 0) return 1;
  if (!(imbalance > 1) || n == 1) return std::min(capacity, 1.0);
  if (capacity >= n) return 1;
  const double a = Concentration(n, imbalance);
  const double x = capacity / n;
  return boost::math::ibeta(a + 1, (n - 1) * a, x) +
         capacity * boost::math::ibetac(a, (n - 1) * a, x);
}

}  // namespace weir::models
