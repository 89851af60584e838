// SPDX-License-Identifier: Apache-2.0
#include "models/layer_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/attention.h"
#include "models/kernels.h"
#include "models/model.h"
#include "tests/models/gpt.h"

namespace weir::models::layer_work_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

WorkSpec SmallSpec(const Model& model) {
  WorkSpec spec;
  spec.microbatch_size = 2;
  spec.sequence_length =
      static_cast<int>(std::min(DefaultSequenceLength(model), 512u));
  return spec;
}

TEST(LayersOfTest, EveryPresetAddsUpToItsParameters) {
  for (const char* name :
       {"gpt2", "gpt2-xl", "bert-base-uncased", "llama-2-7b", "llama-2-70b",
        "mistral-7b-v0.1", "gpt3-175b", "gpt-2.2b"}) {
    const Model model = *LoadModel(name);
    const std::vector<LayerWork> layers = LayersOf(model, SmallSpec(model));
    EXPECT_EQ(layers.size(), model.transformer().num_layers() + 2);
    EXPECT_EQ(StageParameters(layers, 0, static_cast<int>(layers.size())),
              CountParameters(model))
        << name;
  }
}

TEST(LayersOfTest, TiedHeadCarriesTheTableAndSaysSo) {
  const Model gpt2 = *LoadModel("gpt2");
  const std::vector<LayerWork> layers = LayersOf(gpt2, SmallSpec(gpt2));
  EXPECT_EQ(layers.back().shared_parameters, 50257.0 * 768);
  EXPECT_EQ(layers.back().parameters, 50257.0 * 768 + 2 * 768);
  const Model llama = *LoadModel("llama-2-7b");
  const LayerWork head = LayersOf(llama, SmallSpec(llama)).back();
  EXPECT_EQ(head.shared_parameters, 0);
  EXPECT_EQ(head.parameters, 32000.0 * 4096 + 4096);
}

// GPT-2's vocabulary is odd; heads of 150 elements are multiples of 2.
TEST(LayersOfTest, GemmsKnowWhatDividesTheirRows) {
  const Model gpt2 = *LoadModel("gpt2");
  const std::vector<LayerWork> layers = LayersOf(gpt2, SmallSpec(gpt2));
  const auto alignments = [](const std::vector<Kernel>& kernels) {
    std::vector<double> found;
    for (const Kernel& kernel : kernels) {
      if (kernel.kind == Kernel::Kind::kGemm) {
        found.push_back(kernel.row_alignment);
      }
    }
    return found;
  };
  EXPECT_THAT(alignments(layers.back().forward), ElementsAre(1));
  EXPECT_THAT(alignments(layers.back().backward_weight), ElementsAre(1));
  EXPECT_THAT(alignments(layers[1].backward_weight),
              ElementsAre(64, 64, 64, 64));
  EXPECT_EQ(RowAlignment(2048, 150), 2);
  EXPECT_EQ(RowAlignment(108, 2048), 4);
  EXPECT_EQ(RowAlignment(128, 128), 64);
  EXPECT_EQ(RowAlignment(0, 128), 0);
  EXPECT_EQ(RowAlignment(12.5, 128), 0);
  Shape shape;
  shape.sequences = 1;
  shape.sequence_length = shape.tokens = 2048;
  shape.heads = 4;
  shape.head_size = 150;
  shape.element_bytes = 2;
  const AttentionCore core = AttentionCoreOf(Transformer(), WorkSpec(), shape);
  EXPECT_THAT(alignments(core.forward), ElementsAre(2, 2));
  EXPECT_THAT(alignments(core.backward), ElementsAre(2, 2, 2, 2));
}

TEST(LayersOfTest, TensorParallelShardsMatricesButNotNorms) {
  const Model model = *LoadModel("gpt2");
  WorkSpec spec = SmallSpec(model);
  spec.tensor_parallel = 4;
  const LayerWork block = LayersOf(model, spec)[1];
  const double h = 768;
  // Matrices 12 hh and their sharded biases 7 h are divided by 4; norms and the
  // two other biases are not.
  EXPECT_EQ(block.parameters, (12 * h * h + 7 * h) / 4 + 6 * h);
}

