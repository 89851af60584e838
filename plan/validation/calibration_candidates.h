// SPDX-License-Identifier: Apache-2.0
// Parameters that a calibration may change, and groups of them that the runs
// cannot tell apart.
#ifndef WEIR_PLAN_VALIDATION_CALIBRATION_CANDIDATES_H_
#define WEIR_PLAN_VALIDATION_CALIBRATION_CANDIDATES_H_

#include <string>
#include <vector>

#include "plan/sensitivity/parameters.h"
#include "plan/validation/calibrate_runs.h"

namespace weir::plan {

// One parameter of several runs.
struct CalibrationCandidate {
  Parameter parameter;
  std::vector<int> index;  // [run], in ParametersOf; -1: the run has none
};

// Returns the uncertain parameters of the runs, each once.
std::vector<CalibrationCandidate> CandidatesOf(
    const std::vector<CalibrationRun>& runs);

// Parameters that change all runs in the same proportions, such as a rate and
// the efficiency that multiplies it. Runs cannot tell them apart, so the one
// with the largest influence represents all of them.
struct CandidateGroup {
  const CalibrationCandidate* representative = nullptr;
  std::vector<double> sensitivities;  // [run], of the representative
  double variance = 0;  // prior, of the logarithm of the group's factor
  std::vector<std::string> others;
};

// Adds a candidate to the group that it is proportional to, or as a new group.
// `sensitivities`: [run] relative change of the time per relative change of the
// parameter. Requires: the candidate outlives the groups.
void AddToGroups(const CalibrationCandidate* candidate,
                 std::vector<double> sensitivities,
                 std::vector<CandidateGroup>* groups);

}  // namespace weir::plan

#endif  // WEIR_PLAN_VALIDATION_CALIBRATION_CANDIDATES_H_
