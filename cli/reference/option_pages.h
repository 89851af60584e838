// SPDX-License-Identifier: Apache-2.0
// The options of all commands as a page of the manual.
#ifndef WEIR_CLI_REFERENCE_OPTION_PAGES_H_
#define WEIR_CLI_REFERENCE_OPTION_PAGES_H_

#include <string>

#include "cli/reference/option_examples.h"

namespace CLI {
class App;
}  // namespace CLI

namespace weir::cli {

// Returns Markdown: a section for every command with a table of its options by
// group: names and placeholder, meaning, default, example.
std::string OptionPage(const CLI::App& program, const OptionExamples& examples);

}  // namespace weir::cli

#endif  // WEIR_CLI_REFERENCE_OPTION_PAGES_H_