// Llama, part by part: no biases, no masks, three feed-forward matrices.
TEST(LayersOfTest, LlamaShapesFollowFromTheSameParts) {
  const Model model = *LoadModel("llama-2-70b");
  WorkSpec spec = SmallSpec(model);
  spec.flash_attention = true;
  const double t = 2 * 512, h = 8192, kv = 1024, f = 28672;
  const LayerWork block = LayersOf(model, spec)[1];
  EXPECT_SAME(Flops(block.forward), 2 * t * h * (h + 2 * kv) + 4 * t * 512 * h +
                                        2 * t * h * h + 6 * t * h * f);
  EXPECT_SAME(block.stash_bytes,
              2 * (2 * t * h + 2 * t * h + t * h    // norms, linear inputs
                   + t * (h + 2 * kv) + 3 * t * f)  // q, k, v; gate, up, out
                  + 4 * 64 * 512 * 2);              // statistics
  EXPECT_SAME(block.weight_gradient_stash_bytes,
              2 * (3 * t * h + t * f                            // inputs
                   + t * (h + 2 * kv) + 2 * t * h + 2 * t * f)  // gradients
  );
}

TEST(LayersOfTest, FewKeyValueHeadsRepeatUnderTensorParallelism) {
  const Model model = *LoadModel("llama-2-70b");  // 8 key-value heads
  WorkSpec spec = SmallSpec(model);
  spec.flash_attention = true;
  const double flops = ModelFlops(LayersOf(model, spec), 1);
  for (int t : {2, 8, 16, 32}) {
    spec.tensor_parallel = t;
    const std::vector<LayerWork> layers = LayersOf(model, spec);
    EXPECT_SAME(ModelFlops(layers, t), flops);
    const Kernel& qkv = layers[1].forward[1];
    EXPECT_EQ(qkv.n, 8192.0 / t + 2 * 128 * std::max(1, 8 / t)) << t;
    EXPECT_EQ(qkv.performed_flops > 0, t > 8);
  }
}

TEST(LayersOfTest, FewKeyValueHeadsRepeatTheirParameters) {
  const Model model = *LoadModel("llama-2-70b");
  WorkSpec spec = SmallSpec(model);
  const double h = 8192, kv = 1024, f = 28672;
  for (int t : {1, 8, 32}) {
    spec.tensor_parallel = t;
    EXPECT_EQ(LayersOf(model, spec)[1].parameters,
              (2 * h * h + 3 * h * f) / t + 2 * h * kv / std::min(t, 8) + 2 * h)
        << t;
  }
}

TEST(LayersOfTest, QueryKeyNormKeepsItsInputs) {
  Model model = *LoadModel("llama-2-70b");
  const WorkSpec spec = SmallSpec(model);
  const LayerWork without = LayersOf(model, spec)[1];
  model.mutable_transformer()->set_query_key_norm(true);
  const LayerWork with = LayersOf(model, spec)[1];
  EXPECT_EQ(with.parameters - without.parameters, 2 * 128);
  EXPECT_EQ(with.stash_bytes - without.stash_bytes, 2.0 * 1024 * (8192 + 1024));
  EXPECT_EQ(with.forward.size(), without.forward.size() + 1);
}

TEST(LayersOfTest, FusedCausalAttentionPerformsHalfAndFlopCountInFull) {
  const Gpt gpt;
  Model model = ModelOf(gpt);
  WorkSpec spec = SpecOf(gpt);
  spec.flash_attention = true;
  const auto attention = [&](bool backward) {
    const LayerWork block = LayersOf(model, spec)[1];
    for (const Kernel& kernel :
         backward ? block.backward_input : block.forward) {
      if (kernel.kind == Kernel::Kind::kAttention) return kernel;
    }
    return Kernel();
  };
  const double full = 4 * gpt.b * gpt.s * gpt.s * gpt.h;
  EXPECT_SAME(attention(false).flops, full);
  EXPECT_SAME(attention(false).performed_flops, full / 2);
  EXPECT_SAME(attention(true).flops, 2 * full);
  EXPECT_SAME(attention(true).performed_flops, 2.5 * full / 2);
  model.mutable_transformer()->set_causal(false);
  EXPECT_SAME(attention(false).performed_flops, full);
  // Each query attends to at most a quarter of the keys.
  model.mutable_transformer()->set_causal(true);
  model.mutable_transformer()->set_sliding_window(gpt.s / 4);
  EXPECT_SAME(attention(false).flops, full / 4);
  EXPECT_SAME(attention(false).performed_flops, full / 4 * 7 / 8);
}

constexpr double kWhole = 2.0 * 2 * 512 * 768;

LayerCollective Of(CollectiveKind kind, int count = 1) {
  return {.kind = kind, .bytes = kWhole, .count = count};
}

