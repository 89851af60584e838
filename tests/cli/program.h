// SPDX-License-Identifier: Apache-2.0
// Runs the built program as its users do.
#ifndef WEIR_TESTS_CLI_PROGRAM_H_
#define WEIR_TESTS_CLI_PROGRAM_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weir {

struct ProgramRun {
  int exit_code = -1;  // 124: it hung
  std::string out;
  std::string err;
};

// Runs "weir <arguments>" in a shell, in an empty folder of this test's own.
ProgramRun RunWeir(absl::string_view arguments);

// The same with what comes before the program: "NO_COLOR=1", "cd x &&".
ProgramRun RunWeirAfter(absl::string_view before, absl::string_view arguments);

// That folder.
std::string TestFolder();

// Writes a file there and returns its name.
std::string WriteInput(const std::string& name, absl::string_view contents);

}  // namespace weir

#endif  // WEIR_TESTS_CLI_PROGRAM_H_
