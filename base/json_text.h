// SPDX-License-Identifier: Apache-2.0
// Prints JSON in the same way for every output.
#ifndef WEIR_BASE_JSON_TEXT_H_
#define WEIR_BASE_JSON_TEXT_H_

#include <string>

#include "base/text.h"

namespace weir {

// Returns an nlohmann::json as text, on one line if the indent is negative.
// Replaces bytes that are not UTF-8 by U+FFFD instead of throwing an exception.
// Escapes control characters that JSON allows (DEL, U+009B, U+202E), because
// terminals interpret them.
template <typename Json>
std::string DumpJson(const Json& json, int indent = -1) {
  return EscapeControls(json.dump(indent, ' ', /*ensure_ascii=*/false,
                                  Json::error_handler_t::replace));
}

}  // namespace weir

#endif  // WEIR_BASE_JSON_TEXT_H_
