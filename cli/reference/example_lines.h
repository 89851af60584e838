// SPDX-License-Identifier: Apache-2.0
// Command lines that are examples of options.
#ifndef WEIR_CLI_REFERENCE_EXAMPLE_LINES_H_
#define WEIR_CLI_REFERENCE_EXAMPLE_LINES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace CLI {
class App;
}  // namespace CLI

namespace weir::cli {

// Parses "weir simulate --pp 4": afterwards, count() of an option of the
// program is above 0 if the line has it. Returns the command, or the program if
// the line has none. InvalidArgument if this is no valid line of the program,
// or if it has more than words, such as pipes.
absl::StatusOr<const CLI::App*> ParseExampleLine(const std::string& line,
                                                 CLI::App* program);

// Returns the command lines of a file of examples without comments (#) and
// empty lines. Many commands take the options of a scenario, so a line
// "weir compare ..." is the beginning of a command line for each "... --pp 4"
// that the command takes. InvalidArgument with all lines that no program takes.
absl::StatusOr<std::vector<std::string>> ExampleLines(
    absl::string_view text, const std::vector<CLI::App*>& programs);

}  // namespace weir::cli

#endif  // WEIR_CLI_REFERENCE_EXAMPLE_LINES_H_
