// SPDX-License-Identifier: Apache-2.0
#include "cli/options/precision_options.h"

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/assets.h"
#include "base/problems.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/values.h"
#include "cli/options/adapter_options.h"
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
  std::string name = models::RecipeNamed(text);
  if (PrecisionNamed(name) != PRECISION_UNSPECIFIED) return name;
  const absl::Status status = models::LoadRecipe(name).status();
  if (absl::IsNotFound(status)) {
    std::vector<std::string> names = ListAssets("models/recipes");
    names.push_back("fp32");
    return absl::NotFoundError(absl::StrCat(
        "is ", EscapeLine(text), ", expected ", absl::StrJoin(names, ", "),
        " or the path of a file", DidYouMean(text, names)));
  }
  RETURN_IF_ERROR(status);
  return name;
}

struct Named {
  absl::string_view flag, preset;
};
constexpr Named kRecipes8Bit[] = {{"delayed", "fp8-delayed"},
                                  {"tensorwise", "fp8-current"},
                                  {"blockwise", "fp8-blockwise"},
                                  {"mxfp8", "mxfp8"}};

// A recipe and the flag that names it.
struct GivenRecipe {
  std::string name;  // empty: none
  std::string flag;  // "--fp8-recipe tensorwise"
};

std::string PresetOf(absl::string_view fp8_recipe) {
  for (const auto& [flag, preset] : kRecipes8Bit) {
    if (flag == fp8_recipe) return std::string(preset);
  }
  return "";
}

GivenRecipe RecipeOf(const FormatFlags& formats) {
  if (!formats.precision.empty() &&
      PrecisionNamed(formats.precision) == PRECISION_UNSPECIFIED) {
    return {formats.precision, absl::StrCat("--precision ", formats.precision)};
  }
  if (!formats.fp8_recipe.empty()) {
    return {PresetOf(formats.fp8_recipe),
            absl::StrCat("--fp8-recipe ", formats.fp8_recipe)};
  }
  if (!formats.fp8_format.empty()) {
    return {"fp8-delayed", absl::StrCat("--fp8-format ", formats.fp8_format)};
  }
  if (!formats.fp4_format.empty()) {
    return {"nvfp4", absl::StrCat("--fp4-format ", formats.fp4_format)};
  }
  return {};
}

// Sets the fields that the flags given so far determine.
void SetFormats(const FormatFlags& formats, Training* training) {
  const GivenRecipe recipe = RecipeOf(formats);
  Precision precision = PrecisionNamed(formats.precision);
  if (formats.fp16) precision = MIXED_FP16;
  if (formats.bf16) precision = MIXED_BF16;
  training->clear_recipe();
  training->clear_precision();
  if (!recipe.name.empty()) training->set_recipe(recipe.name);
  if (precision != PRECISION_UNSPECIFIED) training->set_precision(precision);
}

bool Is4Bit(OperandFormat format) {
  return format == OPERAND_NVFP4 || format == OPERAND_MXFP4;
}

bool SameGemms(const Recipe& a, const Recipe& b) {
  return a.forward() == b.forward() &&
         a.input_gradient() == b.input_gradient() &&
         a.weight_gradient() == b.weight_gradient() &&
         a.input_reads() == b.input_reads() && a.norms_cast() == b.norms_cast();
}

// Returns "--main-grads-dtype bf16".
std::string GradientFlag(const std::pair<const std::string, bool>& given) {
  const auto& [flag, fp32] = given;
  if (flag == "--main-grads-dtype")
    return absl::StrCat(flag, fp32 ? " fp32" : " bf16");
  return flag == "--fp32-gradients" && !fp32 ? absl::StrCat(flag, "=false")
                                             : flag;
}

// Finds flags that contradict each other.
class Contradictions {
 public:
  explicit Contradictions(const FormatFlags& formats) : formats_(formats) {}

  absl::Status Find() {
    CheckPlain();
    CheckMegatron();
    Check16Bit();
    CheckGradients();
    return problems_.ToStatus();
  }

 private:
  void Add(absl::string_view flag, absl::string_view other,
           absl::string_view expected) {
    problems_.Add(flag,
                  absl::StrCat("contradicts ", other, ", expected ", expected));
  }

  std::string PrecisionFlag() const {
    return absl::StrCat("--precision ", formats_.precision);
  }

