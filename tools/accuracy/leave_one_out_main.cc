// SPDX-License-Identifier: Apache-2.0
// Prints the errors of sources that were left out of the fit:
//
//   accuracy_leave_one_out SETS.csv FOLDER SLOWED FACTOR > left_out.md
//
// FOLDER and SLOWED hold SET.csv as written by "weir validate --format csv"
// with the slowdown set to 1 and to FACTOR.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/accuracy/leave_one_out.h"
#include "tools/accuracy/published_sets.h"

namespace weir {
namespace {

absl::StatusOr<std::string> Tables(const std::string& sets_path,
                                   const std::string& folder,
                                   const std::string& slowed,
                                   const std::string& factor_text) {
  double factor = 0;
  if (!absl::SimpleAtod(factor_text, &factor) || !(factor > 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "FACTOR is \"", factor_text, "\", expected a number above 1"));
  }
  ASSIGN_OR_RETURN(const std::vector<PublishedSet> sets,
                   LoadPublishedSets(sets_path, folder));
  ASSIGN_OR_RETURN(const std::vector<DeviceFit> devices,
                   FitDevices(sets, folder, slowed, factor));
  return LeaveOneOutTables(devices);
}

int Main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s SETS.csv FOLDER SLOWED FACTOR\n", argv[0]);
    return 2;
  }
  const absl::StatusOr<std::string> tables =
      Tables(argv[1], argv[2], argv[3], argv[4]);
  if (!tables.ok()) {
    std::fprintf(stderr, "error: %s\n",
                 std::string(tables.status().message()).c_str());
    return 2;
  }
  std::fwrite(tables->data(), 1, tables->size(), stdout);
  return 0;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) { return weir::Main(argc, argv); }
