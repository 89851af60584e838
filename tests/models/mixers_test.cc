// SPDX-License-Identifier: Apache-2.0
// Attention variants and linear recurrences: closed forms of parameters, FLOP
// and saved bytes, and what all of them have in common.
#include "models/mixers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/layer_list.h"
#include "models/model.h"
#include "tests/models/gpt.h"

namespace weir::models::mixers_test {

// Small models with every mechanism. Sizes are pairwise different where the
// mechanism allows, so that a confusion of two shows.
constexpr char kBase[] = R"pb(
  num_layers: 4
  hidden_size: 96
  num_heads: 8
  head_size: 20
  feed_forward_size: 56
  vocabulary_size: 128
  gated_feed_forward: true
  rms_norm: true
  causal: true)pb";

struct Variant {
  const char* name;
  const char* fields;
};
void PrintTo(const Variant& variant, std::ostream* out) {
  *out << variant.name;
}

const Variant kVariants[] = {
    {"plain", ""},
    {"wide values", "value_head_size: 12"},
    {"keys are values", "keys_are_values: true query_key_norm: true"},
    {"gate", "attention_gate: ATTENTION_GATE_PER_ELEMENT"},
    {"head gate", "attention_gate: ATTENTION_GATE_PER_HEAD"},
    {"index", "sparse_index { num_heads: 3 head_size: 6 num_keys: 16 }"},
    {"latent",
     "latent_attention { query_rank: 36 key_value_rank: 28 plain_head_size: 10 "
     "rotary_head_size: 6 value_head_size: 14 }"},
    {"latent without query rank, gated",
     "latent_attention { key_value_rank: 28 plain_head_size: 10 "
     "rotary_head_size: 6 value_head_size: 14 } "
     "attention_gate: ATTENTION_GATE_PER_ELEMENT"},
    {"latent with index",
     "latent_attention { query_rank: 36 key_value_rank: 28 plain_head_size: 10 "
     "rotary_head_size: 6 value_head_size: 14 } "
     "sparse_index { num_heads: 3 head_size: 6 num_keys: 16 }"},
    {"compressed",
     "compressed_attention { query_rank: 36 output_groups: 4 output_rank: 22 "
     "ratio: 4 overlap: true } sliding_window: 12 num_kv_heads: 1 "
     "sparse_index { num_heads: 3 head_size: 6 num_keys: 5 }"},
    {"mamba",
     "mamba2 { num_heads: 12 head_size: 10 state_size: 14 num_groups: 4 "
     "convolution_size: 4 chunk_size: 16 }"},
    {"delta net",
     "delta_net { num_key_heads: 4 num_value_heads: 8 key_head_size: 10 "
     "value_head_size: 14 convolution_size: 4 }"},
    {"Kimi delta",
     "delta_net { num_key_heads: 8 key_head_size: 10 convolution_size: 4 "
     "channel_decay: true gate_rank: 18 }"},
    {"lightning", "lightning_attention { chunk_size: 16 }"},
    {"parallel", "parallel_block: true"},
    {"four norms", "extra_norms: 2"},
    {"streams", "residual_streams: 4"},
    {"latent experts",
     "num_experts: 8 experts_per_token: 3 expert_feed_forward_size: 26 "
     "expert_hidden_size: 44 num_shared_experts: 1 "
     "shared_feed_forward_size: 34"},
    {"MTP", "num_mtp_modules: 2"},
    {"encoder",
     "encoder { blocks { num_layers: 3 hidden_size: 48 num_heads: 4 "
     "feed_forward_size: 72 num_positions: 64 } patch_elements: 30 "
     "patches_per_image: 64 images_per_sequence: 2 patches_per_token: 4 "
     "projector_size: 60 num_projectors: 2 }"},
};

Model ModelOf(const std::string& fields) {
  const bool given = absl::StrContains(fields, "num_kv_heads");
  auto model = ParseModel(
      "x", absl::StrCat("transformer {", kBase,
                        given ? " " : " num_kv_heads: 4 ", fields, " }"));
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : Model();
}

WorkSpec Spec(int tensor = 1, bool sequence_parallel = false) {
  WorkSpec spec;
  spec.microbatch_size = 2;
  spec.sequence_length = 64;
  spec.flash_attention = true;
  spec.tensor_parallel = tensor;
  spec.sequence_parallel = sequence_parallel;
  return spec;
}

class VariantTest : public testing::TestWithParam<Variant> {
 protected:
  Model model_ = ModelOf(GetParam().fields);
};

TEST_P(VariantTest, LayersAddUpToTheParameters) {
  const LayerList layers = ListLayers(model_, Spec());
  EXPECT_EQ(StageParameters(layers, 0, static_cast<int>(layers.size())),
            CountParameters(model_) + CountMtpParameters(model_));
}

