// SPDX-License-Identifier: Apache-2.0
// Whole files in and out.
#ifndef WEIR_BASE_FILES_H_
#define WEIR_BASE_FILES_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// What people write is far smaller.
constexpr size_t kMaxTextFileBytes = size_t{64} << 20;

// Reads a file whole. NotFound when it does not exist, InvalidArgument when it
// is a folder, cannot be read or holds more than `max_bytes` (a device: more
// than kMaxTextFileBytes).
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     size_t max_bytes = kMaxTextFileBytes);

// Replaces a file and syncs it to disk. Writes a temporary file in the same
// folder and renames it, so that readers never see an incomplete file and an
// error leaves the old contents. Makes missing folders. A symbolic link stays
// and its target is written; a device or a pipe stays and takes the bytes,
// where a pipe must have a reader within kMaxReaderWaitSeconds.
inline constexpr double kMaxReaderWaitSeconds = 5;
absl::Status WriteFile(const std::string& path, absl::string_view contents);

// InvalidArgument where WriteFile cannot write, as far as that can be seen: the
// path of a folder, below a file, or where this user may not write. To be asked
// before hours of work. An empty path is none.
absl::Status CheckWritable(const std::string& path);

// Returns the path behind a chain of symbolic links, which need not exist.
// InvalidArgument when the links form a circle.
absl::StatusOr<std::string> FollowLinks(const std::string& path);

// Makes the missing folders above a file.
absl::Status MakeFoldersOf(const std::string& path);

// "PATH: cannot be written: WHY".
absl::Status CannotBeWritten(absl::string_view path, absl::string_view why);

// Writes all bytes at the position of `fd`. False: errno says why not.
bool WriteAll(int fd, absl::string_view bytes);

}  // namespace weir

#endif  // WEIR_BASE_FILES_H_
