// SPDX-License-Identifier: Apache-2.0
// Every Figure inside a message, by its path.
#ifndef WEIR_CALIBRATE_FIGURES_H_
#define WEIR_CALIBRATE_FIGURES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "calibrate/figure.pb.h"

namespace google::protobuf {
class Message;
}

namespace weir {

struct NamedFigure {
  std::string
      path;        // "collectives.ll.base_seconds", "matrix_rates[0].peak_..."
  Figure* figure;  // in the message
};

// The figures that are set, in the order of the fields; nested ones too.
std::vector<NamedFigure> FiguresOf(google::protobuf::Message* message);

// "fitted"; "unspecified" where it is not said.
absl::string_view NameOf(Figure::Kind kind);

// One standard deviation of the figure's logarithm: what it says itself, else 0
// of a datasheet's, 0.02 measured, 0.05 fitted, 0.2 assumed
// (docs/uncertainty.md says why).
double RelativeError(const Figure& figure);

// Of normal errors, one standard deviation for a mean absolute one.
inline constexpr double kDeviationOfMeanError = 1.2533141373155003;

// Grows to hold the value. Absent (0 to 0): it begins there.
void Include(double value, Range* range);

// A residual of a fit, from its mean absolute error.
Figure ResidualOf(double mean_absolute_error, absl::string_view source);

// Adds a problem where a figure is out of range, or does not say what it is or
// where it comes from.
void CheckFigure(absl::string_view field, const Figure& figure, double low,
                 double high, Problems* problems);

}  // namespace weir

#endif  // WEIR_CALIBRATE_FIGURES_H_
