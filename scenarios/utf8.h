// SPDX-License-Identifier: Apache-2.0
// Text that may go into a protocol buffer or into JSON.
#ifndef WEIR_SCENARIOS_UTF8_H_
#define WEIR_SCENARIOS_UTF8_H_

#include <string>

#include "absl/strings/string_view.h"
#include "base/problems.h"

namespace weir {

// The text, with U+FFFD for whatever is not UTF-8.
std::string Utf8(const std::string& text);

// Notes a problem unless the text is UTF-8: a result that names it could not
// be read back.
void CheckUtf8(Problems& problems, absl::string_view field,
               const std::string& text);

}  // namespace weir

#endif  // WEIR_SCENARIOS_UTF8_H_
