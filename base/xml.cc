// SPDX-License-Identifier: Apache-2.0
#include "base/xml.h"

#include "absl/strings/str_replace.h"
#include "base/text.h"

namespace weir {

std::string EscapeXml(absl::string_view text) {
  // U+FFFE and U+FFFF are the only other characters that XML forbids.
  return absl::StrReplaceAll(WithoutControls(text), {{"&", "&amp;"},
                                                     {"<", "&lt;"},
                                                     {">", "&gt;"},
                                                     {"\"", "&quot;"},
                                                     {"'", "&#39;"},
                                                     {"\xEF\xBF\xBE", "?"},
                                                     {"\xEF\xBF\xBF", "?"}});
}

}  // namespace weir
