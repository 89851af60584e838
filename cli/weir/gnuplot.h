// SPDX-License-Identifier: Apache-2.0
// Draws pictures with gnuplot.
#ifndef WEIR_CLI_WEIR_GNUPLOT_H_
#define WEIR_CLI_WEIR_GNUPLOT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weir::cli {

// Returns Unavailable, with a message of one line, if gnuplot is not installed.
absl::Status FindGnuplot();

// Returns the SVG document that a script draws. gnuplot runs parts of strings
// as programs (`...`, "< ..."), so the script must not contain text from the
// user. Uses gnuplot's default settings and does not read ~/.gnuplot.
absl::StatusOr<std::string> DrawSvg(const std::string& script);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_GNUPLOT_H_
