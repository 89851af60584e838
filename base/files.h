// SPDX-License-Identifier: Apache-2.0
// Whole files in and out.
#ifndef WEIR_BASE_FILES_H_
#define WEIR_BASE_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// Reads a file whole. NotFound when it does not exist, InvalidArgument when it
// is a folder or cannot be read.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes a file whole, through a temporary beside it and a rename, so that no
// reader ever sees half a file. Makes missing folders.
absl::Status WriteFile(const std::string& path, absl::string_view contents);

}  // namespace weir

#endif  // WEIR_BASE_FILES_H_
