// SPDX-License-Identifier: Apache-2.0
// Loading, checking and counting models.
#ifndef WEIR_MODELS_MODEL_H_
#define WEIR_MODELS_MODEL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/model.pb.h"

namespace weir {

// Loads a preset or a file: a native textproto (weir.Model), a Hugging Face
// config.json (first byte '{'), or a PipeDream profile graph (first line
// "nodeK -- ..."). The content decides, not the name. The model comes back
// validated and with every default filled in.
absl::StatusOr<Model> LoadModel(const std::string& name_or_path);

// The same from text; `label` names it in messages.
absl::StatusOr<Model> ParseModel(absl::string_view label,
                                 absl::string_view text);

// The same from a message: `model` with every default filled in, once it is
// found valid.
absl::StatusOr<Model> CompleteModel(absl::string_view label, Model model);

// Everything wrong with a model, all problems at once.
absl::Status ValidateModel(absl::string_view label, const Model& model);

// Trained parameters of the whole model; equal to the published counts.
// Measured models: parameter_bytes / 4 (PipeDream profiles are fp32).
double CountParameters(const Model& model);

// Sequence length that a scenario without one gets; 0 for measured models.
uint32_t DefaultSequenceLength(const Model& model);

}  // namespace weir

#endif  // WEIR_MODELS_MODEL_H_
