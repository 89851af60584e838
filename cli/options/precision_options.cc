// SPDX-License-Identifier: Apache-2.0
#include "cli/options/precision_options.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "cli/options/add_option.h"
#include "models/recipe.h"

namespace weir::cli {
namespace {

constexpr std::pair<absl::string_view, Precision> kPrecisions[] = {
    {"fp16", MIXED_FP16}, {"bf16", MIXED_BF16}, {"fp32", FP32}};

Precision PrecisionNamed(absl::string_view name) {
  for (const auto& [word, precision] : kPrecisions) {
    if (name == word) return precision;
  }
  return PRECISION_UNSPECIFIED;
}

// Returns the name if it is that of a precision or recipe.
absl::StatusOr<std::string> ParseFormat(absl::string_view text) {
  std::string name(text);
  if (PrecisionNamed(name) == PRECISION_UNSPECIFIED) {
    RETURN_IF_ERROR(models::LoadRecipe(name).status());
  }
  return name;
}

void SetFormat(const std::string& name, Scenario* scenario) {
  Training* training = scenario->mutable_training();
  const Precision precision = PrecisionNamed(name);
  if (precision != PRECISION_UNSPECIFIED) {
    training->set_precision(precision);
    training->clear_recipe();
  } else {
    training->set_recipe(models::RecipeNamed(name));
    training->clear_precision();
  }
}

enum class Recipe8Bit { kDelayed, kTensorwise, kBlockwise, kMxfp8 };
constexpr const char* kRecipes8Bit[] = {"fp8-delayed", "fp8-current",
                                        "fp8-blockwise", "mxfp8"};

const std::vector<std::pair<absl::string_view, StateFormat>>& StateFormats() {
  static const auto& formats =
      *new std::vector<std::pair<absl::string_view, StateFormat>>{
          {"fp32", STATE_FP32},
          {"bf16", STATE_BF16},
          {"fp16", STATE_FP16},
          {"fp8", STATE_FP8}};
  return formats;
}

void AddMegatronRecipes(CLI::App* app, Scenario* scenario) {
  // Every FP8 format has the same cost.
  AddChoice<int>(app, "--fp8-format",
                 "FP8 GEMMs, with delayed scaling unless --fp8-recipe is given",
                 {{"hybrid", 0}, {"e4m3", 1}}, [=](int) {
                   if (scenario->training().recipe().empty())
                     SetFormat("fp8-delayed", scenario);
                 });
  AddChoice<Recipe8Bit>(app, "--fp8-recipe", "scale factors of FP8",
                        {{"delayed", Recipe8Bit::kDelayed},
                         {"tensorwise", Recipe8Bit::kTensorwise},
                         {"blockwise", Recipe8Bit::kBlockwise},
                         {"mxfp8", Recipe8Bit::kMxfp8}},
                        [=](Recipe8Bit recipe) {
                          SetFormat(kRecipes8Bit[static_cast<int>(recipe)],
                                    scenario);
                        });
  AddChoice<int>(app, "--fp4-format", "--precision nvfp4", {{"e2m1", 0}},
                 [=](int) { SetFormat("nvfp4", scenario); });
}

void AddBlocks(CLI::App* app, Scenario* scenario) {
  AddSwitch(app, "--first-last-layers-bf16",
            "the first and the last block remain in 16 bits", [=](bool on) {
              if (!on) return;
              if (!scenario->training().has_first_blocks_in_16_bits())
                scenario->mutable_training()->set_first_blocks_in_16_bits(1);
              if (!scenario->training().has_last_blocks_in_16_bits())
                scenario->mutable_training()->set_last_blocks_in_16_bits(1);
            });
  AddCount(app, "--num-layers-at-start-in-bf16",
           "first blocks whose GEMMs remain in 16 bits", [=](uint32_t count) {
             scenario->mutable_training()->set_first_blocks_in_16_bits(count);
           });
  AddCount(app, "--num-layers-at-end-in-bf16",
           "last blocks whose GEMMs remain in 16 bits", [=](uint32_t count) {
             scenario->mutable_training()->set_last_blocks_in_16_bits(count);
           });
}

}  // namespace

void AddPrecision(CLI::App* app, Scenario* scenario) {
  AddOption(app, "--precision", "FORMAT",
            "number format: fp16, bf16 (both keep fp32 master weights), fp32, "
            "or a recipe: fp8-delayed, fp8-current, fp8-blockwise, "
            "deepseek-v3, mxfp8, nvfp4, mxfp4 or a file "
            "(docs/number-formats.md)",
            ParseFormat,
            [=](const std::string& name) { SetFormat(name, scenario); })
      ->default_str("by --defaults");
  AddSwitch(app, "--fp16", "--precision fp16", [=](bool on) {
    if (on) SetFormat("fp16", scenario);
  });
  // Also given with --fp8-format, of which it is the other formats.
  AddSwitch(app, "--bf16", "--precision bf16", [=](bool on) {
    if (on) SetFormat("bf16", scenario);
  });
  AddMegatronRecipes(app, scenario);
  AddSwitch(app, "--fp8-param-gather",
            "keep and gather weights in the recipe's format", [=](bool on) {
              scenario->mutable_training()->set_quantized_parameters(on);
            });
  AddBlocks(app, scenario);
  AddChoice<StateFormat>(
      app, "--exp-avg-dtype", "format of Adam's first moment", StateFormats(),
      [=](StateFormat format) {
        scenario->mutable_training()->set_first_moment(format);
      })
      ->default_str("fp32");
  AddChoice<StateFormat>(
      app, "--exp-avg-sq-dtype", "format of Adam's second moment",
      StateFormats(),
      [=](StateFormat format) {
        scenario->mutable_training()->set_second_moment(format);
      })
      ->default_str("fp32");
  AddChoice<StateFormat>(
      app, "--main-params-dtype", "format of the optimizer's weights",
      StateFormats(),
      [=](StateFormat format) {
        scenario->mutable_training()->set_main_weights(format);
      })
      ->default_str("fp32");
}

void ReplacePrecision(const Training& overrides, Training* training) {
  if (!overrides.recipe().empty()) {
    training->clear_precision();
  } else if (overrides.precision() != PRECISION_UNSPECIFIED) {
    training->clear_recipe();
  }
}

}  // namespace weir::cli
