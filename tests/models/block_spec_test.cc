// SPDX-License-Identifier: Apache-2.0
// Kinds of blocks, their pattern, MTP modules and encoders.
#include "models/block_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "models/describe.h"
#include "models/layer_list.h"
#include "models/model.h"
#include "models/parameters.h"
#include "tests/models/gpt.h"

namespace weir::models::block_spec_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kBase[] =
    "num_layers: 7 hidden_size: 64 num_heads: 4 num_kv_heads: 4 head_size: 16 "
    "feed_forward_size: 256 vocabulary_size: 100 causal: true rms_norm: true ";

absl::StatusOr<Model> Parse(const std::string& fields) {
  return ParseModel("x", absl::StrCat("transformer {", kBase, fields, "}"));
}

std::string Message(const std::string& fields) {
  return std::string(Parse(fields).status().message());
}

std::vector<std::string> Names(const Model& model) {
  const BlockList list = BlocksOf(model.transformer());
  std::vector<std::string> names;
  for (const int kind : list.kind_of) names.push_back(list.kinds[kind].name);
  return names;
}

WorkSpec Spec() {
  WorkSpec spec;
  spec.sequence_length = 32;
  spec.flash_attention = true;
  return spec;
}

constexpr char kWindows[] =
    "kinds { letter: 'S' name: 'sliding' block { sliding_window: 8 } } "
    "kinds { letter: 'F' name: 'full' } pattern: 'SSF' ";

TEST(BlocksOfTest, ShortPatternsRepeat) {
  const Model model = *Parse(kWindows);
  EXPECT_THAT(Names(model),
              ElementsAre("sliding block", "sliding block", "full block",
                          "sliding block", "sliding block", "full block",
                          "sliding block"));
  const BlockList list = BlocksOf(model.transformer());
  EXPECT_EQ(list.kinds[0].transformer.sliding_window(), 8u);
  EXPECT_EQ(list.kinds[1].transformer.sliding_window(), 0u);
  EXPECT_EQ(list.kinds[1].transformer.hidden_size(), 64u);
}

TEST(BlocksOfTest, KindsCombineWithPositionsOfExperts) {
  const Model model = *Parse(absl::StrCat(
      kWindows, "num_experts: 4 experts_per_token: 1 num_dense_blocks: 1"));
  EXPECT_THAT(
      Names(model),
      ElementsAre("sliding block", "sliding expert block", "full expert block",
                  "sliding expert block", "sliding expert block",
                  "full expert block", "sliding expert block"));
}

TEST(BlocksOfTest, HalvesOfBlocksHaveOneNorm) {
  const Model model = *Parse(
      "kinds { letter: '*' name: 'attention' feed_forward: FEED_FORWARD_NONE } "
      "kinds { letter: '-' name: 'feed-forward' no_mixer: true "
      "feed_forward: FEED_FORWARD_DENSE } pattern: '*-'");
  const LayerList layers = ListLayers(model, Spec());
  EXPECT_EQ(layers[1].parameters, 4 * 64.0 * 64 + 64);
  EXPECT_EQ(layers[2].parameters, 2 * 64.0 * 256 + 64);
  // Together they are one usual block.
  const LayerWork usual = ListLayers(*Parse(""), Spec())[1];
  EXPECT_EQ(layers[1].parameters + layers[2].parameters, usual.parameters);
  EXPECT_EQ(layers[1].stash_bytes + layers[2].stash_bytes, usual.stash_bytes);
  EXPECT_EQ(Flops(layers[1].forward) + Flops(layers[2].forward),
            Flops(usual.forward));
  EXPECT_EQ(layers[1].forward.size() + layers[2].forward.size(),
            usual.forward.size());
}

TEST(BlocksOfTest, WindowsPerformLessAndStoreTheSame) {
  const LayerList layers = ListLayers(*Parse(kWindows), Spec());
  EXPECT_LT(Flops(layers[1].forward), Flops(layers[3].forward));
  EXPECT_EQ(layers[1].parameters, layers[3].parameters);
  EXPECT_EQ(layers[1].stash_bytes, layers[3].stash_bytes);
}

TEST(BlocksOfTest, PatternsAreChecked) {
  EXPECT_THAT(Message("pattern: 'A'"),
              AllOf(HasSubstr("transformer.pattern is given, expected kinds"),
                    HasSubstr("has 'A' at position 1")));
  EXPECT_THAT(Message("kinds { letter: 'A' }"),
              HasSubstr("transformer.pattern is empty"));
  EXPECT_THAT(Message("kinds { letter: 'AB' } kinds { letter: 'C' name: 'x' } "
                      "kinds { letter: 'C' name: 'x' } pattern: 'CD'"),
              AllOf(HasSubstr("kinds[0].letter is \"AB\", expected one"),
                    HasSubstr("kinds[2].letter is \"C\", expected one"),
                    HasSubstr("kinds[2].name is \"x\", expected another"),
                    HasSubstr("pattern has 'D' at position 2, expected letters "
                              "of kinds (ABCC)")));
  EXPECT_THAT(
      Message("kinds { letter: 'A' no_mixer: true feed_forward: "
              "FEED_FORWARD_NONE block { hidden_size: 3 num_experts: 2 } } "
              "pattern: 'A'"),
      AllOf(HasSubstr("kinds[0].feed_forward is FEED_FORWARD_NONE"),
            HasSubstr("kinds[0].block.hidden_size is given, expected nothing"),
            HasSubstr("kinds[0].block.num_experts is given")));
  EXPECT_THAT(Message("kinds { letter: 'A' block { mamba2 { num_heads: 6 "
                      "num_groups: 4 } num_kv_heads: 3 } } pattern: 'A'"),
              AllOf(HasSubstr("kinds[0].block.mamba2.head_size is 0"),
                    HasSubstr("mamba2.num_groups is 4, expected a divisor of"),
                    HasSubstr("kinds[0].block.num_kv_heads is 3, expected a "
                              "divisor")));
}

