// SPDX-License-Identifier: Apache-2.0
#include "plan/validation/calibration_candidates.h"

#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "plan/sensitivity/parameters.h"
#include "plan/validation/calibrate_runs.h"

namespace weir::plan {
namespace {

// Measured links have a figure for messages, but their rates would not follow
// from it in an overlay.
bool CanBeProposed(const Parameter& parameter) {
  return parameter.relative_error > 0 && parameter.value > 0 &&
         !absl::StartsWith(parameter.path, "links[");
}

// Returns the factor c with which b = c a, or 0 if there is none.
double ProportionOf(const std::vector<double>& a,
                    const std::vector<double>& b) {
  constexpr double kLeastCosine = 0.999;
  double aa = 0, bb = 0, ab = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    aa += a[i] * a[i];
    bb += b[i] * b[i];
    ab += a[i] * b[i];
  }
  return std::abs(ab) >= kLeastCosine * std::sqrt(aa * bb) ? ab / aa : 0;
}

}  // namespace

std::vector<CalibrationCandidate> CandidatesOf(
    const std::vector<CalibrationRun>& runs) {
  using Key = std::tuple<Parameter::Of, std::string, std::string, double>;
  std::map<Key, size_t> known;
  std::vector<CalibrationCandidate> candidates;
  for (size_t run = 0; run < runs.size(); ++run) {
    const std::vector<Parameter> parameters = ParametersOf(*runs[run].scenario);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Parameter& parameter = parameters[i];
      if (!CanBeProposed(parameter)) continue;
      const auto [at, is_new] = known.try_emplace(
          Key(parameter.of, parameter.owner, parameter.path, parameter.value),
          candidates.size());
      if (is_new) {
        candidates.push_back({parameter, std::vector<int>(runs.size(), -1)});
      }
      candidates[at->second].index[run] = static_cast<int>(i);
    }
  }
  return candidates;
}

void AddToGroups(const CalibrationCandidate* candidate,
                 std::vector<double> sensitivities,
                 std::vector<CandidateGroup>* groups) {
  const double error = candidate->parameter.relative_error;
  for (CandidateGroup& group : *groups) {
    const double proportion = ProportionOf(group.sensitivities, sensitivities);
    if (proportion == 0) continue;
    const Parameter& first = group.representative->parameter;
    group.variance += std::pow(proportion * error, 2);
    if (std::abs(proportion) * error <= first.relative_error) {
      group.others.push_back(candidate->parameter.setting());
      return;
    }
    group.others.push_back(first.setting());
    group.representative = candidate;
    group.sensitivities = std::move(sensitivities);
    group.variance /= proportion * proportion;
    return;
  }
  groups->push_back({candidate, std::move(sensitivities), error * error, {}});
}

}  // namespace weir::plan
