// SPDX-License-Identifier: Apache-2.0
// Presets: text files of the source tree, embedded in the program under their
// paths ("models/presets/gpt2.json"). A user gives the stem of a preset
// ("gpt2") or the path of a file.
#ifndef WEIR_BASE_ASSETS_H_
#define WEIR_BASE_ASSETS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

struct Asset {
  // The path of the file or preset, for error messages.
  std::string label;
  std::string contents;
  bool is_preset = false;
};

// Returns the preset "<folder>/<name>.<any extension>", also if its extension
// is given. Returns std::nullopt if there is none.
std::optional<Asset> FindPreset(absl::string_view folder,
                                absl::string_view name);

// Returns the existing file `name`, else the preset that FindPreset returns.
// Returns NotFound with the presets of the folder and the one with
// the most similar name if there is neither.
absl::StatusOr<Asset> LoadAsset(absl::string_view folder,
                                const std::string& name);

// Returns the stems of all presets of a folder, sorted.
std::vector<std::string> ListAssets(absl::string_view folder);

}  // namespace weir

#endif  // WEIR_BASE_ASSETS_H_
