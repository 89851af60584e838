// SPDX-License-Identifier: Apache-2.0
// Tests of recipes: bytes of casts, of saved activations, of weights and of
// gathered operands in closed form (docs/number-formats.md).
#include "models/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/assets.h"
#include "models/layer_list.h"
#include "models/layer_work.h"
#include "models/model.h"

namespace weir::models::recipe_test {

using testing::HasSubstr;

// Llama 3.1 8B: 32 heads of 128, 8 of keys and values, gated feed-forward.
constexpr double h = 4096, kv = 1024, f = 14336, s = 2048;
constexpr double kMatrices = h * (h + 2 * kv) + h * h + 3 * h * f;

Model Llama() { return *LoadModel("llama-3.1-8b"); }

Quantization FormatsOfRecipe(const std::string& name, bool transposed) {
  return QuantizationOf(*LoadRecipe(name), transposed);
}

WorkSpec SpecOf(const Quantization& formats, int tensor = 1) {
  WorkSpec spec;
  spec.sequence_length = static_cast<int>(s);
  spec.flash_attention = true;
  spec.tensor_parallel = tensor;
  spec.sequence_parallel = tensor > 1;
  spec.quantization = formats;
  return spec;
}

LayerWork Block(const WorkSpec& spec) {
  const absl::Status valid = ValidateWorkSpec("test", Llama(), spec);
  EXPECT_TRUE(valid.ok()) << valid;
  return LayersOf(Llama(), spec)[1];
}

double BytesOf(const std::vector<Kernel>& kernels, KernelPart part) {
  double bytes = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.part == part) bytes += kernel.bytes;
  }
  return bytes;
}

double CastBytes(const std::vector<Kernel>& kernels) {
  return BytesOf(kernels, KernelPart::kCast);
}

double Flops(const LayerWork& work) {
  double flops = 0;
  for (const auto* kernels :
       {&work.forward, &work.backward_input, &work.backward_weight}) {
    for (const Kernel& kernel : *kernels) flops += kernel.flops;
  }
  return flops;
}

TEST(RecipeTest, ElementsIncludeTheirPartOfTheScales) {
  EXPECT_EQ(OperandBytes(OPERAND_FP8), 1);
  EXPECT_EQ(OperandBytes(OPERAND_FP8_BLOCK), 1 + 4 / 128.0);
  EXPECT_EQ(OperandBytes(OPERAND_FP8_BLOCK, Operand::kWeight), 1 + 4 / 16384.0);
  EXPECT_EQ(OperandBytes(OPERAND_MXFP8), 33 / 32.0);
  EXPECT_EQ(OperandBytes(OPERAND_NVFP4), 9 / 16.0);
  EXPECT_EQ(OperandBytes(OPERAND_MXFP4), 17 / 32.0);
}

TEST(RecipeTest, EveryFormatIsNamedOnce) {
  for (int i = OPERAND_16_BIT + 1; i < OperandFormat_ARRAYSIZE; ++i) {
    const auto format = static_cast<OperandFormat>(i);
    EXPECT_EQ(OperandFormatNamed(Name(format)), format);
  }
  EXPECT_EQ(OperandFormatNamed("bf16"), OPERAND_16_BIT);
}

TEST(RecipeTest, OtherProgramsNamesArePresets) {
  for (const char* name :
       {"fp8", "tensorwise", "blockwise", "bf16_with_fp8_current_scaling_mixed",
        "fp8_cs", "fp8_mx", "nvfp4"}) {
    EXPECT_TRUE(LoadRecipe(name).ok()) << name;
  }
  EXPECT_EQ(LoadRecipe("fp8_cs")->name(), "fp8-current");
  const auto unknown = LoadRecipe("fp8-curent");
  EXPECT_THAT(std::string(unknown.status().message()),
              HasSubstr("fp8-current"));
}

TEST(RecipeTest, ProblemsNameTheField) {
  Recipe recipe;
  recipe.set_forward(OPERAND_FP8);
  recipe.set_precision(FP32);
  recipe.set_input_reads(99);
  const std::string problems(ValidateRecipe("r", recipe).message());
  EXPECT_THAT(problems, HasSubstr("name"));
  EXPECT_THAT(problems, HasSubstr("precision"));
  EXPECT_THAT(problems, HasSubstr("input_reads"));
}