// Every matrix multiplies every vector of its input once: the matrices of the
// forward GEMMs are the parameters, except for vectors (norms, biases,
// convolutions, decays) and the token table.
TEST_P(VariantTest, GemmsUseEveryMatrixOnce) {
  const LayerList layers = ListLayers(model_, Spec());
  for (size_t i = 1; i + 1 < layers.size(); ++i) {
    double matrices = 0;
    for (const Kernel& kernel : layers[i].forward) {
      if (kernel.kind != Kernel::Kind::kGemm ||
          kernel.part == KernelPart::kRecurrence) {
        continue;
      }
      matrices += kernel.batch * kernel.n * kernel.k;
    }
    EXPECT_LE(matrices, layers[i].parameters);
    // Vectors of a block are at most 12 % here: 96 * 20 of hyper-connections.
    EXPECT_GE(matrices, 0.8 * layers[i].parameters) << layers[i].name;
  }
}

TEST_P(VariantTest, BackwardHasTwiceTheFlopOfGemms) {
  for (const LayerWork& layer : ListLayers(model_, Spec())) {
    double forward = 0, backward = 0;
    for (const Kernel& kernel : layer.forward) {
      if (kernel.kind == Kernel::Kind::kGemm) forward += kernel.flops;
    }
    for (const auto* kernels :
         {&layer.backward_input, &layer.backward_weight}) {
      for (const Kernel& kernel : *kernels) {
        if (kernel.kind == Kernel::Kind::kGemm) backward += kernel.flops;
      }
    }
    // Pixels have no gradient: 2 x 128 patches of 30 by 48.
    const double pixels = layer.role == LayerRole::kEmbedding && forward > 0
                              ? 2 * 2 * 128 * 30 * 48
                              : 0;
    EXPECT_DOUBLE_EQ(backward, 2 * forward - pixels) << layer.name;
  }
}

TEST_P(VariantTest, TensorParallelismKeepsTheFlopOfTheModel) {
  const double whole = ModelFlops(ListLayers(model_, Spec()), 1);
  for (const int t : {2, 4}) {
    const WorkSpec spec = Spec(t, /*sequence_parallel=*/true);
    ASSERT_TRUE(ValidateWorkSpec("x", model_, spec).ok());
    EXPECT_SAME(ModelFlops(ListLayers(model_, spec), t), whole);
  }
}

TEST_P(VariantTest, GpusStoreNoLessThanTheModelTogether) {
  const double whole = CountParameters(model_) + CountMtpParameters(model_);
  const LayerList layers = ListLayers(model_, Spec(4, true));
  const double part =
      StageParameters(layers, 0, static_cast<int>(layers.size()));
  EXPECT_GE(4 * part, whole);
  EXPECT_LE(part, whole);
}

// Dropping activations and computing them again: kept and scratch together are
// what is saved otherwise, and the forward runs twice.
TEST_P(VariantTest, FullRecomputationRepeatsTheForward) {
  WorkSpec spec = Spec();
  const LayerList saved = ListLayers(model_, spec);
  spec.recompute = RECOMPUTE_FULL;
  const LayerList repeated = ListLayers(model_, spec);
  for (size_t i = 1; i + 1 < saved.size(); ++i) {
    if (saved[i].role != LayerRole::kBlock) continue;
    EXPECT_EQ(repeated[i].recompute, saved[i].forward);
    EXPECT_DOUBLE_EQ(
        repeated[i].stash_bytes + repeated[i].recompute_scratch_bytes,
        saved[i].stash_bytes);
    EXPECT_EQ(repeated[i].stash_bytes, saved[i].output_bytes);
  }
}

TEST_P(VariantTest, TwiceTheBatchIsTwiceTheWork) {
  WorkSpec spec = Spec();
  const LayerList once = ListLayers(model_, spec);
  spec.microbatch_size *= 2;
  const LayerList twice = ListLayers(model_, spec);
  EXPECT_DOUBLE_EQ(ModelFlops(twice, 1), 2 * ModelFlops(once, 1));
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_DOUBLE_EQ(twice[i].stash_bytes, 2 * once[i].stash_bytes);
    EXPECT_EQ(twice[i].parameters, once[i].parameters);
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest, testing::ValuesIn(kVariants));

// Closed forms. T tokens, h hidden, a heads.
constexpr double T = 128, h = 96, a = 8, s = 64;

LayerWork Block(const std::string& fields) {
  return ListLayers(ModelOf(fields), Spec())[1];
}

double MixerOf(const std::string& fields) {
  return MixerParameters(ModelOf(fields).transformer()).Whole();
}

