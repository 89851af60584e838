// SPDX-License-Identifier: Apache-2.0
// Runs the built program as its users do.
#ifndef WEIR_TESTS_CLI_WEIR_PROGRAM_H_
#define WEIR_TESTS_CLI_WEIR_PROGRAM_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weir::cli {

struct ProgramRun {
  int exit_code = -1;  // 124 if it hung
  std::string out;
  std::string err;
};

// Runs "weir <arguments>" as a shell does, in a temporary folder of this test.
// run_by_shell.cc starts the program, run_by_fork.cc forks the test if the
// arguments are plain words.
ProgramRun RunWeir(absl::string_view arguments);

// Runs the same in a folder below it, or an absolute one. In run_by_fork.cc.
ProgramRun RunWeirIn(const std::string& folder, absl::string_view arguments);

// Runs the same with text before the program, such as "NO_COLOR=1" or "cd x
// &&".
ProgramRun RunWeirAfter(absl::string_view before, absl::string_view arguments);

// Returns the path of that folder, which starts empty.
std::string TestFolder();

// Writes a file into that folder and returns its name.
std::string WriteInput(const std::string& name, absl::string_view contents);

}  // namespace weir::cli

#endif  // WEIR_TESTS_CLI_WEIR_PROGRAM_H_