TEST(RecipeTest, SixteenBitRecipesChangeNothing) {
  const LayerWork plain = Block(SpecOf({}));
  for (const char* name : {"bf16", "fp16"}) {
    const LayerWork work = Block(SpecOf(FormatsOfRecipe(name, true)));
    EXPECT_EQ(work.forward, plain.forward);
    EXPECT_EQ(work.backward_input, plain.backward_input);
    EXPECT_EQ(work.backward_weight, plain.backward_weight);
    EXPECT_EQ(work.stash_bytes, plain.stash_bytes);
    EXPECT_EQ(work.quantized_parameters, 0);
  }
}

struct Case {
  const char* recipe;
  bool transposed;
  double reads;   // of 16-bit tensors by a cast
  double copies;  // bytes per element of both copies
  double saved;   // bytes per element of an input
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.recipe << (c.transposed ? ", transposed" : "");
}

class RecipeCastTest : public testing::TestWithParam<Case> {};

// The inputs of four layers (h, h, h and f wide), the gradients of their
// outputs (h + 2 kv, h, 2 f and h wide).
TEST_P(RecipeCastTest, CastsReadTensorsAndWriteCopies) {
  const Case& c = GetParam();
  const LayerWork work = Block(SpecOf(FormatsOfRecipe(c.recipe, c.transposed)));
  const double each = 2 * c.reads + c.copies;
  EXPECT_NEAR(CastBytes(work.forward), each * s * (3 * h + f), 1e-3);
  EXPECT_NEAR(CastBytes(work.backward_input),
              each * s * (3 * h + 2 * kv + 2 * f), 1e-3);
  EXPECT_EQ(CastBytes(work.backward_weight), 0);
}

// The output of fused attention is saved in 16 bits too.
TEST_P(RecipeCastTest, InputsAreSavedInTheirFormat) {
  const Case& c = GetParam();
  const LayerWork work = Block(SpecOf(FormatsOfRecipe(c.recipe, c.transposed)));
  EXPECT_NEAR(work.stash_bytes - Block(SpecOf({})).stash_bytes,
              s * ((c.saved - 2) * (2 * h + f) + c.saved * h), 1e-3);
  EXPECT_NEAR(work.weight_gradient_stash_bytes -
                  Block(SpecOf({})).weight_gradient_stash_bytes,
              s * (c.saved - 2) * ((3 * h + f) + (3 * h + 2 * kv + 2 * f)),
              1e-3);
}

TEST_P(RecipeCastTest, FlopAndParametersStay) {
  const Case& c = GetParam();
  const LayerWork work = Block(SpecOf(FormatsOfRecipe(c.recipe, c.transposed)));
  const LayerWork plain = Block(SpecOf({}));
  EXPECT_NEAR(Flops(work) / Flops(plain), 1, 1e-12);
  EXPECT_EQ(work.parameters, plain.parameters);
  EXPECT_EQ(work.quantized_parameters, kMatrices);
}

// m x k and k x n in the format, m x n in 16 bits.
TEST_P(RecipeCastTest, GemmsReadTheirOperandsInTheFormat) {
  const Case& c = GetParam();
  const LayerWork work = Block(SpecOf(FormatsOfRecipe(c.recipe, c.transposed)));
  int num_gemms = 0;
  for (const Kernel& kernel : work.forward) {
    if (kernel.kind != Kernel::Kind::kGemm) continue;
    ++num_gemms;
    EXPECT_NE(kernel.format, OPERAND_16_BIT);
    EXPECT_NEAR(kernel.bytes,
                OperandBytes(kernel.format) * kernel.m * kernel.k +
                    OperandBytes(kernel.format, Operand::kWeight) * kernel.k *
                        kernel.n +
                    2 * kernel.m * kernel.n,
                1e-3);
  }
  EXPECT_EQ(num_gemms, 4);
}

