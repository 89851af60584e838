// SPDX-License-Identifier: Apache-2.0
// Checks JSON text before a document is built from it.
#ifndef WEIR_BASE_JSON_SYNTAX_H_
#define WEIR_BASE_JSON_SYNTAX_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir {

// Far more than any format of weir needs, far less than exhausts a stack.
inline constexpr int kMaxJsonDepth = 100;

// Returns InvalidArgument "<label>:<line>:<column>: ..." if the text is not
// JSON or nests arrays and objects deeper than kMaxJsonDepth. Builds no
// document, which would take gigabytes for 64 MB of "[".
absl::Status CheckJsonSyntax(absl::string_view label, absl::string_view text);

}  // namespace weir

#endif  // WEIR_BASE_JSON_SYNTAX_H_
