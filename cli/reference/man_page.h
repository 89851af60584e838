// SPDX-License-Identifier: Apache-2.0
// Manual pages in the format of man(7).
#ifndef WEIR_CLI_REFERENCE_MAN_PAGE_H_
#define WEIR_CLI_REFERENCE_MAN_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "cli/reference/option_examples.h"

namespace CLI {
class App;
}  // namespace CLI

namespace weir::cli {

// Returns text that groff prints as it is.
std::string EscapeRoff(absl::string_view text);

// Returns "weir-schedule-show": the name of the page of a command, or of the
// program.
std::string ManPageName(const CLI::App& app);

// Returns the page of a program, which lists its commands, or of a command.
// `version` is the line that "weir --version" prints first.
std::string ManPage(const CLI::App& app, absl::string_view version,
                    const OptionExamples& examples);

}  // namespace weir::cli

#endif  // WEIR_CLI_REFERENCE_MAN_PAGE_H_
