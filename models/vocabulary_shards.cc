// SPDX-License-Identifier: Apache-2.0
#include "models/vocabulary_shards.h"

#include <utility>

#include "models/transformer_layers.h"

namespace weir::models {

void ShardVocabulary(const Transformer& transformer, const WorkSpec& spec,
                     LayerList* layers, Partition* partition) {
  if (spec.vocabulary_shards == 1) return;
  LayerList sharded;
  for (size_t kind = 0; kind < layers->num_kinds(); ++kind) {
    sharded.AddKind(layers->kind(static_cast<int32_t>(kind)));
  }
  const int32_t shard = sharded.AddKind(VocabularyShardWork(transformer, spec));
  Partition cut;
  for (size_t s = 0; s + 1 < partition->first.size(); ++s) {
    cut.first.push_back(static_cast<int>(sharded.size()));
    for (int l = partition->first[s]; l < partition->first[s + 1]; ++l) {
      sharded.Add(layers->kind_of(l));
    }
    sharded.Add(shard);
  }
  cut.first.push_back(static_cast<int>(sharded.size()));
  *layers = std::move(sharded);
  *partition = std::move(cut);
}

}  // namespace weir::models
