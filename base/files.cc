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

namespace weir {
namespace {

constexpr size_t kMaxFileBytes = size_t{4} << 30;

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
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
    if (contents.size() > kMaxFileBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": is larger than 4 GiB, which no file of weir's is"));
    }
  }
  if (!stream.eof()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read"));
  }
  return contents;
}

absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  const auto failed = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": cannot be written: ", what));
  };
  std::error_code error;
  const std::filesystem::path target(path);
  if (target.has_parent_path()) {
    std::filesystem::create_directories(target.parent_path(), error);
    if (error) return failed(error.message());
  }
  const std::string temporary = absl::StrCat(path, ".tmp", getpid());
  {
    std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
    stream.write(contents.data(),
                 static_cast<std::streamsize>(contents.size()));
    stream.close();
    if (!stream) {
      const std::string reason = std::strerror(errno);
      std::filesystem::remove(temporary, error);
      return failed(reason);
    }
  }
  std::filesystem::rename(temporary, target, error);
  if (error) {
    const std::string reason = error.message();
    std::filesystem::remove(temporary, error);
    return failed(reason);
  }
  return absl::OkStatus();
}

}  // namespace weir
