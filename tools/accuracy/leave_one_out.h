// SPDX-License-Identifier: Apache-2.0
// Accuracy on sources that were not fitted. The figures that are fitted to
// whole training steps are one slowdown of kernels per device
// (DeviceProfile.training_slowdown) and a residual of intervals
// (slower_step_residual and faster_step_residual). Each source (paper, recipe
// collection or blog) is predicted with figures that were fitted to the other
// sources of its device.
#ifndef WEIR_TOOLS_ACCURACY_LEAVE_ONE_OUT_H_
#define WEIR_TOOLS_ACCURACY_LEAVE_ONE_OUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/accuracy/published_sets.h"

namespace weir {

// A measured step.
struct MeasuredStep {
  std::string source;
  std::string program;
  // Logarithm of measured over predicted time without a slowdown.
  double log_error = 0;
  // Change of the logarithm of the predicted time per unit of the logarithm of
  // the slowdown.
  double elasticity = 1;
  // Standard deviation of the logarithm that the prediction states, without the
  // residuals of the device. Negative: none.
  double deviation = -1;
  bool fitted = true;  // false: only predicted (PublishedSet.not_fitted)

  double ErrorAt(double log_slowdown) const {
    return log_error - log_slowdown * elasticity;
  }
};

struct StepFit {
  double log_slowdown = 0;
  double residual = 0;
};

// Returns the slowdown with the least mean absolute error of the logarithm, and
// the residual with which nine of ten steps of a source that was not fitted
// should be inside their interval. The residual follows from a model with two
// random effects: the mean error of a source, and the deviation of a step from
// it. Every source has the same weight, however many steps it has. Fewer than
// two sources: no slowdown, no residual.
StepFit FitSteps(absl::Span<const MeasuredStep> steps);

// Returns true if the measured time is inside the interval of nine of ten.
// Requires: the step has a deviation.
bool IsInside(const MeasuredStep& step, const StepFit& fit);

struct LeftOutSource {
  std::string device, source;
  std::string programs;  // "Megatron-LM 2021"
  std::vector<MeasuredStep> steps;
  StepFit fit;  // to all other sources of the device
};

struct DeviceFit {
  std::string device;   // "H100", also for its variants
  int num_sources = 0;  // that are fitted
  StepFit fit;          // to all sources
  std::vector<LeftOutSource> left_out;
};

// Fits every device. FOLDER/SET.csv holds the rows as predicted without
// slowdown and residuals, SLOWED/SET.csv those with a slowdown of `factor`.
// Leaves out sets with given stage times, sets of memory, and parts of others.
// Returns NotFound if a file does not exist, InvalidArgument if it is malformed
// or the rows of both differ.
absl::StatusOr<std::vector<DeviceFit>> FitDevices(
    absl::Span<const PublishedSet> sets, const std::string& folder,
    const std::string& slowed, double factor);

// Returns Markdown tables: one of left-out sources, one of the fits.
std::string LeaveOneOutTables(absl::Span<const DeviceFit> devices);

}  // namespace weir

#endif  // WEIR_TOOLS_ACCURACY_LEAVE_ONE_OUT_H_
