// SPDX-License-Identifier: Apache-2.0
#include "plan/found.h"

#include <algorithm>
#include <tuple>

namespace weir {
namespace {

// Of figures that are equal.
constexpr double kRounding = 1e-9;

}  // namespace

Score ScoreOf(Objective objective, double seconds, double bytes, int num_gpus) {
  if (objective == OBJECTIVE_MEMORY) return {bytes, seconds};
  if (objective == OBJECTIVE_COST) return {seconds * num_gpus, bytes};
  return {seconds, bytes};
}

bool Dominates(const Found& one, const Found& other) {
  const auto compare = [](double a, double b) {
    return a < b * (1 - kRounding) ? -1 : a > b * (1 + kRounding) ? 1 : 0;
  };
  const int seconds = compare(one.seconds, other.seconds);
  const int bytes = compare(one.bytes, other.bytes);
  const int cost =
      compare(one.seconds * one.num_gpus, other.seconds * other.num_gpus);
  if (seconds > 0 || bytes > 0 || cost > 0) return false;
  return seconds + bytes + cost < 0 || one.index < other.index;
}

std::vector<Found> BestOf(std::vector<Found> found, Objective objective,
                          size_t num_plans) {
  std::sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
    const Score of_a = ScoreOf(objective, a.seconds, a.bytes, a.num_gpus);
    const Score of_b = ScoreOf(objective, b.seconds, b.bytes, b.num_gpus);
    return std::tie(of_a, a.index) < std::tie(of_b, b.index);
  });
  if (objective != OBJECTIVE_PARETO) {
    if (found.size() > num_plans) found.resize(num_plans);
    return found;
  }
  std::vector<Found> front;
  for (const Found& one : found) {
    const bool beaten =
        std::any_of(found.begin(), found.end(),
                    [&](const Found& other) { return Dominates(other, one); });
    if (!beaten) front.push_back(one);
  }
  return front;
}

}  // namespace weir
