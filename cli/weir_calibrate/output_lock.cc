// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/output_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace weir::cli {

std::string OutputLock::PathOf(const std::string& path) {
  return absl::StrCat(path, ".lock");
}

absl::StatusOr<OutputLock> OutputLock::Take(const std::string& path) {
  std::string name = PathOf(path);
  RETURN_IF_ERROR(MakeFoldersOf(name));
  ASSIGN_OR_RETURN(const int fd,
                   OpenRegularFile(name, O_CREAT | O_RDWR | O_NOFOLLOW));
  struct stat status;
  if (fstat(fd, &status) != 0 || status.st_size != 0) {
    close(fd);
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        ": is not a lock file of weir-calibrate, expected an empty file"));
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const bool taken = errno == EWOULDBLOCK;
    const std::string why = std::strerror(errno);
    close(fd);
    return absl::InvalidArgumentError(
        taken ? absl::StrCat(path,
                             ": another run is writing it; wait until it ends "
                             "or give another --out")
              : absl::StrCat(name, ": cannot lock: ", why));
  }
  return OutputLock(std::move(name), fd);
}

OutputLock::OutputLock(std::string path, int fd)
    : path_(std::move(path)), fd_(fd) {}

OutputLock::OutputLock(OutputLock&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

OutputLock::~OutputLock() {
  if (fd_ < 0) return;
  unlink(path_.c_str());
  close(fd_);
}

}  // namespace weir::cli
