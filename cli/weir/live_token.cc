// SPDX-License-Identifier: Apache-2.0
#include <sys/random.h>

#include <array>

#include "absl/strings/escaping.h"
#include "cli/weir/live_server.h"

namespace weir::cli {

absl::StatusOr<std::string> RandomToken() {
  std::array<char, 16> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size())) {
    return absl::InternalError("weir live: the system gives no random bytes");
  }
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

bool EqualTokens(absl::string_view token, absl::string_view other) {
  if (token.size() != other.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < token.size(); ++i) {
    difference = static_cast<unsigned char>(
        difference | (static_cast<unsigned char>(token[i]) ^
                      static_cast<unsigned char>(other[i])));
  }
  return difference == 0;
}

}  // namespace weir::cli