TEST(LayersOfTest, BlocksReduceTwiceEachWay) {
  const Model model = *LoadModel("gpt2");
  WorkSpec spec = SmallSpec(model);
  EXPECT_THAT(LayersOf(model, spec)[1].forward_collectives, IsEmpty());
  spec.tensor_parallel = 2;
  LayerWork block = LayersOf(model, spec)[1];
  LayerCollective twice = Of(CollectiveKind::kAllReduce, 2);
  EXPECT_THAT(block.forward_collectives, ElementsAre(twice));
  EXPECT_THAT(block.backward_collectives, ElementsAre(twice));
  spec.tensor_async = true;
  LayerCollective async = twice;
  async.overlaps_weight_gradient = true;
  spec.recompute = RECOMPUTE_FULL;
  block = LayersOf(model, spec)[1];
  twice.of_recompute = true;
  EXPECT_THAT(block.backward_collectives, ElementsAre(twice, async));
}

TEST(LayersOfTest, EmbeddingAndHeadReduceOnceAndTheLossThreeRows) {
  const Model model = *LoadModel("gpt2");
  WorkSpec spec = SmallSpec(model);
  spec.tensor_parallel = 2;
  const std::vector<LayerWork> layers = LayersOf(model, spec);
  const LayerCollective once = Of(CollectiveKind::kAllReduce);
  EXPECT_THAT(layers.front().forward_collectives, ElementsAre(once));
  EXPECT_THAT(layers.front().backward_collectives, IsEmpty());
  EXPECT_THAT(layers.back().backward_collectives, ElementsAre(once));
  LayerCollective rows = Of(CollectiveKind::kAllReduce, 3);
  rows.bytes = 4 * 2 * 512;
  EXPECT_THAT(layers.back().forward_collectives, ElementsAre(rows));
}

// Korthikanti et al. 2022, section 4.2.2, with one more gather of the input.
TEST(LayersOfTest, SequenceParallelBlocksGatherAndScatter) {
  const Model model = *LoadModel("gpt2");
  WorkSpec spec = SmallSpec(model);
  spec.tensor_parallel = 2;
  spec.sequence_parallel = true;
  spec.tensor_async = true;
  const LayerWork block = LayersOf(model, spec)[1];
  const LayerCollective gather = Of(CollectiveKind::kAllGather);
  const LayerCollective scatter = Of(CollectiveKind::kReduceScatter);
  EXPECT_THAT(block.forward_collectives,
              ElementsAre(gather, scatter, gather, scatter));
  LayerCollective input = gather, gradient = scatter;
  input.overlaps_input_gradient = true;
  gradient.overlaps_weight_gradient = true;
  EXPECT_THAT(block.backward_collectives,
              ElementsAre(gather, input, gradient, gather, input, gradient));
}

// Collectives overlap with the adjacent GEMM; only a quarter of a
// reduce-scatter is exposed.
TEST(LayersOfTest, PiecesOverlapWithTheirOwnGemm) {
  const Model model = *LoadModel("gpt2");
  WorkSpec spec = SmallSpec(model);
  spec.tensor_parallel = 2;
  spec.sequence_parallel = true;
  spec.tensor_pieces = true;
  const LayerWork block = LayersOf(model, spec)[1];
  LayerCollective gather = Of(CollectiveKind::kAllGather);
  gather.overlaps_input_gradient = true;
  LayerCollective exposed = Of(CollectiveKind::kReduceScatter);
  exposed.bytes /= 4;
  LayerCollective hidden = exposed;
  hidden.count = 3;
  hidden.overlaps_input_gradient = true;
  EXPECT_THAT(block.forward_collectives,
              ElementsAre(gather, hidden, exposed, gather, hidden, exposed));
  LayerCollective gradient = Of(CollectiveKind::kReduceScatter);
  gradient.overlaps_weight_gradient = true;
  LayerCollective two = gather;
  two.count = 2;
  EXPECT_THAT(block.backward_collectives,
              ElementsAre(two, gradient, two, gradient));
}

