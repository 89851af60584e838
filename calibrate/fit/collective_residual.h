// SPDX-License-Identifier: Apache-2.0
// How far off fits of collectives are on what they have not seen.
#ifndef WEIR_CALIBRATE_FIT_COLLECTIVE_RESIDUAL_H_
#define WEIR_CALIBRATE_FIT_COLLECTIVE_RESIDUAL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "calibrate/collective_model.h"
#include "calibrate/figure.pb.h"
#include "calibrate/fit/fit_collectives.h"

namespace weir {

// Seconds of every sample by a fit to all of another collective or number of
// ranks. Errors as FitCollectives.
absl::StatusOr<std::vector<double>> CrossValidateCollectives(
    const CollectiveModel& start, absl::Span<const CollectiveSample> samples);

// The collective_residual of `fit`, a fit to the samples that began at `start`:
// from errors of fits that a fifth of the (collective, number of ranks) were
// left out of in turn; where fewer than three (collective, number of ranks)
// were measured, from the fit's own, and the figure says so.
absl::StatusOr<Figure> CollectiveResidual(
    const CollectiveModel& start, absl::Span<const CollectiveSample> samples,
    const CollectiveFit& fit, absl::string_view source);

}  // namespace weir

#endif  // WEIR_CALIBRATE_FIT_COLLECTIVE_RESIDUAL_H_
