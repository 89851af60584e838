// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace weir {

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
  std::ostringstream contents;
  contents << stream.rdbuf();
  if (!stream) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read"));
  }
  return contents.str();
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
