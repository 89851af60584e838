// SPDX-License-Identifier: Apache-2.0
// Every Figure inside a message, by its path.
#ifndef WEIR_CALIBRATE_PROFILE_FIGURES_H_
#define WEIR_CALIBRATE_PROFILE_FIGURES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "calibrate/profile/figure.pb.h"

namespace google::protobuf {
class Message;
}

namespace weir::calibrate {

struct NamedFigure {
  // "collectives.ll.base_seconds", "matrix_rates[0].peak_..."
  std::string path;
  Figure* figure;  // points into the message
  // The number format of a figure in matrix_rates, "bf16"; else empty.
  std::string format;
};

// Returns all figures that are set, including nested ones, in field order.
std::vector<NamedFigure> FiguresOf(google::protobuf::Message* message);

// Returns the name of the kind ("fitted"), "unspecified" if it is not set.
absl::string_view NameOf(Figure::Kind kind);

// Returns one standard deviation of the logarithm of the figure: its
// relative_error if set, otherwise 0 for datasheet, 0.02 for measured, 0.05 for
// fitted and 0.2 for assumed values (docs/uncertainty.md explains why).
double RelativeError(const Figure& figure);

// Standard deviation over mean absolute error of a normal distribution.
inline constexpr double kDeviationOfMeanError = 1.2533141373155003;

// Extends the range to contain the value. An absent range (0 to 0) becomes the
// value alone.
void Include(double value, Range* range);

// Returns the residual of a fit as a figure, from its mean absolute error.
Figure ResidualOf(double mean_absolute_error, absl::string_view source);

// Reports a figure that is out of range or lacks a kind or source.
void CheckFigure(absl::string_view field, const Figure& figure, double low,
                 double high, Problems* problems);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PROFILE_FIGURES_H_
