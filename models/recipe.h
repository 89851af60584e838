// SPDX-License-Identifier: Apache-2.0
// Recipes: the number formats of a training step, as presets or files
// (docs/number-formats.md).
#ifndef WEIR_MODELS_RECIPE_H_
#define WEIR_MODELS_RECIPE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/quantization.h"
#include "models/recipe.pb.h"

namespace weir::models {

// Loads and checks a preset ("fp8-current") or a file. Also accepts other
// programs' names of presets ("tensorwise", "bf16_with_mxfp8_mixed", "fp8_cs").
// Returns NotFound if there is neither, InvalidArgument if the file is no valid
// recipe.
absl::StatusOr<Recipe> LoadRecipe(const std::string& name_or_path);

// Returns the preset that another program calls `name`, or `name` itself.
std::string RecipeNamed(absl::string_view name);

// Reports all problems at once, each with the field, the value found and the
// value expected. Returns InvalidArgument with them.
absl::Status ValidateRecipe(absl::string_view label, const Recipe& recipe);

// Returns the part that changes layers. `transposed_copies`: as in
// MatrixRate of the device.
Quantization QuantizationOf(const Recipe& recipe, bool transposed_copies);

// Returns the different formats of a recipe's GEMMs, without OPERAND_16_BIT.
std::vector<OperandFormat> FormatsOf(const Recipe& recipe);

// Returns the bytes per parameter of a value that the optimizer keeps.
double StateBytes(StateFormat format);

}  // namespace weir::models

#endif  // WEIR_MODELS_RECIPE_H_
