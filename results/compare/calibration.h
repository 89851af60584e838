// SPDX-License-Identifier: Apache-2.0
// Proposed values of model parameters, from measured runs.
#ifndef WEIR_RESULTS_COMPARE_CALIBRATION_H_
#define WEIR_RESULTS_COMPARE_CALIBRATION_H_

#include <string>
#include <vector>

namespace weir::results {

struct ProposedFigure {
  std::string owner;  // "H100-SXM5-80GB"
  std::string path;   // as in --set: "runtime.exchange_seconds"
  std::string kind;
  double value = 0;  // of the profile, runtime or cluster
  double proposed = 0;
  // One standard deviation of the logarithm: of this parameter before, and of
  // the proposed value given the runs.
  double relative_error = 0;
  double proposed_relative_error = 0;
  // Other parameters that change all runs in the same proportions, so that the
  // runs do not show which of them is wrong.
  std::vector<std::string> indistinguishable = {};
};

// A profile or runtime that inherits from the one in use and contains the
// proposed values.
struct ProfileOverlay {
  std::string option;  // "--profile" or "--runtime"
  std::string owner;
  std::string text;  // textproto
};

struct Calibration {
  int num_runs = 0;        // with a measured time
  int num_parameters = 0;  // that could have been proposed
  std::vector<ProposedFigure> figures;
  std::string why_none;  // the reason if `figures` is empty
  // Mean absolute errors of the time of a run when neither the choice of
  // parameters nor their values use this run; and one standard error of their
  // difference.
  double error_before = 0, error_after = 0, gain_standard_error = 0;
  // Mean absolute error on the same runs, simulated with all proposed values.
  double error_applied = 0;
  std::vector<ProfileOverlay> overlays;
};

std::string CalibrationTable(const Calibration& calibration);
// Returns a JSON object, without the overlays.
std::string CalibrationJson(const Calibration& calibration);

}  // namespace weir::results

#endif  // WEIR_RESULTS_COMPARE_CALIBRATION_H_
