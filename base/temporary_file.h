// SPDX-License-Identifier: Apache-2.0
// Writes a file under a temporary name and then renames it to its target.
#ifndef WEIR_BASE_TEMPORARY_FILE_H_
#define WEIR_BASE_TEMPORARY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weir {

// Owns a new file in the folder of its target. The name is random and the file
// is created exclusively, so that a file or symbolic link cannot be planted
// there. The destructor removes the file unless Commit() has succeeded, and so
// does a signal that ends the program (see RemoveTemporaryFiles()). Only
// SIGKILL, a crash or a power failure can leave it behind.
//
// Error messages contain only the reason ("No space left on device"), because
// only the caller knows the name that the user gave. Errors are
// InvalidArgument.
class TemporaryFile {
 public:
  // Creates an empty file with the permissions of the target if that exists,
  // else with this user's default permissions.
  static absl::StatusOr<TemporaryFile> Create(const std::string& target);
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }

  // Syncs the file to disk and renames it to the target.
  absl::Status Commit();

 private:
  TemporaryFile() = default;

  std::string target_;
  std::string path_;  // empty if moved from or committed
  int fd_ = -1;
  int slot_ = -1;
};

// Removes the temporary files of this process. Async-signal-safe: signal
// handlers that end the program call it.
void RemoveTemporaryFiles();

// Syncs the folder of a file to disk, so that a file that was created or
// renamed there keeps its name after a power failure. Does nothing on file
// systems that cannot sync folders.
void SyncFolderOf(const std::string& path);

// Makes writes beyond the file size limit (RLIMIT_FSIZE) fail with EFBIG
// instead of ending the program with SIGXFSZ.
void IgnoreFileSizeSignal();

}  // namespace weir

#endif  // WEIR_BASE_TEMPORARY_FILE_H_
