// SPDX-License-Identifier: Apache-2.0
// The one way in which JSON is printed.
#ifndef WEIR_BASE_JSON_TEXT_H_
#define WEIR_BASE_JSON_TEXT_H_

#include <string>

#include "base/text.h"

namespace weir {

// Returns an nlohmann::json as text; an indent below 0 gives one line. Bytes
// that are not UTF-8 become U+FFFD instead of an exception, and control
// characters that JSON allows unescaped (DEL, U+009B, U+202E) are escaped: a
// terminal shows the text as it is.
template <typename Json>
std::string DumpJson(const Json& json, int indent = -1) {
  return EscapeControls(json.dump(indent, ' ', /*ensure_ascii=*/false,
                                  Json::error_handler_t::replace));
}

}  // namespace weir

#endif  // WEIR_BASE_JSON_TEXT_H_
