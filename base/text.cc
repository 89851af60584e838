// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/utf8.h"

namespace weir {
namespace {

// Returns the code point of the first character of the text.
uint32_t CodePoint(absl::string_view character) {
  const auto byte = [&](size_t i) -> uint32_t {
    return static_cast<uint8_t>(character[i]);
  };
  if (character.size() == 1) return byte(0);
  uint32_t code = byte(0) & (0x7FU >> character.size());
  for (size_t i = 1; i < character.size(); ++i) {
    code = code << 6 | (byte(i) & 0x3F);
  }
  return code;
}

// Returns true if a terminal interprets the character instead of showing it:
// controls (C0, DEL and C1), line separators and bidirectional formatting.
bool IsControl(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x061C ||
         code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

size_t PlainPrefixLength(absl::string_view text) {
  size_t length = 0;
  while (length < text.size() && text[length] >= ' ' && text[length] < 0x7F) {
    ++length;
  }
  return length;
}

// Calls replace(code, is_byte) for each control character except those in
// `kept`, and for each byte that is not part of a UTF-8 character.
template <typename Replace>
std::string ReplaceControls(absl::string_view text, absl::string_view kept,
                            const Replace& replace) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    // Most text is printable ASCII, which is copied as a whole.
    const size_t plain = PlainPrefixLength(text);
    out.append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t length = Utf8CharacterLength(text);
    const absl::string_view character =
        text.substr(0, std::max<size_t>(length, 1));
    const uint32_t code =
        length == 0 ? static_cast<uint8_t>(text[0]) : CodePoint(character);
    const bool keep = length == 1 && absl::StrContains(kept, text[0]);
    if (length == 0 || (IsControl(code) && !keep)) {
      out += replace(code, /*is_byte=*/length == 0);
    } else {
      absl::StrAppend(&out, character);
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string Escape(uint32_t code, bool is_byte) {
  return is_byte ? absl::StrFormat("\\x%02x", code)
                 : absl::StrFormat("\\u%04x", code);
}

}  // namespace

std::string Ascii(absl::string_view text) {
  std::string out;
  for (char c : text) {
    // One '?' per UTF-8 character: continuation bytes are 10xxxxxx.
    if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) continue;
    out += absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?';
  }
  return out;
}

std::string Shortened(absl::string_view text, size_t length) {
  std::string out = Ascii(text);
  if (out.size() > length) out = out.substr(0, length - 3) + "...";
  return out;
}

std::string WithoutControls(absl::string_view text) {
  return ReplaceControls(text, "", [](uint32_t, bool) { return "?"; });
}

std::string EscapeControls(absl::string_view text) {
  return ReplaceControls(text, "\n\t", Escape);
}

std::string EscapeLine(absl::string_view text) {
  return ReplaceControls(text, "", Escape);
}

std::string ShortestNumber(double number) {
  if (!std::isfinite(number)) return "";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), number).ptr;
  return std::string(buffer, end);
}

}  // namespace weir