// A GEMM per part of the gathered tensor, four before a reduce-scatter, and one
// with the overlapped collectives of the gradient of the input.
TEST(LayersOfTest, GemmsRunInThePiecesOfTheirCollectives) {
  const Model model = *LoadModel("gpt2");
  WorkSpec spec = SmallSpec(model);
  spec.tensor_parallel = 2;
  spec.sequence_parallel = true;
  const LayerWork whole = LayersOf(model, spec)[1];
  spec.tensor_pieces = true;
  const LayerWork pieces = LayersOf(model, spec)[1];
  const auto rows = [](const std::vector<Kernel>& kernels) {
    std::vector<double> rows;
    for (const Kernel& kernel : kernels) {
      if (kernel.part == KernelPart::kProjectionGemm) rows.push_back(kernel.m);
    }
    return rows;
  };
  const double T = 2 * 512;
  EXPECT_THAT(rows(whole.forward), ElementsAre(T, T));
  EXPECT_THAT(rows(pieces.forward),
              ElementsAre(T / 2, T / 2, T / 4, T / 4, T / 4, T / 4));
  EXPECT_THAT(rows(pieces.backward_input), ElementsAre(T, T / 2, T / 2));
  EXPECT_EQ(rows(pieces.backward_weight), rows(whole.backward_weight));
  const auto flops = [](const std::vector<Kernel>& kernels) {
    double sum = 0;
    for (const Kernel& kernel : kernels) sum += kernel.flops;
    return sum;
  };
  EXPECT_SAME(flops(pieces.forward), flops(whole.forward));
  EXPECT_SAME(flops(pieces.backward_input), flops(whole.backward_input));
}

// torchtitan, _get_custom_policy: the outputs of GEMMs 1, 3, 5 and 7 of query,
// key, value, output, gate, up, down are kept.
TEST(LayersOfTest, OperatorsAreRecomputedButForEverySecondGemm) {
  const Model model = *LoadModel("llama-2-70b");
  WorkSpec spec = SmallSpec(model);
  spec.flash_attention = true;
  const LayerWork kept = LayersOf(model, spec)[1];
  spec.recompute = RECOMPUTE_OPERATORS;
  const LayerWork block = LayersOf(model, spec)[1];
  std::vector<double> columns;
  for (const Kernel& kernel : block.recompute) {
    EXPECT_NE(kernel.kind, Kernel::Kind::kAttention);
    if (kernel.kind == Kernel::Kind::kGemm) columns.push_back(kernel.n);
  }
  const double h = 8192, key = 1024, f = 28672;
  EXPECT_THAT(columns, ElementsAre(key, h, f));
  const double T = 2 * 512;
  // Input, query, value, weighted sum with its statistics, gate and output.
  EXPECT_SAME(block.stash_bytes,
              2 * T * (h + h + key + h + f + h) + 4 * 64 * T);
  EXPECT_SAME(block.stash_bytes + block.recompute_scratch_bytes,
              kept.stash_bytes);
  EXPECT_TRUE(kept.recompute.empty());
}

TEST(LayersOfTest, EmbeddingKeepsTokenNumbersAndItsMask) {
  const Model model = *LoadModel("gpt2");
  WorkSpec spec = SmallSpec(model);
  const double tokens = 2 * 512;
  EXPECT_EQ(LayersOf(model, spec).front().stash_bytes, 8 * tokens);
  spec.dropout = true;
  EXPECT_EQ(LayersOf(model, spec).front().stash_bytes,
            8 * tokens + tokens * 768);
}

TEST(LayersOfTest, WhatEveryGpuRepeatsCountsOnce) {
  Model model = *LoadModel("bert-base-uncased");
  model.mutable_transformer()->set_pooler(true);
  model.mutable_transformer()->set_next_sentence_head(true);
  WorkSpec spec = SmallSpec(model);
  const double flops = ModelFlops(LayersOf(model, spec), 1);
  for (bool sequence_parallel : {false, true}) {
    spec.tensor_parallel = 4;
    spec.sequence_parallel = sequence_parallel;
    EXPECT_SAME(ModelFlops(LayersOf(model, spec), 4), flops);
  }
}

TEST(LayersOfTest, EveryLayerButTheLastHandsOnOneTensor) {
  const Model model = *LoadModel("bert-base-uncased");
  const std::vector<LayerWork> layers = LayersOf(model, SmallSpec(model));
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    EXPECT_EQ(layers[i].output_bytes, 2.0 * 2 * 512 * 768);
  }
  EXPECT_EQ(layers.back().output_bytes, 0);
}

TEST(LayersOfTest, SequenceParallelGpusHandOnTheirOwnTokens) {
  const Model model = *LoadModel("bert-base-uncased");
  WorkSpec spec = SmallSpec(model);
  spec.tensor_parallel = 4;
  spec.sequence_parallel = true;
  const std::vector<LayerWork> layers = LayersOf(model, spec);
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    EXPECT_EQ(layers[i].output_bytes, 2.0 * 2 * 512 * 768 / 4);
    EXPECT_EQ(layers[i].forward_collectives.back().bytes, 2.0 * 2 * 512 * 768);
  }
}

