// SPDX-License-Identifier: Apache-2.0
// Runs a command line of a document.
#ifndef WEIR_TESTS_CLI_REFERENCE_COMMAND_RUN_H_
#define WEIR_TESTS_CLI_REFERENCE_COMMAND_RUN_H_

#include <string>

#include "tests/cli/weir/program.h"

namespace weir::cli::document_runs_test {

// Runs the text with bash in a folder of PrepareFiles, where programs of its
// bin/ come first.
ProgramRun RunIn(const std::string& folder, const std::string& text);

}  // namespace weir::cli::document_runs_test

#endif  // WEIR_TESTS_CLI_REFERENCE_COMMAND_RUN_H_