TEST(BlocksOfTest, TensorParallelismMustDivideTheHeadsOfEveryKind) {
  const Model model = *Parse(
      "kinds { letter: 'M' name: 'Mamba' block { mamba2 { num_heads: 6 "
      "head_size: 8 state_size: 8 num_groups: 2 } } } kinds { letter: 'F' } "
      "pattern: 'MF'");
  WorkSpec spec = Spec();
  spec.tensor_parallel = 4;
  EXPECT_THAT(std::string(ValidateWorkSpec("x", model, spec).message()),
              HasSubstr("tensor_parallel is 4, expected a divisor of the 6 "
                        "heads of each Mamba block"));
  spec.tensor_parallel = 2;
  EXPECT_TRUE(ValidateWorkSpec("x", model, spec).ok());
  spec.recompute = RECOMPUTE_OPERATORS;
  EXPECT_THAT(std::string(ValidateWorkSpec("x", model, spec).message()),
              HasSubstr("recompute is of operators, expected none, selective "
                        "or full: each Mamba block has other parts"));
}

TEST(SpecialFieldsTest, NamesWhatOtherProgramsDoNotHave) {
  EXPECT_THAT(SpecialFields(Parse("")->transformer()), ElementsAre());
  EXPECT_THAT(
      SpecialFields(
          Parse(absl::StrCat(kWindows, "num_mtp_modules: 1"))->transformer()),
      ElementsAre("kinds", "pattern", "num_mtp_modules"));
  for (const char* preset : {"gpt2", "llama-2-7b", "mixtral-8x7b"}) {
    EXPECT_THAT(SpecialFields(LoadModel(preset)->transformer()), ElementsAre());
  }
}

// DeepSeek-V3, section 2.2: a module is a projection of two vectors, three
// norms, one block, and the logits again. The tables are shared.
TEST(MtpTest, ModulesAreLayersBeforeTheHead) {
  const Model without = *Parse("");
  const Model with = *Parse("num_mtp_modules: 2");
  const LayerList before = ListLayers(without, Spec());
  const LayerList after = ListLayers(with, Spec());
  ASSERT_EQ(after.size(), before.size() + 2);
  const LayerWork& block = before[1];
  const LayerWork& head = before.back();
  const LayerWork& module = after[after.size() - 2];
  EXPECT_EQ(module.role, LayerRole::kMtp);
  EXPECT_EQ(after.kind_of(after.size() - 2), after.kind_of(after.size() - 3));
  EXPECT_EQ(CountParameters(with), CountParameters(without));
  EXPECT_EQ(CountMtpParameters(with),
            2 * (2 * 64.0 * 64 + 3 * 64 + block.parameters));
  const double table = 64.0 * with.transformer().vocabulary_size();
  EXPECT_EQ(module.shared_parameters, table);
  EXPECT_EQ(2 * (module.parameters - table), CountMtpParameters(with));
  EXPECT_EQ(after.back().parameters, head.parameters);
  constexpr double kTokens = 32;
  EXPECT_EQ(Flops(after.back().forward), 3 * Flops(head.forward));
  EXPECT_EQ(Flops(module.forward),
            Flops(block.forward) + 2 * kTokens * 2 * 64 * 64);
  EXPECT_EQ(after.back().stash_bytes, 3 * head.stash_bytes);
  EXPECT_EQ(module.stash_bytes, block.stash_bytes + 2 * kTokens * 4 * 64);
  // The hidden states of the last block and of both modules.
  EXPECT_EQ(module.output_bytes, 3 * block.output_bytes);
}

// A stage stores the table once, however many of its layers read it.
TEST(MtpTest, CopiesOfTheEmbeddingCountOncePerStage) {
  const LayerList layers = ListLayers(*Parse("num_mtp_modules: 2"), Spec());
  const int n = static_cast<int>(layers.size());
  double all = 0;
  for (const LayerWork& layer : layers)
    all += layer.parameters - layer.shared_parameters;
  EXPECT_EQ(StageParameters(layers, 0, n), all);
  const double table = layers[n - 2].shared_parameters;
  EXPECT_GT(table, 0);
  EXPECT_EQ(StageParameters(layers, 0, 2) + StageParameters(layers, 2, n),
            all + table);
}

