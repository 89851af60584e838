// SPDX-License-Identifier: Apache-2.0
#include "base/check_utf8.h"

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "base/utf8.h"

namespace weir {

std::string Utf8(const std::string& text) {
  using nlohmann::json;
  return json::parse(DumpJson(json(text)));
}

void CheckUtf8(Problems& problems, absl::string_view field,
               const std::string& text) {
  if (IsUtf8(text)) return;
  problems.Add(field, absl::StrCat("is \"", absl::CHexEscape(text),
                                   "\", expected UTF-8"));
}

}  // namespace weir
