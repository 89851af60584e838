// SPDX-License-Identifier: Apache-2.0
// Version of this build. A separate target ("version"), because its code
// changes with every commit and only the targets that print it should be
// relinked.
#ifndef WEIR_BASE_VERSION_H_
#define WEIR_BASE_VERSION_H_

#include "absl/strings/string_view.h"

namespace weir {

absl::string_view WeirVersion();  // "0.1.0"
absl::string_view GitRevision();  // "0123456789ab-dirty", or "unknown"

}  // namespace weir

#endif  // WEIR_BASE_VERSION_H_
