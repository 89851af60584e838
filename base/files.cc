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
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/units.h"

namespace weir {
namespace {

constexpr int kPollMilliseconds = 100;
// How long to wait for a process to open a pipe for writing, and for the next
// bytes of one that has it open.
constexpr double kMaxWriterWaitSeconds = 5;
constexpr double kMaxSilenceSeconds = 600;

absl::Status CannotBeWritten(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": cannot be written: ", why));
}

// The end of a chain of symbolic links, which need not exist. The chain has
// one.
std::filesystem::path FollowLinks(std::filesystem::path path) {
  std::error_code error;
  while (std::filesystem::is_symlink(path, error)) {
    const auto target = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / target;  // an absolute target stands alone
  }
  return path;
}

absl::Status WriteInto(const std::string& path, const std::string& label,
                       absl::string_view contents) {
  errno = 0;
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  stream.close();
  if (stream) return absl::OkStatus();
  return CannotBeWritten(label, std::strerror(errno));
}

absl::Status CannotBeRead(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": cannot be read: ", why));
}

absl::Status CannotBeOpened(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  }
  return CannotBeRead(path, std::strerror(error));
}

absl::Status IsTooLarge(const std::string& path, size_t max_bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": is larger than ",
                   FormatBytes(static_cast<double>(max_bytes)), ", the limit"));
}

// Reads to the end from a descriptor that does not block. The end of a pipe
// that no process has opened for writing yet is not the end: read(2) returns 0
// as for any end, but poll(2) does not report it.
absl::StatusOr<std::string> ReadToEnd(const std::string& path, int fd,
                                      bool is_pipe, size_t max_bytes) {
  using Clock = std::chrono::steady_clock;
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

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     size_t max_bytes) {
  // Blocking, it would wait for ever for a writer of a pipe.
  const int fd =
      open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return CannotBeOpened(path, errno);
  const absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat status = {};
  if (fstat(fd, &status) != 0) return CannotBeRead(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a folder, expected a file"));
  }
  const bool is_pipe = S_ISFIFO(status.st_mode);
  // A device may have no end.
  if (!S_ISREG(status.st_mode) && !is_pipe) {
    max_bytes = std::min(max_bytes, kMaxTextFileBytes);
  }
  // Before gigabytes are read. Files of /proc say 0.
  if (status.st_size > 0 && static_cast<size_t>(status.st_size) > max_bytes) {
    return IsTooLarge(path, max_bytes);
  }
  return ReadToEnd(path, fd, is_pipe, max_bytes);
}

absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  // No status: links in a circle, a path that is too long, no permission.
  if (status.type() == std::filesystem::file_type::none) {
    return CannotBeWritten(path, error.message());
  }
  if (std::filesystem::exists(status) &&
      !std::filesystem::is_regular_file(status)) {
    return WriteInto(path, path, contents);
  }
  const std::filesystem::path target = FollowLinks(path);
  if (target.has_parent_path()) {
    std::filesystem::create_directories(target.parent_path(), error);
    if (error) return CannotBeWritten(path, error.message());
  }
  const std::string temporary = absl::StrCat(target.string(), ".tmp", getpid());
  absl::Status written = WriteInto(temporary, path, contents);
  if (!written.ok()) {
    std::filesystem::remove(temporary, error);
    return written;
  }
  std::filesystem::rename(temporary, target, error);
  if (!error) return absl::OkStatus();
  const std::string why = error.message();
  std::filesystem::remove(temporary, error);
  return CannotBeWritten(path, why);
}

absl::Status CheckWritable(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  if (path.ends_with('/') || std::filesystem::is_directory(path, error)) {
    return CannotBeWritten(path, "is a folder, expected a file");
  }
  // The nearest folder that exists: the others would be made in it.
  std::filesystem::path there = FollowLinks(path);
  if (!std::filesystem::exists(there, error)) {
    do {
      there = there.has_parent_path() ? there.parent_path() : ".";
    } while (!std::filesystem::exists(there, error));
    if (!std::filesystem::is_directory(there, error)) {
      return CannotBeWritten(path, there.string() + " is no folder");
    }
  }
  if (access(there.c_str(), W_OK) == 0) return absl::OkStatus();
  return CannotBeWritten(path, std::strerror(errno));
}

}  // namespace weir
