// SPDX-License-Identifier: Apache-2.0
// Fits a device's collective model to measurements.
#ifndef WEIR_CALIBRATE_FIT_FIT_COLLECTIVES_H_
#define WEIR_CALIBRATE_FIT_FIT_COLLECTIVES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/error_statistics.h"
#include "calibrate/pricing/collective_seconds.h"
#include "calibrate/profile/collective_model.h"

namespace weir::calibrate {

// One measurement. `bytes` is defined as for CheapestCollective().
struct CollectiveSample {
  models::CollectiveKind kind = models::CollectiveKind::kAllReduce;
  double bytes = 0;
  CollectiveGroup group;
  double seconds = 0;
};

struct CollectiveFit {
  CollectiveModel model;
  ErrorStatistics errors;  // on the fitted samples
  // Names (see CollectiveFigures()) of the parameters that the samples
  // determine. The others keep their starting values.
  std::vector<std::string> fitted;
};

// Returns a starting point for fits: NCCL's own constants, with guesses for the
// parameters that NCCL lacks.
CollectiveModel CollectiveStart(NcclGeneration generation);

// Fits the parameters of `start` to the samples by least squares on the
// logarithms of predicted and measured seconds. Errors beyond 10 % count
// linearly. A regularization of 2 % of each parameter's change of logarithm
// resolves what the samples leave open. Parameters that affect the samples
// become FITTED with `source`. The same input yields identical output.
// Returns InvalidArgument if there are no samples or one has non-positive
// bytes, ranks, rates or seconds.
absl::StatusOr<CollectiveFit> FitCollectives(
    const CollectiveModel& start, absl::Span<const CollectiveSample> samples,
    absl::string_view source);

// Returns the predicted time of each sample.
std::vector<double> PredictCollectives(
    const CollectiveModel& model, absl::Span<const CollectiveSample> samples);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_FIT_COLLECTIVES_H_
