// SPDX-License-Identifier: Apache-2.0
// Text in Markdown.
#ifndef WEIR_CLI_REFERENCE_MARKDOWN_H_
#define WEIR_CLI_REFERENCE_MARKDOWN_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weir::cli {

// Returns text in which no character is markup.
std::string MarkdownText(absl::string_view text);

// Returns text for a cell of a table, in one line.
std::string MarkdownCell(absl::string_view text);

// Returns a code span for a cell of a table; empty for an empty text.
std::string MarkdownCode(absl::string_view text);

}  // namespace weir::cli

#endif  // WEIR_CLI_REFERENCE_MARKDOWN_H_
