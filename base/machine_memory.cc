// SPDX-License-Identifier: Apache-2.0
#include "base/machine_memory.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/files.h"

namespace weir {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

std::string TextOf(const std::string& path) {
  return ReadFile(path).value_or("");
}

// Returns the number in the file, or `otherwise` if it has none ("max").
double NumberOf(const std::string& path, double otherwise) {
  double number = 0;
  return absl::SimpleAtod(absl::StripAsciiWhitespace(TextOf(path)), &number)
             ? number
             : otherwise;
}

// Returns the number after `key` in a file with one key and number per line.
double FieldOf(const std::string& path, absl::string_view key,
               double otherwise) {
  const std::string text = TextOf(path);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" :\t"), absl::SkipEmpty());
    double number = 0;
    if (words.size() >= 2 && words[0] == key &&
        absl::SimpleAtod(words[1], &number)) {
      return number;
    }
  }
  return otherwise;
}

// File names in a control group's folder, by version of control groups.
struct GroupFiles {
  absl::string_view limit, usage, cache_field;
};
constexpr GroupFiles kVersion1 = {
    "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current",
                                  "inactive_file"};

// Returns the memory that a group has left: its limit minus its usage without
// cached files, which the kernel drops when memory is needed.
double LeftIn(const std::string& folder, const GroupFiles& files) {
  const double limit =
      NumberOf(absl::StrCat(folder, "/", files.limit), kUnknown);
  const double usage = NumberOf(absl::StrCat(folder, "/", files.usage), 0);
  const double cache =
      FieldOf(absl::StrCat(folder, "/memory.stat"), files.cache_field, 0);
  return std::max(limit - std::max(usage - cache, 0.0), 0.0);
}

// Returns the smallest memory that a group or any of its ancestors has left.
// The group's path may be invisible in a container; then the mounted root is
// used.
double LeftInHierarchy(const std::string& mount, std::string group,
                       const GroupFiles& files) {
  double left = kUnknown;
  while (true) {
    left = std::min(left, LeftIn(absl::StrCat(mount, group), files));
    const size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return left;
    group.resize(slash);
  }
}

double LeftInGroups(const std::string& root) {
  const std::string text = TextOf(absl::StrCat(root, "/proc/self/cgroup"));
  double left = kUnknown;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    // "hierarchy:controllers:path"; "0::path" in version 2.
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    if (parts[1].empty()) {
      left =
          std::min(left, LeftInHierarchy(absl::StrCat(root, "/sys/fs/cgroup"),
                                         parts[2], kVersion2));
    } else if (parts[1] == "memory") {
      left = std::min(
          left, LeftInHierarchy(absl::StrCat(root, "/sys/fs/cgroup/memory"),
                                parts[2], kVersion1));
    }
  }
  return left;
}

}  // namespace

double AvailableMemoryBytes(const std::string& root) {
  const double kibibytes =
      FieldOf(absl::StrCat(root, "/proc/meminfo"), "MemAvailable", kUnknown);
  return std::min(1024 * kibibytes, LeftInGroups(root));
}

}  // namespace weir
