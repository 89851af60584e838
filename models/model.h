// SPDX-License-Identifier: Apache-2.0
// Loads, checks and counts models.
#ifndef WEIR_MODELS_MODEL_H_
#define WEIR_MODELS_MODEL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/model.pb.h"

namespace weir::models {

// Returns "NAME/config.json" if that exists in a folder of this name and no
// preset has it, the "config.json" in the folder of a hf_quant_config.json
// (also with a prefix before both names), otherwise the name.
std::string ModelFile(const std::string& name_or_path);

// Loads a preset, a folder with a config.json, or a file: a native textproto
// (weir.Model), a Hugging Face config.json (first byte '{'), or a PipeDream
// profile graph (first line "nodeK
// -- ..."). The format is detected from the content, not the name. The returned
// model is validated and has every default filled in. Returns NotFound if there
// is neither, and InvalidArgument with all problems of the model.
absl::StatusOr<Model> LoadModel(const std::string& name_or_path);

// Does the same for text. Error messages begin with `label`. Returns
// InvalidArgument with all problems of the model.
absl::StatusOr<Model> ParseModel(absl::string_view label,
                                 absl::string_view text);

// Validates `model` and fills in every default. Returns InvalidArgument with
// all problems of the model.
absl::StatusOr<Model> CompleteModel(absl::string_view label, Model model);

// Reports all problems of a model at once. Returns InvalidArgument with them.
absl::Status ValidateModel(absl::string_view label, const Model& model);

// Returns the trained parameters of the whole model with its encoder, equal to
// the published counts. MTP modules, which publishers leave out, do not count.
// Measured models: parameter_bytes / 4 (PipeDream profiles are fp32).
double CountParameters(const Model& model);

// Returns those of CountParameters that process a token of text: of routed
// experts, as many as the router chooses, and no encoder.
double CountActiveParameters(const Model& model);

// Returns the parameters of all MTP modules, which use the embedding and the
// output projection of the model.
double CountMtpParameters(const Model& model);

// Returns the parameters of the token embedding. Some publishers do not count
// them as active, because a lookup does no arithmetic.
double CountTableParameters(const Model& model);

// Returns the sequence length for scenarios that give none; 0 for measured
// models.
uint32_t DefaultSequenceLength(const Model& model);

}  // namespace weir::models

#endif  // WEIR_MODELS_MODEL_H_