  // Checks the 16-bit and 32-bit formats against each other.
  void CheckPlain() {
    if (formats_.bf16 && formats_.fp16) Add("--bf16", "--fp16", "one of them");
    const Precision plain = PrecisionNamed(formats_.precision);
    if (plain == PRECISION_UNSPECIFIED) return;
    if (formats_.bf16 && plain != MIXED_BF16)
      Add("--bf16", PrecisionFlag(), "one of them");
    if (formats_.fp16 && plain != MIXED_FP16)
      Add("--fp16", PrecisionFlag(), "one of them");
  }

  // Checks the flags of Megatron-LM against each other and --precision.
  void CheckMegatron() {
    const std::string format8 =
        absl::StrCat("--fp8-format ", formats_.fp8_format);
    const std::string recipe8 =
        absl::StrCat("--fp8-recipe ", formats_.fp8_recipe);
    const std::string format4 =
        absl::StrCat("--fp4-format ", formats_.fp4_format);
    const bool has_format8 = !formats_.fp8_format.empty();
    const bool has_recipe8 = !formats_.fp8_recipe.empty();
    const bool has_format4 = !formats_.fp4_format.empty();
    if (has_format4 && has_format8) Add(format4, format8, "one of them");
    if (has_format4 && has_recipe8) Add(format4, recipe8, "one of them");
    if (formats_.precision.empty()) return;
    const Precision plain = PrecisionNamed(formats_.precision);
    if (plain == FP32) {
      const char* expected = "--bf16 with a recipe in 8 or 4 bits";
      if (has_format8) Add(PrecisionFlag(), format8, expected);
      if (has_recipe8) Add(PrecisionFlag(), recipe8, expected);
      if (has_format4) Add(PrecisionFlag(), format4, expected);
    }
    if (plain != PRECISION_UNSPECIFIED) return;
    const auto recipe = models::LoadRecipe(formats_.precision);
    if (!recipe.ok()) return;  // reported when it is loaded
    const std::vector<OperandFormat> operands = models::FormatsOf(*recipe);
    const bool has4 = absl::c_any_of(operands, Is4Bit);
    const bool has8 = !absl::c_all_of(operands, Is4Bit);
    if (has_format8 && !has8) Add(PrecisionFlag(), format8, "one of them");
    if (has_format4 && !has4) Add(PrecisionFlag(), format4, "one of them");
    if (!has_recipe8) return;
    const auto other = models::LoadRecipe(PresetOf(formats_.fp8_recipe));
    if (other.ok() && !SameGemms(*recipe, *other))
      Add(PrecisionFlag(), recipe8, "one of them");
  }

  // Checks the 16-bit format against that of the recipe.
  void Check16Bit() {
    const GivenRecipe given = RecipeOf(formats_);
    if (given.name.empty()) return;
    const auto recipe = models::LoadRecipe(given.name);
    if (!recipe.ok()) return;
    const bool is_fp16 = recipe->precision() == MIXED_FP16;
    const char* other = is_fp16 ? "fp16" : "bf16";
    const std::string expected =
        absl::StrCat("--", other, ": the recipe's other formats are ", other);
    const Precision plain = PrecisionNamed(formats_.precision);
    if (formats_.fp16 && !is_fp16) Add("--fp16", given.flag, expected);
    if (formats_.bf16 && is_fp16) Add("--bf16", given.flag, expected);
    if (plain == MIXED_FP16 && !is_fp16)
      Add(PrecisionFlag(), given.flag, expected);
  }

  void CheckGradients() {
    const auto& given = formats_.fp32_gradients;
    for (auto a = given.begin(); a != given.end(); ++a) {
      for (auto b = std::next(a); b != given.end(); ++b) {
        if (a->second == b->second) continue;
        Add(GradientFlag(*a), GradientFlag(*b), "one of them");
      }
    }
  }

  const FormatFlags& formats_;
  Problems problems_{"command line"};
};

const std::vector<std::pair<absl::string_view, StateFormat>>& StateFormats() {
  static const auto& formats =
      *new std::vector<std::pair<absl::string_view, StateFormat>>{
          {"fp32", STATE_FP32},
          {"bf16", STATE_BF16},
          {"fp16", STATE_FP16},
          {"fp8", STATE_FP8}};
  return formats;
}

