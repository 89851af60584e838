// SPDX-License-Identifier: Apache-2.0
#include "cli/gnuplot.h"

#include <cstdio>
#include <cstdlib>

namespace weir {

absl::Status FindGnuplot() {
  if (std::system("command -v gnuplot >/dev/null 2>&1") == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      "gnuplot is not found: install it (Debian: gnuplot-nox), or leave --plot "
      "out");
}

absl::Status RunGnuplot(const std::string& script) {
  std::FILE* pipe = popen("gnuplot", "w");
  if (pipe == nullptr) return absl::UnavailableError("gnuplot does not start");
  const bool written =
      std::fwrite(script.data(), 1, script.size(), pipe) == script.size();
  // What it complains of is on standard error.
  if (pclose(pipe) == 0 && written) return absl::OkStatus();
  return absl::InvalidArgumentError("--plot: gnuplot did not draw it");
}

}  // namespace weir