// Planners that partition embedding, blocks and head see one head.
TEST(MtpTest, JoiningKeepsAllWork) {
  const LayerList layers = ListLayers(*Parse("num_mtp_modules: 2"), Spec());
  const LayerList joined = JoinMtpWithHead(layers);
  EXPECT_EQ(joined.size(), layers.size() - 2);
  EXPECT_EQ(joined.back().role, LayerRole::kHead);
  EXPECT_EQ(ModelFlops(joined, 1), ModelFlops(layers, 1));
  EXPECT_EQ(StageParameters(joined, 0, static_cast<int>(joined.size())),
            StageParameters(layers, 0, static_cast<int>(layers.size())));
}

TEST(MtpTest, PatternsChooseTheirBlocks) {
  const Model model =
      *Parse(absl::StrCat(kWindows, "num_mtp_modules: 1 mtp_pattern: 'FS'"));
  const BlockList list = BlocksOf(model.transformer());
  EXPECT_THAT(list.mtp, ElementsAre(1, 0));
  EXPECT_THAT(Message("num_mtp_modules: 1 mtp_pattern: 'X'"),
              HasSubstr("mtp_pattern has 'X' at position 1"));
}

constexpr char kEncoder[] =
    "encoder { blocks { num_layers: 3 hidden_size: 48 num_heads: 4 "
    "feed_forward_size: 72 num_positions: 64 } patch_elements: 30 "
    "patches_per_image: 64 images_per_sequence: 2 patches_per_token: 4 "
    "projector_size: 60 num_projectors: 2 projector_bias: true "
    "final_norm: true }";

TEST(EncoderTest, ClosedForms) {
  const Model model = *Parse(kEncoder);
  const double block = 4 * 48.0 * 48 + 2 * 48 * 72 + 2 * 2 * 48;
  const double projector = 4 * 48.0 * 60 + 60 + 60 * 64 + 64 + 2 * 48;
  EXPECT_EQ(EncoderParameters(model.transformer()).Whole(),
            30 * 48 + 64 * 48 + 3 * block + 2 * 48 + 2 * projector);
  EXPECT_EQ(CountParameters(model) - CountParameters(*Parse("")),
            EncoderParameters(model.transformer()).Whole());
  EXPECT_EQ(CountActiveParameters(model), CountParameters(*Parse("")));
  const LayerWork embedding = ListLayers(model, Spec())[0];
  constexpr double kPatches = 2 * 64;
  const double attention = 2 * 2 * kPatches * 64 * 48;
  EXPECT_EQ(Flops(embedding.forward),
            2 * kPatches * 30 * 48 +
                3 * (2 * kPatches * (4 * 48 * 48 + 2 * 48 * 72) + attention) +
                2 * 2 * kPatches / 4 * (4 * 48 * 60 + 60 * 64));
  // The same tensor goes to the first block of the language model.
  EXPECT_EQ(embedding.output_bytes,
            ListLayers(*Parse(""), Spec())[0].output_bytes);
}

TEST(EncoderTest, RecomputationCoversItsBlocks) {
  const Model model = *Parse(kEncoder);
  WorkSpec spec = Spec();
  const LayerWork saved = ListLayers(model, spec)[0];
  spec.recompute = RECOMPUTE_FULL;
  const LayerWork repeated = ListLayers(model, spec)[0];
  EXPECT_LT(repeated.stash_bytes, saved.stash_bytes);
  constexpr double kPatches = 2 * 64;
  EXPECT_EQ(Flops(repeated.recompute),
            3 * (2 * kPatches * (4 * 48 * 48 + 2 * 48 * 72) +
                 2 * 2 * kPatches * 64 * 48));
}

TEST(EncoderTest, ProblemsAreReported) {
  EXPECT_THAT(
      Message("encoder { blocks { num_layers: 1 num_heads: 5 hidden_size: 48 "
              "kinds { letter: 'A' } } }"),
      AllOf(HasSubstr("encoder.blocks.hidden_size is 48, expected a multiple"),
            HasSubstr("encoder.blocks.kinds or pattern or encoder is given"),
            HasSubstr("encoder.patch_elements is 0, expected 1 to"),
            HasSubstr("encoder.patches_per_image is 0")));
}

TEST(DescribeModelTest, KindsAreSummedUpAndThePatternIsShown) {
  const Model model =
      *Parse(absl::StrCat(kWindows, kEncoder, " num_mtp_modules: 1"));
  const std::string text = DescribeModel(model, Spec());
  EXPECT_THAT(text,
              AllOf(HasSubstr("5 x sliding block"), HasSubstr("2 x full block"),
                    HasSubstr("blocks: SSF (S = sliding, F = full)"),
                    HasSubstr("in 1 module of multi-token prediction"),
                    HasSubstr("of them in an encoder, in the embedding, with 2 "
                              "x 64 patches per sequence")));
  EXPECT_THAT(DescribeModel(*LoadModel("gpt2"), Spec()),
              Not(HasSubstr("blocks:")));
}

}  // namespace weir::models::block_spec_test
