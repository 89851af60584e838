// SPDX-License-Identifier: Apache-2.0
// Cross-validation errors of fits to collectives.
#ifndef WEIR_CALIBRATE_FIT_COLLECTIVE_RESIDUAL_H_
#define WEIR_CALIBRATE_FIT_COLLECTIVE_RESIDUAL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "calibrate/fit/fit_collectives.h"
#include "calibrate/profile/collective_model.h"
#include "calibrate/profile/figure.pb.h"

namespace weir::calibrate {

// Returns the predicted time of every sample by a fit that excludes the
// samples of the same collective and number of ranks. Errors as for
// FitCollectives.
absl::StatusOr<std::vector<double>> CrossValidateCollectives(
    const CollectiveModel& start, absl::Span<const CollectiveSample> samples);

// Returns the collective_residual of `fit`, a fit to the samples that started
// from `start`. It is the error of fits that each leave out a fifth of the
// (collective, number of ranks) groups. With fewer than three groups it is the
// error of `fit` itself, and the source of the returned figure says so.
absl::StatusOr<Figure> CollectiveResidual(
    const CollectiveModel& start, absl::Span<const CollectiveSample> samples,
    const CollectiveFit& fit, absl::string_view source);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_COLLECTIVE_RESIDUAL_H_
