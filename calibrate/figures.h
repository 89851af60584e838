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

// Adds a problem where a figure is out of range, or does not say what it is or
// where it comes from.
void CheckFigure(absl::string_view field, const Figure& figure, double low,
                 double high, Problems* problems);

}  // namespace weir

#endif  // WEIR_CALIBRATE_FIGURES_H_
