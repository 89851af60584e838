// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/units.h"

namespace weir {
namespace {

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

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     size_t max_bytes) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  }
  if (std::filesystem::is_directory(status)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a folder, expected a file"));
  }
  std::ifstream stream(path, std::ios::binary);
  std::string contents;
  // In pieces: a device or a pipe does not say its size, or has no end.
  std::vector<char> piece(1 << 20);
  while (
      stream.read(piece.data(), static_cast<std::streamsize>(piece.size())) ||
      stream.gcount() > 0) {
    contents.append(piece.data(), static_cast<size_t>(stream.gcount()));
    if (contents.size() > max_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": is larger than ",
          FormatBytes(static_cast<double>(max_bytes)), ", the limit"));
    }
  }
  if (!stream.eof()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read"));
  }
  return contents;
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
