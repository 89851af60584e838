// SPDX-License-Identifier: Apache-2.0
// Computes the step_residual of a runtime with which nine of ten rows are
// inside their intervals:
//
//   accuracy_residual ROWS.csv QUANTITY RESIDUAL [LEFT_OUT.csv]
//
// ROWS is the output of "weir validate --format csv" with a runtime of
// step_residual RESIDUAL; LEFT_OUT has the same rows as predicted by a fit that
// has not seen them.
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "tools/accuracy/row_errors.h"

namespace weir {
namespace {

absl::Status Run(int argc, char** argv) {
  double residual = 0;
  if (argc < 4 || argc > 5 || !absl::SimpleAtod(argv[3], &residual) ||
      !(residual >= 0)) {
    return absl::InvalidArgumentError(
        "usage: accuracy_residual ROWS.csv QUANTITY RESIDUAL [LEFT_OUT.csv]");
  }
  ASSIGN_OR_RETURN(const RowErrors of, LoadRowErrors(argv[1], argv[2]));
  ASSIGN_OR_RETURN(const RowErrors rows,
                   LoadRowErrors(argv[argc - 1 == 4 ? 4 : 1], argv[2]));
  const double inside = PartInside(rows, of);
  if (inside < 0) {
    return absl::InvalidArgumentError("no row has an interval");
  }
  std::printf("inside now: %.1f %%\nstep_residual for 90 %%: %.3f\n",
              100 * inside, StepResidual(rows, of, residual));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const absl::Status status = Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
  return 2;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) { return weir::Main(argc, argv); }
