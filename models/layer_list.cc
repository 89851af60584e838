// SPDX-License-Identifier: Apache-2.0
#include "models/layer_list.h"

#include <numeric>
#include <utility>

#include "models/parameters.h"
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
  const int32_t dense = layers.AddKind(BlockWork(transformer, spec, false));
  const int32_t experts =
      transformer.num_experts() > 0
          ? layers.AddKind(BlockWork(transformer, spec, true))
          : dense;
  for (int i = 0; i < static_cast<int>(transformer.num_layers()); ++i) {
    layers.Add(HasExperts(transformer, i) ? experts : dense);
  }
  layers.Add(layers.AddKind(HeadWork(transformer, spec)));
  return layers;
}

}  // namespace weir::models
