// SPDX-License-Identifier: Apache-2.0
// Checks text for UTF-8, which strings in protocol buffers and JSON must be.
#ifndef WEIR_BASE_UTF8_H_
#define WEIR_BASE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace weir {

// Returns the number of bytes of the first character of a text, or 0 if it does
// not begin with a valid character (RFC 3629). Requires: the text is not empty.
size_t Utf8CharacterLength(absl::string_view text);

// Returns the length in bytes of the longest prefix that is UTF-8 (RFC 3629).
size_t Utf8PrefixLength(absl::string_view text);

bool IsUtf8(absl::string_view text);

}  // namespace weir

#endif  // WEIR_BASE_UTF8_H_
