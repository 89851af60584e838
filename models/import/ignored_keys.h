// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_MODELS_IMPORT_IGNORED_KEYS_H_
#define WEIR_MODELS_IMPORT_IGNORED_KEYS_H_

#include "absl/strings/string_view.h"

namespace weir::models {

// Returns true for keys of config.json files that change neither parameters nor
// FLOP nor memory of training: tokens, positions, scales, losses, generation of
// text, and the format of the checkpoint.
bool IsIgnoredKey(absl::string_view key);

// Returns true for keys whose name is that of a size, a count or a kind of
// layer.
bool NamesSize(absl::string_view key);

}  // namespace weir::models

#endif  // WEIR_MODELS_IMPORT_IGNORED_KEYS_H_
