// SPDX-License-Identifier: Apache-2.0
#include "base/assets.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/asset_registration.h"
#include "base/files.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace weir {
namespace {

// Returns the only global of weir: filled before main(), constant afterwards.
std::map<absl::string_view, absl::string_view>& Registry() {
  static auto& registry = *new std::map<absl::string_view, absl::string_view>();
  return registry;
}

// Returns "; did you mean X?": a similar name, else those that contain
// `name`.
std::string Suggestion(absl::string_view name,
                       const std::vector<std::string>& known) {
  constexpr size_t kLeastLength = 3, kMostNames = 3;
  std::string similar = DidYouMean(name, known);
  if (!similar.empty() || name.size() < kLeastLength) return similar;
  const std::string lower = absl::AsciiStrToLower(name);
  std::vector<std::string> names;
  for (const std::string& preset : known) {
    if (absl::StrContains(preset, lower)) names.push_back(preset);
  }
  if (names.empty() || names.size() > kMostNames) return "";
  return absl::StrCat("; did you mean ", absl::StrJoin(names, " or "), "?");
}

}  // namespace

AssetRegistration::AssetRegistration(const char* path, size_t path_size,
                                     const char* contents, size_t size) {
  Registry().emplace(absl::string_view(path, path_size),
                     absl::string_view(contents, size));
}

std::optional<Asset> FindPreset(absl::string_view folder,
                                absl::string_view name) {
  for (const auto& [path, contents] : Registry()) {
    const std::filesystem::path file{std::string(path)};
    if (file.parent_path() == std::string(folder) &&
        (file.stem() == std::string(name) ||
         file.filename() == std::string(name))) {
      return Asset{std::string(path), std::string(contents), true};
    }
  }
  return std::nullopt;
}

absl::StatusOr<Asset> LoadAsset(absl::string_view folder,
                                const std::string& name) {
  std::error_code error;
  if (std::filesystem::exists(name, error) &&
      !std::filesystem::is_directory(name, error)) {
    ASSIGN_OR_RETURN(std::string contents, ReadFile(name));
    return Asset{name, std::move(contents)};
  }
  if (std::optional<Asset> preset = FindPreset(folder, name)) {
    return *std::move(preset);
  }
  // Reached only if no preset matches: a folder may share a preset's name.
  if (std::filesystem::is_directory(name, error)) {
    return absl::NotFoundError(
        absl::StrCat(EscapeLine(name), ": is a folder, expected a file"));
  }
  const std::vector<std::string> known = ListAssets(folder);
  return absl::NotFoundError(absl::StrCat(
      EscapeLine(name), ": is neither a file nor a preset of ", folder,
      "/, expected ",
      known.empty()
          ? "a file"
          : absl::StrCat("a file or one of ", absl::StrJoin(known, ", ")),
      Suggestion(name, known)));
}

std::vector<std::string> ListAssets(absl::string_view folder) {
  std::vector<std::string> names;
  for (const auto& [path, contents] : Registry()) {
    const std::filesystem::path file{std::string(path)};
    if (file.parent_path() == std::string(folder)) {
      names.push_back(file.stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace weir
