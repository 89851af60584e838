// SPDX-License-Identifier: Apache-2.0
// What may go into a string of a protocol buffer or of JSON.
#ifndef WEIR_BASE_UTF8_H_
#define WEIR_BASE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace weir {

// Returns the number of bytes of the character that a text, which is not empty,
// begins with; 0 when it begins with none (RFC 3629).
size_t Utf8CharacterLength(absl::string_view text);

// How many bytes of the text, from its start, are UTF-8 (RFC 3629).
size_t Utf8PrefixLength(absl::string_view text);

bool IsUtf8(absl::string_view text);

}  // namespace weir

#endif  // WEIR_BASE_UTF8_H_
