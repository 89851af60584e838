// SPDX-License-Identifier: Apache-2.0
// For builds without an HTTP library.
#include "absl/strings/str_cat.h"
#include "cli/weir/live_server.h"

namespace weir::cli {

absl::StatusOr<std::unique_ptr<LiveServer>> StartLiveServer(
    int /*port*/, const std::string& /*token*/, LiveHandlers /*handlers*/) {
  return absl::UnavailableError(absl::StrCat(
      "weir live: this weir was built without it: ", WEIR_WITHOUT_LIVE,
      "; install it and build again"));
}

}  // namespace weir::cli
