// SPDX-License-Identifier: Apache-2.0
#include "models/layer_list.h"

#include <numeric>
#include <utility>

#include "models/block_spec.h"
#include "models/transformer_layers.h"

namespace weir::models {
LayerList::LayerList(std::vector<LayerWork> layers)
    : kinds_(std::move(layers)), kind_of_(kinds_.size()) {
  std::iota(kind_of_.begin(), kind_of_.end(), 0);
}

int32_t LayerList::AddKind(LayerWork layer) {
  kinds_.push_back(std::move(layer));
  return static_cast<int32_t>(kinds_.size()) - 1;
}

LayerList ListLayers(const Model& model, const WorkSpec& spec) {
  if (model.has_measured()) return LayersOf(model, spec);
  const Transformer& transformer = model.transformer();
  LayerList layers;
  layers.Add(layers.AddKind(EmbeddingWork(transformer, spec)));
  const BlockList blocks = BlocksOf(transformer);
  std::vector<int32_t> kinds;
  kinds.reserve(blocks.kinds.size());
  for (const BlockSpec& block : blocks.kinds) {
    kinds.push_back(layers.AddKind(BlockWork(block, spec)));
  }
  for (const int kind : blocks.kind_of) layers.Add(kinds[kind]);
  layers.Add(layers.AddKind(HeadWork(transformer, spec)));
  return layers;
}

}  // namespace weir::models
