// SPDX-License-Identifier: Apache-2.0
// Reads a Hugging Face config.json. Keys that a file omits get the defaults of
// the model's class in huggingface/transformers.
#ifndef WEIR_MODELS_IMPORT_HUGGING_FACE_H_
#define WEIR_MODELS_IMPORT_HUGGING_FACE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/model.pb.h"

namespace weir::models {

// Parses a config. Zeros in the result represent defaults that are not filled
// in yet. Returns InvalidArgument with all problems found if it is not a config
// of a supported model.
absl::StatusOr<Model> ParseHuggingFace(absl::string_view label,
                                       absl::string_view text);

}  // namespace weir::models

#endif  // WEIR_MODELS_IMPORT_HUGGING_FACE_H_
