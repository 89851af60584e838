// SPDX-License-Identifier: Apache-2.0
#include "cli/reference/markdown.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace weir::cli {

std::string MarkdownText(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"},
                                    {"*", "\\*"},
                                    {"_", "\\_"},
                                    {"`", "\\`"},
                                    {"[", "\\["},
                                    {"]", "\\]"},
                                    {"&", "&amp;"},
                                    {"<", "&lt;"},
                                    {">", "&gt;"}});
}

std::string MarkdownCell(absl::string_view text) {
  return absl::StrReplaceAll(MarkdownText(text),
                             {{"|", "&#124;"}, {"\n", " "}});
}

// A code span with a "|" would end the cell, so tags are used.
std::string MarkdownCode(absl::string_view text) {
  if (text.empty()) return "";
  return absl::StrCat("<code>", MarkdownCell(text), "</code>");
}

}  // namespace weir::cli
