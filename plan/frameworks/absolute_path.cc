// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/absolute_path.h"

#include <filesystem>
#include <system_error>

namespace weir::plan {

std::string AbsoluteIfFile(const std::string& name) {
  std::error_code error;
  if (name.empty() || !std::filesystem::is_regular_file(name, error)) {
    return name;
  }
  const std::filesystem::path path = std::filesystem::absolute(name, error);
  return error ? name : path.lexically_normal().string();
}

}  // namespace weir::plan