// An all-gather before a column-parallel layer moves operands, that after a
// row-parallel one in the backward too; reduce-scatters move 16 bits.
TEST_P(RecipeCastTest, SequenceParallelGathersMoveOperands) {
  const Case& c = GetParam();
  const LayerWork work =
      Block(SpecOf(FormatsOfRecipe(c.recipe, c.transposed), 4));
  const double first = OperandBytes(FormatsOfRecipe(c.recipe, false).forward);
  for (const auto* calls :
       {&work.forward_collectives, &work.backward_collectives}) {
    double gathers = 0;
    for (const LayerCollective& call : *calls) {
      const bool gather = call.kind == CollectiveKind::kAllGather;
      if (gather) gathers += call.count;
      EXPECT_NEAR(call.bytes, (gather ? first : 2) * s * h, 1e-3);
    }
    EXPECT_EQ(gathers, calls == &work.forward_collectives ? 2 : 4);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RecipeCastTest,
    testing::Values(Case{"fp8-current", true, 2, 2, 1},
                    Case{"fp8-current", false, 2, 1, 1},
                    Case{"fp8-blockwise", true, 1, 2 + 8 / 128.0,
                         1 + 4 / 128.0},
                    Case{"deepseek-v3", false, 1, 2 + 8 / 128.0, 1 + 4 / 128.0},
                    Case{"mxfp8", false, 1, 66 / 32.0, 33 / 32.0},
                    Case{"nvfp4", false, 3, 18 / 16.0, 9 / 16.0}));

// With delayed scaling, two norms write FP8 (3 instead of 4 bytes per element),
// from which the transposed copies are made; other inputs are cast.
TEST(RecipeTest, NormsCastWithDelayedScaling) {
  const LayerWork work = Block(SpecOf(FormatsOfRecipe("fp8-delayed", true)));
  EXPECT_EQ(BytesOf(work.forward, KernelPart::kNorm), 2 * 3 * s * h);
  EXPECT_EQ(CastBytes(work.forward), s * (2 * 2 * h + 4 * (h + f)));
  const LayerWork blackwell =
      Block(SpecOf(FormatsOfRecipe("fp8-delayed", false)));
  EXPECT_EQ(BytesOf(blackwell.forward, KernelPart::kNorm), 2 * 3 * s * h);
  EXPECT_EQ(CastBytes(blackwell.forward), s * 3 * (h + f));
}

// Gathered FP8 operands are transposed for the weight gradient by every GPU.
TEST(RecipeTest, GatheredCopiesAreTransposed) {
  const double t = 4;
  const LayerWork work = Block(SpecOf(FormatsOfRecipe("fp8-current", true), 4));
  // Two gathered inputs and two gathered gradients, all h wide.
  EXPECT_NEAR(CastBytes(work.backward_weight), 4 * 2 * s * h, 1e-3);
  // Local casts of two inputs write one copy; those of attention and
  // activation, h / t and f / t wide, two.
  EXPECT_NEAR(CastBytes(work.forward), s * (2 * 5 * h / t + 6 * (h + f) / t),
              1e-3);
}

TEST(RecipeTest, FirstAndLastBlocksRemainIn16Bits) {
  Quantization formats = FormatsOfRecipe("fp8-current", true);
  formats.first_blocks = 2;
  formats.last_blocks = 1;
  const LayerList layers = ListLayers(Llama(), SpecOf(formats));
  const int num_blocks = static_cast<int>(layers.size()) - 2;
  for (int block = 0; block < num_blocks; ++block) {
    const bool plain = block < 2 || block == num_blocks - 1;
    EXPECT_EQ(layers[block + 1].quantized_parameters, plain ? 0 : kMatrices);
  }
  EXPECT_NE(layers[1].name, layers[3].name);
  EXPECT_EQ(
      StageQuantizedParameters(layers, 0, static_cast<int>(layers.size())),
      (num_blocks - 3) * kMatrices);
}

TEST(RecipeTest, EmbeddingHeadAndRouterRemainIn16Bits) {
  const Model model = *LoadModel("qwen3-30b-a3b");
  const LayerList layers =
      ListLayers(model, SpecOf(FormatsOfRecipe("mxfp8", false)));
  for (const LayerWork* layer : {&layers.front(), &layers.back()}) {
    EXPECT_EQ(layer->quantized_parameters, 0);
    EXPECT_EQ(CastBytes(layer->forward), 0);
  }
  for (const Kernel& kernel : layers[1].forward) {
    if (kernel.kind != Kernel::Kind::kGemm) continue;
    EXPECT_EQ(kernel.format == OPERAND_16_BIT,
              kernel.part == KernelPart::kRouter);
  }
}

TEST(RecipeTest, WeightsOfShardedModelsAreCastInEveryForward) {
  Quantization formats = FormatsOfRecipe("fp8-current", true);
  formats.casts_weights_each_pass = true;
  const double once =
      CastBytes(Block(SpecOf(FormatsOfRecipe("fp8-current", true))).forward);
  EXPECT_NEAR(CastBytes(Block(SpecOf(formats)).forward) - once,
              (2 * 2 + 2) * kMatrices, 1e-3);
}

TEST(RecipeTest, EveryPresetIsValid) {
  for (const std::string& name : ListAssets("models/recipes")) {
    const auto recipe = LoadRecipe(name);
    ASSERT_TRUE(recipe.ok()) << recipe.status();
    EXPECT_EQ(recipe->name(), name);
    EXPECT_FALSE(recipe->description().empty()) << name;
    EXPECT_FALSE(recipe->source().empty()) << name;
  }
}

}  // namespace weir::models::recipe_test
