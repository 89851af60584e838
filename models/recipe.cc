// SPDX-License-Identifier: Apache-2.0
#include "models/recipe.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/assets.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/textproto.h"

namespace weir::models {
namespace {

constexpr uint32_t kMostReads = 16;
constexpr uint32_t kMostBlocks = 1e6;

// Names of Megatron-LM (--fp8-recipe, --fp4-recipe), of NeMo and Megatron
// Bridge (mixed_precision) and of Megatron Bridge's tables of performance.
constexpr std::pair<absl::string_view, absl::string_view> kOtherNames[] = {
    {"fp8", "fp8-delayed"},
    {"delayed", "fp8-delayed"},
    {"tensorwise", "fp8-current"},
    {"blockwise", "fp8-blockwise"},
    {"bf16_mixed", "bf16"},
    {"fp16_mixed", "fp16"},
    {"bf16_with_fp8_mixed", "fp8-delayed"},
    {"bf16_with_fp8_delayed_scaling_mixed", "fp8-delayed"},
    {"bf16_with_fp8_current_scaling_mixed", "fp8-current"},
    {"bf16_with_fp8_subchannel_scaling_mixed", "fp8-blockwise"},
    {"bf16_with_mxfp8_mixed", "mxfp8"},
    {"bf16_with_nvfp4_mixed", "nvfp4"},
    {"fp8_ds", "fp8-delayed"},
    {"fp8_cs", "fp8-current"},
    {"fp8_sc", "fp8-blockwise"},
    {"fp8_mx", "mxfp8"},
};

void CheckFormat(absl::string_view field, OperandFormat format,
                 Problems* problems) {
  if (OperandFormat_IsValid(format)) return;
  problems->Add(field, absl::StrCat("is ", static_cast<int>(format),
                                    ", expected a format such as OPERAND_FP8"));
}

}  // namespace

std::string RecipeNamed(absl::string_view name) {
  for (const auto& [other, preset] : kOtherNames) {
    if (name == other) return std::string(preset);
  }
  return std::string(name);
}

absl::StatusOr<Recipe> LoadRecipe(const std::string& name_or_path) {
  ASSIGN_OR_RETURN(const Asset asset,
                   LoadAsset("models/recipes", RecipeNamed(name_or_path)));
  Recipe recipe;
  RETURN_IF_ERROR(ParseTextProto(asset.label, asset.contents, &recipe));
  RETURN_IF_ERROR(ValidateRecipe(asset.label, recipe));
  return recipe;
}

absl::Status ValidateRecipe(absl::string_view label, const Recipe& recipe) {
  Problems problems(label);
  if (recipe.name().empty()) {
    problems.Add("name", "is empty, expected the name of the recipe");
  }
  CheckFormat("forward", recipe.forward(), &problems);
  CheckFormat("input_gradient", recipe.input_gradient(), &problems);
  CheckFormat("weight_gradient", recipe.weight_gradient(), &problems);
  CheckFormat("attention", recipe.attention(), &problems);
  CheckFormat("dispatch", recipe.dispatch(), &problems);
  const std::pair<const char*, uint32_t> reads[] = {
      {"input_reads", recipe.input_reads()},
      {"gradient_reads", recipe.gradient_reads()},
      {"weight_reads", recipe.weight_reads()}};
  for (const auto& [field, count] : reads) {
    problems.CheckRange(field, count, 0, kMostReads);
  }
  problems.CheckRange("first_blocks_in_16_bits",
                      recipe.first_blocks_in_16_bits(), 0, kMostBlocks);
  problems.CheckRange("last_blocks_in_16_bits", recipe.last_blocks_in_16_bits(),
                      0, kMostBlocks);
  const std::pair<const char*, StateFormat> states[] = {
      {"first_moment", recipe.first_moment()},
      {"second_moment", recipe.second_moment()},
      {"main_weights", recipe.main_weights()}};
  for (const auto& [field, format] : states) {
    if (StateFormat_IsValid(format)) continue;
    problems.Add(field, absl::StrCat("is ", static_cast<int>(format),
                                     ", expected a format such as STATE_BF16"));
  }
  if (!Precision_IsValid(recipe.precision())) {
    problems.Add("precision",
                 absl::StrCat("is ", static_cast<int>(recipe.precision()),
                              ", expected a precision such as MIXED_BF16"));
  }
  if (FormatsOf(recipe).empty() && recipe.attention() == OPERAND_16_BIT &&
      recipe.dispatch() == OPERAND_16_BIT) {
    return problems.ToStatus();
  }
  if (recipe.precision() == FP32) {
    problems.Add("precision",
                 "is FP32, expected MIXED_BF16 or MIXED_FP16 with GEMMs in 8 "
                 "or 4 bits");
  }
  return problems.ToStatus();
}

Quantization QuantizationOf(const Recipe& recipe, bool transposed_copies) {
  Quantization formats;
  formats.forward = recipe.forward();
  formats.input_gradient = recipe.input_gradient();
  formats.weight_gradient = recipe.weight_gradient();
  const auto reads = [](uint32_t count) {
    return static_cast<int>(std::max(count, 1u));
  };
  formats.input_reads = reads(recipe.input_reads());
  formats.gradient_reads = reads(recipe.gradient_reads());
  formats.weight_reads = reads(recipe.weight_reads());
  formats.norms_cast = recipe.norms_cast();
  formats.gathers_operands = recipe.gathers_operands();
  formats.transposed_copies = transposed_copies;
  formats.attention = recipe.attention();
  formats.dispatch = recipe.dispatch();
  formats.first_blocks = static_cast<int>(recipe.first_blocks_in_16_bits());
  formats.last_blocks = static_cast<int>(recipe.last_blocks_in_16_bits());
  return formats;
}

std::vector<OperandFormat> FormatsOf(const Recipe& recipe) {
  std::vector<OperandFormat> formats;
  for (const OperandFormat format :
       {recipe.forward(), recipe.input_gradient(), recipe.weight_gradient()}) {
    if (format == OPERAND_16_BIT) continue;
    if (std::find(formats.begin(), formats.end(), format) == formats.end())
      formats.push_back(format);
  }
  return formats;
}

double StateBytes(StateFormat format) {
  switch (format) {
    case STATE_BF16:
    case STATE_FP16:
      return 2;
    case STATE_FP8:
      return 1;
    default:
      return 4;
  }
}

}  // namespace weir::models
