// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "base/units.h"

namespace weir {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kPollMilliseconds = 100;
// How long to wait for a process to open a pipe for writing, and for more bytes
// from a pipe that is open for writing.
constexpr double kMaxWriterWaitSeconds = 5;
constexpr double kMaxSilenceSeconds = 600;

constexpr int kMaxLinks = 40;  // the kernel's limit
constexpr std::chrono::milliseconds kPollInterval(50);

// Opens a device or a pipe for writing. Returns an error if a pipe has no
// reader for a while, where a blocking open(2) would wait forever.
absl::StatusOr<int> OpenDevice(const std::string& path) {
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(kMaxReaderWaitSeconds));
  while (true) {
    const int fd = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
      return fd;
    }
    struct stat status;
    const int error = errno;
    if (error != ENXIO || stat(path.c_str(), &status) != 0 ||
        !S_ISFIFO(status.st_mode)) {
      return CannotBeWritten(path, std::strerror(error));
    }
    if (Clock::now() > deadline) {
      return CannotBeWritten(
          path, absl::StrCat("a pipe that no process has read from for ",
                             kMaxReaderWaitSeconds, " s"));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

absl::Status WriteDevice(const std::string& path, absl::string_view contents) {
  ASSIGN_OR_RETURN(const int fd, OpenDevice(path));
  const bool written = WriteAll(fd, contents);
  const int error = errno;
  if (close(fd) == 0 && written) return absl::OkStatus();
  return CannotBeWritten(path, std::strerror(written ? errno : error));
}

absl::Status CannotBeRead(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(EscapeLine(path), ": cannot be read: ", why));
}

absl::Status CannotBeOpened(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG) {
    return absl::NotFoundError(
        absl::StrCat(EscapeLine(path), ": no such file"));
  }
  return CannotBeRead(path, std::strerror(error));
}

// Returns the kind of a file that is not a regular one.
std::string KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISSOCK(mode)) return "a socket";
  return "not a regular file";
}

absl::Status IsTooLarge(const std::string& path, size_t max_bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat(EscapeLine(path), ": is larger than ",
                   FormatBytes(static_cast<double>(max_bytes)), ", the limit"));
}

// Reads to the end from a non-blocking descriptor. read(2) also returns 0 for a
// pipe that no process has opened for writing yet. poll(2) reports POLLHUP only
// at the actual end.
absl::StatusOr<std::string> ReadToEnd(const std::string& path, int fd,
                                      bool is_pipe, size_t max_bytes) {
  std::string contents;
  std::vector<char> piece(1 << 20);
  bool has_writer = !is_pipe;
  Clock::time_point last = Clock::now();
  while (true) {
    pollfd poller{fd, POLLIN, 0};
    const bool ended = poll(&poller, 1, kPollMilliseconds) > 0 &&
                       (poller.revents & POLLHUP) != 0;
    const ssize_t size = read(fd, piece.data(), piece.size());
    if (size > 0) {
      contents.append(piece.data(), static_cast<size_t>(size));
      if (contents.size() > max_bytes) return IsTooLarge(path, max_bytes);
      has_writer = true;
      last = Clock::now();
      continue;
    }
    if (size == 0 && (has_writer || ended)) return contents;
    if (size < 0 && errno == EAGAIN) has_writer = true;
    if (size < 0 && errno != EAGAIN && errno != EINTR) {
      return CannotBeRead(path, std::strerror(errno));
    }
    const double limit =
        has_writer ? kMaxSilenceSeconds : kMaxWriterWaitSeconds;
    if (Clock::now() - last < std::chrono::duration<double>(limit)) continue;
    return CannotBeRead(
        path, has_writer ? absl::StrCat("nothing came for ", limit, " s")
                         : absl::StrCat("no process has opened this pipe for "
                                        "writing within ",
                                        limit, " s"));
  }
}

}  // namespace

absl::Status CannotBeWritten(absl::string_view path, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(EscapeLine(path), ": cannot be written: ", why));
}

bool WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  std::error_code error;
  fs::path at = path;
  for (int i = 0; i <= kMaxLinks; ++i) {
    if (!fs::is_symlink(at, error)) return at.string();
    const fs::path target = fs::read_symlink(at, error);
    if (error) return CannotBeWritten(path, error.message());
    at = at.parent_path() / target;  // an absolute target replaces the parent
  }
  return CannotBeWritten(path, std::strerror(ELOOP));
}

