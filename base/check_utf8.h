// SPDX-License-Identifier: Apache-2.0
// Checks and repairs text for protocol buffers and JSON, which must be UTF-8.
#ifndef WEIR_BASE_CHECK_UTF8_H_
#define WEIR_BASE_CHECK_UTF8_H_

#include <string>

#include "absl/strings/string_view.h"
#include "base/problems.h"

namespace weir {

// Returns the text with U+FFFD for everything that is not UTF-8.
std::string Utf8(const std::string& text);

// Adds a problem unless the text is UTF-8, because a result that contains it
// could not be read back.
void CheckUtf8(Problems& problems, absl::string_view field,
               const std::string& text);

}  // namespace weir

#endif  // WEIR_BASE_CHECK_UTF8_H_
