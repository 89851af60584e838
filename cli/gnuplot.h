// SPDX-License-Identifier: Apache-2.0
// Pictures are gnuplot's.
#ifndef WEIR_CLI_GNUPLOT_H_
#define WEIR_CLI_GNUPLOT_H_

#include <string>

#include "absl/status/status.h"

namespace weir {

// Unavailable, one line, where there is no gnuplot.
absl::Status FindGnuplot();

// Runs a script, which says itself where the picture goes.
absl::Status RunGnuplot(const std::string& script);

}  // namespace weir

#endif  // WEIR_CLI_GNUPLOT_H_
