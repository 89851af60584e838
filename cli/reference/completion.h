// SPDX-License-Identifier: Apache-2.0
// Completion scripts of shells.
#ifndef WEIR_CLI_REFERENCE_COMPLETION_H_
#define WEIR_CLI_REFERENCE_COMPLETION_H_

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace weir::cli {

// Returns a script that completes commands, options, words that an option
// accepts, and names of presets, which it reads from "weir model list" and the
// like. Everything else completes as a file.
std::string BashCompletion(const CLI::App& program);

// Returns an autoloaded function for zsh, which uses the script for bash.
std::string ZshCompletion(const CLI::App& program);

std::string FishCompletion(const CLI::App& program);

}  // namespace weir::cli

#endif  // WEIR_CLI_REFERENCE_COMPLETION_H_
