// SPDX-License-Identifier: Apache-2.0
// Seconds of a message over its size, as a few straight pieces.
#ifndef WEIR_CALIBRATE_NETWORK_FIT_TRANSFER_H_
#define WEIR_CALIBRATE_NETWORK_FIT_TRANSFER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "calibrate/measured_costs.pb.h"

namespace weir {

struct TransferSample {
  double bytes = 0;
  double seconds = 0;
};

struct TransferFit {
  std::vector<TransferPiece> pieces;  // ascending, the first from 0
  double residual = 0;  // standard deviation of log(measured / fitted)
};

// A continuous piecewise linear time, pieces of no less bandwidth and latency
// than those before, breaks at some of the knots: the least squares of the
// relative errors, and of all choices of up to three knots the one with the
// lowest BIC. (What is concave is a sum of min(bytes, knot) with coefficients
// that are not negative. Every choice of knots is tried, and a solution with a
// negative one lies on the border of its choice, which is a choice of fewer: so
// plain least squares find the optimum exactly.) BIC counts the choice itself
// too, log C(knots, breaks), lest noise finds itself a knot (J. Chen, Z. Chen,
// Biometrika 95, 2008).
// InvalidArgument: sizes or seconds that are not positive and finite, less than
// two different sizes, times that fall as sizes grow.
absl::StatusOr<TransferFit> FitTransfer(
    absl::Span<const TransferSample> samples, absl::Span<const double> knots);

// REQUIRES: pieces of a fit, bytes >= 0.
double TransferSeconds(absl::Span<const TransferPiece> pieces, double bytes);

}  // namespace weir

#endif  // WEIR_CALIBRATE_NETWORK_FIT_TRANSFER_H_
