// SPDX-License-Identifier: Apache-2.0
// Fits the time of a message as a piecewise linear function of its size.
#ifndef WEIR_CALIBRATE_FABRIC_FIT_TRANSFER_H_
#define WEIR_CALIBRATE_FABRIC_FIT_TRANSFER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "calibrate/profile/measured_costs.pb.h"

namespace weir::calibrate {

struct TransferSample {
  double bytes = 0;
  double seconds = 0;
};

struct TransferFit {
  std::vector<TransferPiece> pieces;  // ascending, the first from 0
  double residual = 0;  // standard deviation of log(measured / fitted)
};

// Fits a continuous piecewise linear time in which each piece has at least the
// bandwidth and latency of the previous one, with breaks at some of the knots.
// It minimizes the squares of the relative errors, and of all choices of up to
// three knots has the lowest BIC.
//
// The minimum is exact. A concave function is a sum of min(bytes, knot) with
// nonnegative coefficients. Every choice of knots is solved by plain least
// squares; a solution with a negative coefficient means that the constrained
// optimum lies on the boundary, which is a choice of fewer knots. BIC includes
// the choice of knots, log C(knots, breaks), so that noise does not add knots
// (J. Chen, Z. Chen, Biometrika 95, 2008).
//
// Messages that take less time than the host needs to launch them, as those of
// a GPU to itself up to 64 MiB, take the time of the launch: the time is then
// convex, max(launch, bytes / rate), and the fit is a line with a large
// residual, below the times of the largest messages.
//
// Returns InvalidArgument for sizes or seconds that are not positive and
// finite, fewer than two different sizes, or times that fall as sizes grow.
absl::StatusOr<TransferFit> FitTransfer(
    absl::Span<const TransferSample> samples, absl::Span<const double> knots);

// Returns the fitted time of a message. Requires: pieces of a fit, bytes >= 0.
double TransferSeconds(absl::Span<const TransferPiece> pieces, double bytes);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_FIT_TRANSFER_H_
