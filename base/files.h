// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole files.
#ifndef WEIR_BASE_FILES_H_
#define WEIR_BASE_FILES_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// Much larger than any file written by hand.
constexpr size_t kMaxTextFileBytes = size_t{64} << 20;

// Reads a whole file. Returns NotFound if it does not exist, InvalidArgument if
// it is a folder, cannot be read or holds more than `max_bytes` (for a device:
// more than kMaxTextFileBytes).
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     size_t max_bytes = kMaxTextFileBytes);

// Opens a regular file with the flags of open(2) (O_CREAT uses mode 0666) and
// returns the descriptor. Never blocks, and returns InvalidArgument for files
// that may be endless: a folder, a pipe, a device or a socket. Returns NotFound
// if the file does not exist and is not created.
absl::StatusOr<int> OpenRegularFile(const std::string& path, int flags);

// Reads a file from OpenRegularFile to its end. Returns InvalidArgument if it
// holds more than `max_bytes`. `path` is for messages.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, int fd,
                                            size_t max_bytes);

// How long WriteFile waits for a reader of a pipe.
inline constexpr double kMaxReaderWaitSeconds = 5;

// Replaces a file and syncs it to disk. Writes a temporary file in the same
// folder and renames it, so that readers never see an incomplete file and an
// error leaves the old contents. Creates missing folders. Follows symbolic
// links, and writes to devices and pipes without replacing them. Returns
// InvalidArgument if it cannot be written.
absl::Status WriteFile(const std::string& path, absl::string_view contents);

// Returns InvalidArgument if WriteFile is already known to fail: for a folder,
// a path below a file, or a missing permission. Call it before long work. An
// empty path means no file and is accepted.
absl::Status CheckWritable(const std::string& path);

// Returns the target of a chain of symbolic links, which need not exist, or
// InvalidArgument if the links form a cycle.
absl::StatusOr<std::string> FollowLinks(const std::string& path);

// Returns true if WriteFile would replace the same file for both paths, neither
// of which need exist. Compares absolute paths with all symbolic links
// resolved. Returns false for devices and pipes, which can take several outputs
// in turn.
bool IsSameOutput(const std::string& path, const std::string& other);

// Creates the missing parent folders of a file. Returns InvalidArgument if one
// cannot be created.
absl::Status MakeFoldersOf(const std::string& path);

// Returns InvalidArgument "PATH: cannot be written: WHY".
absl::Status CannotBeWritten(absl::string_view path, absl::string_view why);

// Writes all bytes at the position of `fd`. Returns false and sets errno on
// failure.
bool WriteAll(int fd, absl::string_view bytes);

}  // namespace weir

#endif  // WEIR_BASE_FILES_H_
