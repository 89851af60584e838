// SPDX-License-Identifier: Apache-2.0
#include "models/layer_list.h"

#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/block_spec.h"
#include "models/kernels.h"
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
  const int num_blocks = static_cast<int>(blocks.kind_of.size());
  const auto in_16_bits = [&](int block) {
    return spec.quantization.any() &&
           (block < spec.quantization.first_blocks ||
            block >= num_blocks - spec.quantization.last_blocks);
  };
  // [whether in 16 bits][kind]; -1: not yet added.
  std::vector<int32_t> kinds[2];
  for (auto& numbers : kinds) numbers.assign(blocks.kinds.size(), -1);
  for (int i = 0; i < num_blocks; ++i) {
    const int kind = blocks.kind_of[i];
    const bool plain = in_16_bits(i);
    int32_t& number = kinds[plain ? 1 : 0][kind];
    if (number < 0) {
      LayerWork work = BlockWork(blocks.kinds[kind],
                                 plain ? WithoutQuantization(spec) : spec);
      if (plain) absl::StrAppend(&work.name, " in 16 bits");
      number = layers.AddKind(std::move(work));
    }
    layers.Add(number);
  }
  if (const uint32_t modules = transformer.num_mtp_modules(); modules > 0) {
    const int32_t mtp = layers.AddKind(MtpWork(transformer, spec));
    for (uint32_t i = 0; i < modules; ++i) layers.Add(mtp);
  }
  layers.Add(layers.AddKind(HeadWork(transformer, spec)));
  return layers;
}

LayerList JoinMtpWithHead(const LayerList& layers) {
  LayerWork head = layers.back();
  LayerList joined;
  std::vector<int32_t> kinds(layers.num_kinds(), -1);
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    if (layers[i].role == LayerRole::kMtp) {
      LayerWork module = layers[i];
      module.parameters -= module.shared_parameters;
      AppendLayer(module, 1, &head);
      continue;
    }
    int32_t& kind = kinds[layers.kind_of(i)];
    if (kind < 0) kind = joined.AddKind(layers[i]);
    joined.Add(kind);
  }
  joined.Add(joined.AddKind(std::move(head)));
  return joined;
}

}  // namespace weir::models