bool IsSameOutput(const std::string& path, const std::string& other) {
  const auto resolve = [](const std::string& name) {
    std::error_code error;
    const fs::file_status status = fs::status(name, error);
    if (fs::exists(status) && !fs::is_regular_file(status)) return fs::path();
    const absl::StatusOr<std::string> target = FollowLinks(name);
    if (!target.ok()) return fs::path();
    return fs::weakly_canonical(fs::absolute(*target, error), error);
  };
  const fs::path resolved = resolve(path);
  return !resolved.empty() && resolved == resolve(other);
}

absl::Status MakeFoldersOf(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return CannotBeWritten(path, error.message());
}

absl::StatusOr<int> OpenRegularFile(const std::string& path, int flags) {
  // O_NONBLOCK: a blocking open(2) of a pipe waits for its other end.
  const int fd =
      open(path.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
  if (fd < 0) {
    const int error = errno;
    if ((flags & O_ACCMODE) == O_RDONLY) return CannotBeOpened(path, error);
    return CannotBeWritten(path, std::strerror(error));
  }
  absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat status = {};
  if (fstat(fd, &status) != 0) return CannotBeRead(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(EscapeLine(path), ": is ",
                                                   KindOf(status.st_mode),
                                                   ", expected a file"));
  }
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  std::move(close_fd).Cancel();
  return fd;
}

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, int fd,
                                            size_t max_bytes) {
  struct stat status = {};
  if (fstat(fd, &status) != 0) return CannotBeRead(path, std::strerror(errno));
  // Refuse large files before reading them. Files in /proc have size 0.
  if (status.st_size > 0 && static_cast<size_t>(status.st_size) > max_bytes) {
    return IsTooLarge(path, max_bytes);
  }
  return ReadToEnd(path, fd, /*is_pipe=*/false, max_bytes);
}

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     size_t max_bytes) {
  // A blocking open(2) would wait forever for a writer of a pipe.
  const int fd =
      open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return CannotBeOpened(path, errno);
  const absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat status = {};
  if (fstat(fd, &status) != 0) return CannotBeRead(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(EscapeLine(path), ": is ",
                                                   KindOf(status.st_mode),
                                                   ", expected a file"));
  }
  if (S_ISREG(status.st_mode)) return ReadRegularFile(path, fd, max_bytes);
  const bool is_pipe = S_ISFIFO(status.st_mode);
  // A device may be endless.
  if (!is_pipe) max_bytes = std::min(max_bytes, kMaxTextFileBytes);
  return ReadToEnd(path, fd, is_pipe, max_bytes);
}

absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  std::error_code error;
  const auto status = fs::status(path, error);
  // A cycle of links, a path that is too long, or a missing permission.
  if (status.type() == fs::file_type::none) {
    return CannotBeWritten(path, error.message());
  }
  if (fs::is_directory(status)) {
    return CannotBeWritten(path, std::strerror(EISDIR));
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return WriteDevice(path, contents);
  }
  ASSIGN_OR_RETURN(const std::string target, FollowLinks(path));
  RETURN_IF_ERROR(MakeFoldersOf(target));
  absl::StatusOr<TemporaryFile> file = TemporaryFile::Create(target);
  if (!file.ok()) return CannotBeWritten(path, file.status().message());
  if (!WriteAll(file->fd(), contents)) {
    return CannotBeWritten(path, std::strerror(errno));
  }
  absl::Status committed = file->Commit();
  if (committed.ok()) return committed;
  return CannotBeWritten(path, committed.message());
}

absl::Status CheckWritable(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  if (path.ends_with('/') || fs::is_directory(path, error)) {
    return CannotBeWritten(path, "is a folder, expected a file");
  }
  ASSIGN_OR_RETURN(const std::string target, FollowLinks(path));
  fs::path there = target;
  const auto status = fs::status(there, error);
  if (!fs::exists(status) || fs::is_regular_file(status)) {
    // Replacing a file requires write permission for its folder, or for the
    // nearest existing folder above it, in which missing folders are created.
    do {
      there = there.has_parent_path() ? there.parent_path() : ".";
    } while (!fs::exists(there, error) && there != there.parent_path());
    if (!fs::is_directory(there, error)) {
      return CannotBeWritten(path, there.string() + " is not a folder");
    }
  }
  if (access(there.c_str(), W_OK) == 0) return absl::OkStatus();
  return CannotBeWritten(path, std::strerror(errno));
}

}  // namespace weir
