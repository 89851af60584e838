// SPDX-License-Identifier: Apache-2.0
#include "plan/sensitivity/solve_factor.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weir::plan {
namespace {

constexpr double kSolved = 1e-4;
constexpr double kLargestJump = 5e-3;
constexpr int kMaxSteps = 30;

// A point of the search: logarithms of the factor, and of the prediction over
// the target.
struct FactorPoint {
  double x = 0, y = 0;
};

class FactorSearch {
 public:
  explicit FactorSearch(const FactorProblem& problem)
      : problem_(problem),
        start_{0, std::log(problem.start_seconds / problem.target_seconds)} {}

  std::optional<double> Run() {
    if (std::abs(start_.y) < kSolved) return 1;
    const bool up = (start_.y > 0) == (problem_.elasticity < 0);
    for (const bool direction : {up, !up}) {
      const auto far = direction == up ? Expand(direction) : Limit(direction);
      if (!far.has_value()) continue;
      if (std::abs(far->y) < kSolved) return std::exp(far->x);
      if ((far->y > 0) == (start_.y > 0)) continue;
      const FactorPoint root = Narrow(near_, *far);
      if (std::abs(root.y) < kLargestJump) return std::exp(root.x);
    }
    return {};
  }

 private:
  std::optional<FactorPoint> At(double x) const {
    const std::optional<double> seconds = problem_.seconds(std::exp(x));
    if (!seconds.has_value() || !(*seconds > 0)) return {};
    return FactorPoint{x, std::log(*seconds / problem_.target_seconds)};
  }

  std::optional<FactorPoint> Limit(bool up) {
    near_ = start_;
    const double limit = std::log(up ? problem_.high : problem_.low);
    if (limit == 0) return {};
    return At(limit);
  }

  // Moves away from 1, from the point that the elasticity predicts, until the
  // target is crossed or the limit is reached. `near_` becomes the last point
  // before it.
  std::optional<FactorPoint> Expand(bool up) {
    near_ = start_;
    const double limit = std::log(up ? problem_.high : problem_.low);
    const double guess = 1.1 * std::abs(start_.y / problem_.elasticity);
    double step = std::clamp(guess, 1e-3, std::abs(limit));
    while (std::abs(limit) > 0) {
      const auto at = At(up ? step : -step);
      if (!at.has_value()) return {};
      if ((at->y > 0) != (start_.y > 0) || std::abs(at->y) < kSolved ||
          step >= std::abs(limit)) {
        return at;
      }
      near_ = *at;
      step = std::min(2 * step, std::abs(limit));
    }
    return {};
  }

  // Returns the best point between two on different sides of the target. Uses
  // false position, and bisection whenever that does not halve the bracket in
  // two steps.
  FactorPoint Narrow(FactorPoint a, FactorPoint b) const {
    FactorPoint best = std::abs(a.y) < std::abs(b.y) ? a : b;
    double last_width = std::abs(b.x - a.x);
    for (int i = 0; i < kMaxSteps && std::abs(best.y) >= kSolved; ++i) {
      const double width = std::abs(b.x - a.x);
      if (width < 1e-7) break;
      const bool bisect = i % 3 == 2 && width > last_width / 2;
      if (i % 3 == 2) last_width = width;
      const double x =
          bisect ? (a.x + b.x) / 2 : a.x - a.y * (b.x - a.x) / (b.y - a.y);
      const auto at = At(x);
      if (!at.has_value()) break;
      if (std::abs(at->y) < std::abs(best.y)) best = *at;
      ((at->y > 0) == (a.y > 0) ? a : b) = *at;
    }
    return best;
  }

  const FactorProblem& problem_;
  const FactorPoint start_;
  FactorPoint near_;
};

}  // namespace

std::optional<double> SolveFactor(const FactorProblem& problem) {
  return FactorSearch(problem).Run();
}

double ValidLimit(double limit, const std::function<bool(double)>& valid) {
  if (valid(limit)) return limit;
  double good = 0, bad = std::log(limit);
  while (std::abs(bad - good) > 1e-3) {
    const double middle = (good + bad) / 2;
    (valid(std::exp(middle)) ? good : bad) = middle;
  }
  return std::exp(good);
}

}  // namespace weir::plan
