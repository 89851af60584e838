// SPDX-License-Identifier: Apache-2.0
// Vocabulary parallelism across pipeline ranks (Yeung et al. 2024, Balancing
// Pipeline Parallelism with Vocabulary Parallelism, section 4).
#ifndef WEIR_MODELS_VOCABULARY_SHARDS_H_
#define WEIR_MODELS_VOCABULARY_SHARDS_H_

#include "models/layer_list.h"
#include "models/partition.h"

namespace weir::models {

// Adds a part of the vocabulary to the end of every stage if
// spec.vocabulary_shards is above 1. Requires: as many stages as shards; the
// layers were listed with the same spec.
void ShardVocabulary(const Transformer& transformer, const WorkSpec& spec,
                     LayerList* layers, Partition* partition);

}  // namespace weir::models

#endif  // WEIR_MODELS_VOCABULARY_SHARDS_H_
