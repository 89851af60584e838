// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/reference/command_run.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace weir::cli::document_runs_test {

ProgramRun RunIn(const std::string& folder, const std::string& text) {
  EXPECT_TRUE(WriteFile(absl::StrCat(folder, "/.command"), text + "\n").ok());
  const int status = std::system(
      absl::StrCat("cd '", folder,
                   "' && unset CI NO_COLOR CLICOLOR_FORCE && PATH='", folder,
                   "/bin':\"$PATH\" timeout 120 bash -o pipefail "
                   ".command > .out 2> .err < /dev/null")
          .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          ReadFile(absl::StrCat(folder, "/.out")).value_or(""),
          ReadFile(absl::StrCat(folder, "/.err")).value_or("")};
}

}  // namespace weir::cli::document_runs_test
