// SPDX-License-Identifier: Apache-2.0
// Presets are text files of the source tree, embedded in the program under
// their path ("models/gpt2.json"). A user names one by its stem ("gpt2") or
// gives a file of his own.
#ifndef WEIR_BASE_ASSETS_H_
#define WEIR_BASE_ASSETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// Registers one embedded file; both views must outlive the program.
struct AssetRegistration {
  AssetRegistration(absl::string_view path, absl::string_view contents);
};

struct Asset {
  std::string label;  // what error messages name: the path, or the preset's
  std::string contents;
};

// Finds what a user named: an existing file, else the preset
// "<folder>/<name>.<any extension>". NotFound lists the presets of the folder
// and names a near one.
absl::StatusOr<Asset> LoadAsset(absl::string_view folder,
                                const std::string& name);

// The stems of all presets of a folder, sorted.
std::vector<std::string> ListAssets(absl::string_view folder);

}  // namespace weir

#endif  // WEIR_BASE_ASSETS_H_
