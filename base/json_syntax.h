// SPDX-License-Identifier: Apache-2.0
// Checks JSON before a document is made of it.
#ifndef WEIR_BASE_JSON_SYNTAX_H_
#define WEIR_BASE_JSON_SYNTAX_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir {

// Far above what any format of ours needs, far below what exhausts a stack.
inline constexpr int kMaxJsonDepth = 100;

// InvalidArgument "<label>:<line>:<column>: ..." where the text is not JSON or
// nests arrays and objects deeper than kMaxJsonDepth. Takes no memory for what
// it reads: 64 MB of "[" as a document would take gigabytes.
absl::Status CheckJsonSyntax(absl::string_view label, absl::string_view text);

}  // namespace weir

#endif  // WEIR_BASE_JSON_SYNTAX_H_
