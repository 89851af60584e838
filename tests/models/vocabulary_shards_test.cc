// SPDX-License-Identifier: Apache-2.0
#include "models/vocabulary_shards.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/layer_work.h"
#include "models/model.h"

namespace weir::models::vocabulary_shards_test {

using testing::ElementsAre;

Model Gpt(bool tied) {
  Model model;
  model.set_name("test");
  Transformer& transformer = *model.mutable_transformer();
  transformer.set_num_layers(4);
  transformer.set_hidden_size(64);
  transformer.set_num_heads(4);
  transformer.set_vocabulary_size(1000);
  transformer.set_tied_embeddings(tied);
  transformer.set_causal(true);
  return *CompleteModel("test", model);
}

WorkSpec Spec(int shards) {
  WorkSpec spec;
  spec.sequence_length = 32;
  spec.vocabulary_shards = shards;
  return spec;
}

struct Sharded {
  LayerList layers;
  Partition partition;
};

Sharded Shard(const Model& model, int shards) {
  Sharded sharded = {ListLayers(model, Spec(shards)), {}};
  sharded.partition = *PartitionEvenly(sharded.layers, 4);
  ShardVocabulary(model.transformer(), Spec(shards), &sharded.layers,
                  &sharded.partition);
  return sharded;
}

TEST(VocabularyShardsTest, EveryStageEndsWithAShard) {
  const Sharded sharded = Shard(Gpt(false), 4);
  EXPECT_THAT(sharded.partition.first, ElementsAre(0, 3, 5, 7, 10));
  for (const int stage : {0, 1, 2, 3}) {
    const int last = sharded.partition.first[stage + 1] - 1;
    EXPECT_EQ(sharded.layers[last].role, LayerRole::kVocabulary);
    // All stages send hidden states.
    EXPECT_EQ(sharded.layers[last].output_bytes, 2.0 * 32 * 64);
  }
  const Sharded whole = Shard(Gpt(false), 1);
  EXPECT_THAT(whole.partition.first, ElementsAre(0, 2, 3, 4, 6));
}

// FLOP and parameters of all shards are those of the model.
TEST(VocabularyShardsTest, ShardsAddUp) {
  for (const bool tied : {false, true}) {
    const Model model = Gpt(tied);
    const Sharded whole = Shard(model, 1), sharded = Shard(model, 4);
    const auto num_layers = [](const Sharded& one) {
      return static_cast<int>(one.layers.size());
    };
    EXPECT_DOUBLE_EQ(ModelFlops(sharded.layers, 1),
                     ModelFlops(whole.layers, 1));
    EXPECT_DOUBLE_EQ(StageParameters(sharded.layers, 0, num_layers(sharded)),
                     StageParameters(whole.layers, 0, num_layers(whole)));
    EXPECT_EQ(sharded.layers.back().parameters,
              (tied ? 1 : 2) * 1000.0 / 4 * 64);
  }
}

// 10 rows do not divide by 4: every rank has 3, padded as on each alone.
TEST(VocabularyShardsTest, ShardsAreRoundedUp) {
  Model model = Gpt(true);
  model.mutable_transformer()->set_vocabulary_size(10);
  EXPECT_EQ(Shard(model, 4).layers.back().parameters, 3 * 64);
  EXPECT_DOUBLE_EQ(ModelFlops(Shard(model, 4).layers, 1),
                   ModelFlops(Shard(model, 1).layers, 1));
}

// Logits live from S to T, not from a forward to its backward.
TEST(VocabularyShardsTest, LogitsAreTransient) {
  const LayerWork shard = Shard(Gpt(true), 4).layers.back();
  EXPECT_EQ(shard.stash_bytes, 0);
  EXPECT_GE(shard.forward_scratch_bytes, 4.0 * 32 * 250);
}

}  // namespace weir::models::vocabulary_shards_test
