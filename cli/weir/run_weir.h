// SPDX-License-Identifier: Apache-2.0
// Runs one command line of weir.
#ifndef WEIR_CLI_WEIR_RUN_WEIR_H_
#define WEIR_CLI_WEIR_RUN_WEIR_H_

#include "cli/weir/weir_app.h"

namespace weir::cli {

// Runs the program that `make` returns in this process, which it may fork and
// whose signal handlers it replaces. Returns the exit code.
int RunWeir(int argc, const char* const* argv, MakeApp* make);

// Runs one command, for programs that go on. Leaves signals alone, so that
// commands that end early when interrupted do not.
int RunWeirCommand(int argc, const char* const* argv, MakeApp* make);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_RUN_WEIR_H_