TEST(LayersOfTest, BertWithOnlyAPoolerHasNoLogits) {
  Model model = *LoadModel("bert-base-uncased");
  const WorkSpec spec = SmallSpec(model);
  const double with_logits = Flops(LayersOf(model, spec).back().forward);
  EXPECT_SAME(with_logits, 2 * 1024.0 * 768 * 768 + 2 * 1024.0 * 768 * 30522);
  model.mutable_transformer()->set_mlm_head(false);
  model.mutable_transformer()->set_pooler(true);
  const LayerWork head = LayersOf(model, spec).back();
  EXPECT_SAME(Flops(head.forward), 2 * 2.0 * 768 * 768);
  EXPECT_EQ(head.shared_parameters, 0);
}

TEST(LayersOfTest, MeasuredLayersScaleFromTheirMicrobatch) {
  const Model model = *ParseModel("x", R"pb(
    measured {
      microbatch_size: 4
      layers {
        name: "a"
        forward_seconds: 1
        backward_seconds: 2
        activation_bytes: 80
        parameter_bytes: 40
        cut_bytes: 120
      }
      layers { name: "b" forward_seconds: 3 activation_bytes: 8 }
    })pb");
  WorkSpec spec;
  spec.microbatch_size = 6;
  const std::vector<LayerWork> layers = LayersOf(model, spec);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].role, LayerRole::kMeasured);
  EXPECT_EQ(layers[0].forward_seconds, 1.5);
  EXPECT_EQ(layers[0].backward_seconds, 3.0);
  EXPECT_EQ(layers[0].recompute_seconds, 0.0);
  EXPECT_EQ(layers[0].stash_bytes, 120);
  EXPECT_EQ(layers[0].output_bytes, 180);
  EXPECT_EQ(layers[0].parameters, 10);
  EXPECT_EQ(layers[1].output_bytes, 12);
  spec.recompute = RECOMPUTE_FULL;
  const std::vector<LayerWork> again = LayersOf(model, spec);
  EXPECT_EQ(again[1].recompute_seconds, 4.5);
  EXPECT_EQ(again[1].stash_bytes, 180);
  EXPECT_EQ(again[1].recompute_scratch_bytes, 12);
}

TEST(ValidateWorkSpecTest, ReportsAllProblemsAtOnce) {
  const Model model = *LoadModel("gpt2");
  WorkSpec spec;
  spec.microbatch_size = 0;
  spec.sequence_length = 2048;
  spec.tensor_parallel = 5;
  spec.bytes_per_element = 100;
  EXPECT_THAT(
      std::string(ValidateWorkSpec("s", model, spec).message()),
      AllOf(HasSubstr("s: microbatch_size is 0"),
            HasSubstr("sequence_length is 2048, expected at most the model's "
                      "1024 positions"),
            HasSubstr("tensor_parallel is 5, expected a divisor of the model's "
                      "12 attention heads"),
            HasSubstr("bytes_per_element is 100")));
}

TEST(ValidateWorkSpecTest, TensorParallelMustFitKeyValueHeads) {
  Model model = *LoadModel("llama-2-70b");
  WorkSpec spec = SmallSpec(model);
  for (int t : {1, 2, 4, 8, 16, 64}) {
    spec.tensor_parallel = t;
    EXPECT_TRUE(ValidateWorkSpec("s", model, spec).ok()) << t;
  }
  model.mutable_transformer()->set_num_heads(24);
  model.mutable_transformer()->set_num_kv_heads(4);
  spec.tensor_parallel = 6;
  EXPECT_THAT(std::string(ValidateWorkSpec("s", model, spec).message()),
              HasSubstr("4 key-value heads"));
}

TEST(ValidateWorkSpecTest, MeasuredModelsAreWhole) {
  const Model model =
      *ParseModel("x", "measured { layers { forward_seconds: 1 } }");
  WorkSpec spec;
  EXPECT_TRUE(ValidateWorkSpec("s", model, spec).ok());
  spec.tensor_parallel = 2;
  EXPECT_FALSE(ValidateWorkSpec("s", model, spec).ok());
  spec.tensor_parallel = -2;
  EXPECT_FALSE(ValidateWorkSpec("s", model, spec).ok());
}

}  // namespace weir::models::layer_work_test
