// SPDX-License-Identifier: Apache-2.0
// An example of every option.
#ifndef WEIR_CLI_REFERENCE_OPTION_EXAMPLES_H_
#define WEIR_CLI_REFERENCE_OPTION_EXAMPLES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace weir::cli {

// Command lines. Options of all commands are objects of the program, and have
// one example.
using OptionExamples = std::map<const CLI::Option*, std::string>;

// Returns for every option of the program and of each command the shortest
// example that has it: of those in the command's help, or else of `lines`, of
// which those of other programs are ignored, or else that of the same option of
// another program in `others`. NotFound with the commands and options that have
// none.
absl::StatusOr<OptionExamples> FindOptionExamples(
    const std::vector<std::string>& lines, const OptionExamples& others,
    CLI::App* program);

}  // namespace weir::cli

#endif  // WEIR_CLI_REFERENCE_OPTION_EXAMPLES_H_