// DeepSeek-V2, section 2.1: ranks q = 36 and c = 28, heads of 10 + 6 and 14.
TEST(LatentAttentionTest, ClosedForms) {
  const char* fields = kVariants[6].fields;
  EXPECT_EQ(MixerOf(fields), h * 36 + 36 + 36 * a * 16 + h * (28 + 6) + 28 +
                                 28 * a * (10 + 14) + a * 14 * h);
  const LayerWork block = Block(fields);
  const double feed_forward = 3 * h * 56;
  const double matrices = MixerOf(fields) - 36 - 28 + feed_forward;
  EXPECT_EQ(Flops(block.forward), 2 * T * matrices + 2 * T * s * a * (16 + 14));
  // Saved: inputs of two norms and of two linear layers; input and output of
  // the norms of both latent vectors; queries, keys, values, their sums and
  // their statistics; three tensors of the feed-forward layer.
  EXPECT_EQ(block.stash_bytes,
            2 * T * (4 * h + 2 * 36 + 2 * 28 + a * (2 * 16 + 2 * 14) + 3 * 56) +
                4 * T * a);
}

TEST(LatentAttentionTest, LatentVectorsAreGatheredInsteadOfHiddenStates) {
  const Model model = ModelOf(kVariants[6].fields);
  const LayerWork block = ListLayers(model, Spec(4, true))[1];
  std::vector<double> gathered;
  for (const LayerCollective& collective : block.forward_collectives) {
    if (collective.kind == CollectiveKind::kAllGather) {
      gathered.push_back(collective.bytes);
    }
  }
  EXPECT_THAT(gathered,
              testing::ElementsAre(2 * T * 36, 2 * T * (28 + 6), 2 * T * h));
}

// DeepSeek-V3.2, section 2.1: 3 heads of 6 elements choose 16 keys.
TEST(SparseIndexTest, ClosedForms) {
  const std::string latent = kVariants[6].fields;
  const std::string index = kVariants[8].fields;
  EXPECT_EQ(MixerOf(index) - MixerOf(latent),
            36 * 3 * 6 + h * 6 + 2 * 6 + h * 3);
  const double projections = 36 * 3 * 6 + h * 6 + h * 3;
  EXPECT_EQ(Flops(Block(index).forward) - Flops(Block(latent).forward),
            2 * T * projections + 2 * T * s * 3 * 6 -
                2 * T * (s - 16) * a * (16 + 14));
  // The index itself learns only from the chosen keys.
  const auto attention = [](const std::vector<Kernel>& kernels) {
    double flops = 0;
    for (const Kernel& kernel : kernels) {
      if (kernel.kind == Kernel::Kind::kAttention) flops += kernel.flops;
    }
    return flops;
  };
  EXPECT_EQ(attention(Block(index).backward_input),
            2 * 2 * T * 16 * a * (16 + 14) + 2 * 2 * T * 16 * 3 * 6);
  const std::string shared =
      absl::StrCat(latent, " sparse_index { num_keys: 16 shared: true }");
  EXPECT_EQ(MixerOf(shared), MixerOf(latent));
  EXPECT_EQ(attention(Block(shared).forward), 2 * T * 16 * a * (16 + 14));
}

// Query i sees these keys, counted one by one.
double SeenKeys(int length, const std::function<bool(int, int)>& sees) {
  double pairs = 0;
  for (int i = 0; i < length; ++i) {
    for (int j = 0; j <= i; ++j) pairs += sees(i, j);
  }
  return pairs / length;
}

TEST(KeysOfTest, AgreeWithCountingPairs) {
  constexpr int kLength = 2048;
  const auto seen = [&](const std::string& fields) {
    return KeysOf(ModelOf(fields).transformer(), kLength).seen;
  };
  // The closed forms take a token's own score as half.
  constexpr double kTolerance = 1;
  EXPECT_NEAR(seen(""), SeenKeys(kLength, [](int, int) { return true; }),
              kTolerance);
  EXPECT_NEAR(seen("sliding_window: 300"),
              SeenKeys(kLength, [](int i, int j) { return i - j < 300; }),
              kTolerance);
  for (const int chunk : {512, 300}) {  // the last chunk may be shorter
    EXPECT_NEAR(
        seen(absl::StrCat("attention_chunk: ", chunk)),
        SeenKeys(kLength, [&](int i, int j) { return i / chunk == j / chunk; }),
        kTolerance);
  }
  EXPECT_NEAR(seen("sparse_index { num_heads: 1 head_size: 8 num_keys: 100 }"),
              SeenKeys(kLength, [](int i, int j) { return i - j < 100; }),
              kTolerance);
  // Windows of 128, and entries of every 4 tokens, at most 64 of them.
  EXPECT_NEAR(
      seen("compressed_attention { query_rank: 8 output_groups: 4 "
           "output_rank: 8 ratio: 4 } sliding_window: 128 num_kv_heads: 1 "
           "sparse_index { num_heads: 1 head_size: 8 num_keys: 64 }"),
      SeenKeys(kLength, [](int i, int j) { return i - j < 128; }) +
          SeenKeys(
              kLength,
              [](int i, int j) { return j % 4 == 3 && i / 4 - j / 4 < 64; }),
      kTolerance);
  EXPECT_EQ(seen("attention_chunk: 4096"), seen(""));
}

