// SPDX-License-Identifier: Apache-2.0
// Escapes text for XML and HTML documents.
#ifndef WEIR_BASE_XML_H_
#define WEIR_BASE_XML_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weir {

// Escapes the content of an element or of a quoted attribute of an SVG or HTML
// document. Replaces characters that XML 1.0 forbids, other control characters
// and bytes that are not UTF-8 by '?'.
std::string EscapeXml(absl::string_view text);

}  // namespace weir

#endif  // WEIR_BASE_XML_H_
