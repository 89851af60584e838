// SPDX-License-Identifier: Apache-2.0
// Draws pictures with gnuplot.
#ifndef WEIR_CLI_GNUPLOT_H_
#define WEIR_CLI_GNUPLOT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weir {

// Returns Unavailable, in one line, where there is no gnuplot.
absl::Status FindGnuplot();

// Returns the SVG document that a script draws. gnuplot runs strings as
// programs (`...`, "< ..."), so the script must not hold any text of the user.
// Its settings are gnuplot's defaults, whatever ~/.gnuplot says.
absl::StatusOr<std::string> DrawSvg(const std::string& script);

}  // namespace weir

#endif  // WEIR_CLI_GNUPLOT_H_
