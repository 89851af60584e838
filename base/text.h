// SPDX-License-Identifier: Apache-2.0
// Formats text for display.
#ifndef WEIR_BASE_TEXT_H_
#define WEIR_BASE_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weir {

// Replaces every character that is not printable ASCII by '?', because text
// from a file must not move a terminal's cursor.
std::string Ascii(absl::string_view text);

// Returns Ascii(text), shortened to `length` characters with "..." at the end.
std::string Shortened(absl::string_view text, size_t length);

// Replaces control characters, characters that change the direction of text
// (U+202E) and bytes that are not UTF-8 by '?' and keeps all other characters.
std::string WithoutControls(absl::string_view text);

// Replaces the same characters by escapes, such as \u001b and \xff, so that
// text from a file cannot move a terminal's cursor or imitate other text. Keeps
// line ends and tabs. In JSON text, where such characters occur only inside
// strings, \u001b is JSON's own escape, so the value stays the same.
std::string EscapeControls(absl::string_view text);

// Does the same for line ends and tabs too, so that the result is a single
// line.
std::string EscapeLine(absl::string_view text);

// Returns the shortest decimal number that reads back as the same value ("0.1",
// "1e+30"), or "" if the number is not finite.
std::string ShortestNumber(double number);

}  // namespace weir

#endif  // WEIR_BASE_TEXT_H_