void AddMegatronRecipes(CLI::App* app, ScenarioFlags* flags) {
  const auto add = [=](const char* name, const char* help,
                       const Choices& choices,
                       std::string FormatFlags::*given) {
    AddChoice<int>(app, name, help, choices, [=](int i) {
      flags->formats.*given = std::string(choices[i].first);
      SetFormats(flags->formats, flags->overrides.mutable_training());
    });
  };
  // Every FP8 format has the same cost.
  add("--fp8-format",
      "FP8 GEMMs, with delayed scaling unless a recipe is given",
      {{"hybrid", 0}, {"e4m3", 1}}, &FormatFlags::fp8_format);
  Choices recipes;
  for (const auto& [flag, preset] : kRecipes8Bit)
    recipes.emplace_back(flag, static_cast<int>(recipes.size()));
  add("--fp8-recipe", "scale factors of FP8", recipes,
      &FormatFlags::fp8_recipe);
  add("--fp4-format", "NVFP4 GEMMs, unless another recipe in 4 bits is given",
      {{"e2m1", 0}}, &FormatFlags::fp4_format);
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
           "first blocks whose GEMMs remain in 16 bits",
           [=](uint32_t count) {
             scenario->mutable_training()->set_first_blocks_in_16_bits(count);
           })
      ->default_str("the recipe's");
  AddCount(app, "--num-layers-at-end-in-bf16",
           "last blocks whose GEMMs remain in 16 bits",
           [=](uint32_t count) {
             scenario->mutable_training()->set_last_blocks_in_16_bits(count);
           })
      ->default_str("the recipe's");
}

}  // namespace

void AddPrecision(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  const auto set = [=] {
    SetFormats(flags->formats, flags->overrides.mutable_training());
  };
  AddOption(app, "--precision", "FORMAT",
            "number format: fp16, bf16 (both keep fp32 master weights), fp32, "
            "or a recipe: fp8-delayed, fp8-current, fp8-blockwise, "
            "deepseek-v3, mxfp8, nvfp4, mxfp4 or a file "
            "(docs/number-formats.md)",
            ParseFormat,
            [=](const std::string& name) {
              flags->formats.precision = name;
              set();
            })
      ->default_str("by --defaults");
  AddSwitch(app, "--fp16", "--precision fp16, or the 16-bit format of a recipe",
            [=](bool on) {
              flags->formats.fp16 = on;
              set();
            });
  AddSwitch(app, "--bf16", "--precision bf16, or the 16-bit format of a recipe",
            [=](bool on) {
              flags->formats.bf16 = on;
              set();
            });
  AddMegatronRecipes(app, flags);
  AddSwitch(app, "--fp8-param-gather",
            "keep and gather weights in the recipe's format", [=](bool on) {
              scenario->mutable_training()->set_quantized_parameters(on);
            });
  AddBlocks(app, scenario);
  AddOtherFormats(app, scenario);
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

void AddGradientFormat(CLI::App* app, ScenarioFlags* flags) {
  const auto set = [=](const char* given, bool fp32) {
    flags->formats.fp32_gradients[given] = fp32;
    flags->fp32_gradients = fp32;
  };
  AddSwitch(app, "--fp32-gradients,--accumulate-allreduce-grads-in-fp32",
            "accumulate gradients in fp32",
            [=](bool on) { set("--fp32-gradients", on); })
      ->default_str("with Megatron-LM and bf16");
  AddChoice<int>(app, "--main-grads-dtype",
                 "fp32: --fp32-gradients; bf16: --grad-reduce-in-bf16",
                 {{"fp32", 1}, {"bf16", 0}},
                 [=](int fp32) { set("--main-grads-dtype", fp32 == 1); });
  AddSwitch(app, "--grad-reduce-in-bf16",
            "keep and reduce gradients of bf16 weights in bf16", [=](bool on) {
              if (on) set("--grad-reduce-in-bf16", false);
            });
}

absl::Status CheckFormats(const FormatFlags& formats) {
  return Contradictions(formats).Find();
}

void ReplacePrecision(const Training& overrides, Training* training) {
  if (!overrides.recipe().empty()) {
    training->clear_precision();
  } else if (overrides.precision() != PRECISION_UNSPECIFIED) {
    training->clear_recipe();
  }
}

}  // namespace weir::cli
