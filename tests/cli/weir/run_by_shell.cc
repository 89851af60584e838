// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/string_view.h"
#include "tests/cli/weir/program.h"

namespace weir::cli {

ProgramRun RunWeir(absl::string_view arguments) {
  return RunWeirAfter("", arguments);
}

}  // namespace weir::cli