// Dao and Gu 2024: 12 heads of 10, states of 14, 4 groups, chunks of 16.
TEST(Mamba2Test, ClosedForms) {
  const char* fields = kVariants[10].fields;
  const double inner = 120, bc = 2 * 4 * 14, heads = 12;
  EXPECT_EQ(MixerOf(fields), h * (2 * inner + bc + heads) + 4 * (inner + bc) +
                                 3 * heads + inner + inner * h);
  const double matrices = h * (2 * inner + bc + heads) + inner * h;
  const double recurrence =
      T * (4 * 2 * 16 * 14 + heads * (2 * 16 * 10 + 2 * 2 * 14 * 10));
  EXPECT_EQ(Flops(Block(fields).forward),
            2 * T * (matrices + 3 * h * 56) + recurrence);
  // Linear in the length of the sequence, unlike attention.
  WorkSpec spec = Spec();
  spec.sequence_length *= 4;
  EXPECT_EQ(Flops(ListLayers(ModelOf(fields), spec)[1].forward),
            4 * Flops(Block(fields).forward));
}

// Yang et al. 2025: 4 key and 8 value heads of 10 and 14; chunks of 64.
TEST(DeltaNetTest, ClosedForms) {
  const char* fields = kVariants[11].fields;
  const double keys = 40, values = 112, heads = 8, c = 64, k = 10, v = 14;
  EXPECT_EQ(MixerOf(fields), h * (2 * keys + values) + h * values +
                                 2 * h * heads + values * h +
                                 4 * (2 * keys + values) + 2 * heads + v);
  const double matrices = h * (2 * keys + 2 * values + 2 * heads) + values * h;
  const double recurrence =
      T * heads *
      (2 * 2 * c * k + 2 * c * c + 2 * c * k + 2 * 2 * c * v + 3 * 2 * k * v);
  EXPECT_EQ(Flops(Block(fields).forward),
            2 * T * (matrices + 3 * h * 56) + recurrence);
}

// Kimi Linear, section 3: decays of each channel through 10 units, gates
// through 18.
TEST(DeltaNetTest, ChannelDecays) {
  const double width = 8 * 10;
  EXPECT_EQ(MixerOf(kVariants[12].fields),
            h * 3 * width + 18 * (h + width) + 10 * (h + width) + h * 8 +
                width * h + 4 * 3 * width + width + 8 + 10);
}

// MiniMax-01, section 2.2: heads of 20 elements, chunks of 16.
TEST(LightningAttentionTest, ClosedForms) {
  const char* fields = kVariants[13].fields;
  const double width = 8 * 20;
  EXPECT_EQ(MixerOf(fields), 5 * h * width + width);
  EXPECT_EQ(Flops(Block(fields).forward),
            2 * T * (5 * h * width + 3 * h * 56) +
                T * 8 * (2 * 2 * 16 * 20 + 2 * 2 * 20 * 20));
}

TEST(GateTest, OneFactorPerElementOrPerHead) {
  const double plain = MixerOf("");
  EXPECT_EQ(MixerOf(kVariants[3].fields) - plain, h * 8 * 20);
  EXPECT_EQ(MixerOf(kVariants[4].fields) - plain, h * 8);
}

TEST(SharedTensorsTest, KeysThatAreValuesNeedNoProjection) {
  EXPECT_EQ(MixerOf("") - MixerOf("keys_are_values: true"), h * 4 * 20);
  EXPECT_EQ(MixerOf("") - MixerOf("value_head_size: 12"),
            h * (4 + 8) * (20 - 12));
}

TEST(CompressedAttentionTest, ClosedForms) {
  const double queries = h * 36 + 36 + 36 * a * 20;
  const double output = a * 20 * 22 + 4 * 22 * h;
  const double keys = h * 20 + 20;
  const double pooling = h * 4 * 20 + 4 * 2 * 20 + 20;
  const double index = 36 * 18 + h * 4 * 6 + 3 * h + 4 * 2 * 6 + 6;
  EXPECT_EQ(MixerOf(kVariants[9].fields),
            queries + output + keys + pooling + index);
}

}  // namespace weir::models::mixers_test
