// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <cstdint>

namespace weir {

size_t Utf8CharacterLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Rejects overlong forms, surrogates, and code points above U+10FFFF.
  switch (byte(0)) {
    case 0xE0:
      return byte(1) >= 0xA0 ? length : 0;
    case 0xED:
      return byte(1) < 0xA0 ? length : 0;
    case 0xF0:
      return byte(1) >= 0x90 ? length : 0;
    case 0xF4:
      return byte(1) < 0x90 ? length : 0;
    default:
      return length;
  }
}

size_t Utf8PrefixLength(absl::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = Utf8CharacterLength(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

bool IsUtf8(absl::string_view text) {
  return Utf8PrefixLength(text) == text.size();
}

}  // namespace weir
