// SPDX-License-Identifier: Apache-2.0
#include "models/block_spec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weir::models {
namespace {

// Returns true if the rule without kinds gives block `index` experts.
bool HasExpertsByPosition(const Transformer& transformer, int index) {
  const int position = index - static_cast<int>(transformer.num_dense_blocks());
  const int interval =
      std::max(static_cast<int>(transformer.expert_block_interval()), 1);
  return transformer.num_experts() > 0 && position >= 0 &&
         position % interval == 0;
}

class BlockListBuilder {
 public:
  explicit BlockListBuilder(const Transformer& transformer)
      : transformer_(transformer), base_(transformer) {
    base_.clear_kinds();
    base_.clear_pattern();
    base_.clear_encoder();
    base_.clear_mtp_pattern();
    base_.clear_num_mtp_modules();
  }

  BlockList Build() {
    const int num_layers = static_cast<int>(transformer_.num_layers());
    const std::string& pattern = transformer_.pattern();
    for (int i = 0; i < num_layers; ++i) {
      const int kind =
          pattern.empty() ? -1 : KindOfLetter(pattern[i % pattern.size()]);
      list_.kind_of.push_back(IndexOf(kind, i));
    }
    if (transformer_.num_mtp_modules() == 0) return std::move(list_);
    for (const char letter : transformer_.mtp_pattern()) {
      list_.mtp.push_back(IndexOf(KindOfLetter(letter), num_layers - 1));
    }
    if (list_.mtp.empty()) list_.mtp = {list_.kind_of.back()};
    return std::move(list_);
  }

 private:
  int KindOfLetter(char letter) const {
    int kind = 0;
    while (transformer_.kinds(kind).letter()[0] != letter) ++kind;
    return kind;
  }

  // Returns the position in list_.kinds of block number `index`, which has kind
  // `kind` (-1: the usual one). Adds the entry if it is new.
  int IndexOf(int kind, int index) {
    const FeedForwardKind feed_forward =
        kind < 0 ? FEED_FORWARD_BY_POSITION
                 : transformer_.kinds(kind).feed_forward();
    const bool experts = feed_forward == FEED_FORWARD_EXPERTS ||
                         (feed_forward == FEED_FORWARD_BY_POSITION &&
                          HasExpertsByPosition(transformer_, index));
    const std::pair<int, bool> key(kind, experts);
    const auto at = std::find(keys_.begin(), keys_.end(), key);
    if (at != keys_.end()) return static_cast<int>(at - keys_.begin());
    keys_.push_back(key);
    BlockSpec spec;
    spec.transformer = base_;
    spec.experts = experts;
    spec.feed_forward = feed_forward != FEED_FORWARD_NONE;
    std::string name;
    if (kind >= 0) {
      spec.transformer.MergeFrom(transformer_.kinds(kind).block());
      spec.mixer = !transformer_.kinds(kind).no_mixer();
      name = transformer_.kinds(kind).name();
    }
    if (!name.empty()) name += ' ';
    spec.name = absl::StrCat(name, experts ? "expert block" : "block");
    list_.kinds.push_back(std::move(spec));
    return static_cast<int>(list_.kinds.size()) - 1;
  }

  const Transformer& transformer_;
  Transformer base_;
  std::vector<std::pair<int, bool>> keys_;  // [index in list_.kinds]
  BlockList list_;
};

}  // namespace

BlockList BlocksOf(const Transformer& transformer) {
  return BlockListBuilder(transformer).Build();
}

uint32_t MixerHeads(const Transformer& transformer) {
  switch (transformer.mixer_case()) {
    case Transformer::kMamba2:
      return transformer.mamba2().num_heads();
    case Transformer::kDeltaNet:
      return transformer.delta_net().num_value_heads() > 0
                 ? transformer.delta_net().num_value_heads()
                 : transformer.delta_net().num_key_heads();
    default:
      return transformer.num_heads();
  }
}

bool IsPlainAttention(const Transformer& transformer) {
  return transformer.mixer_case() == Transformer::MIXER_NOT_SET;
}

std::string BlockWithOtherOperators(const Transformer& transformer) {
  for (const BlockSpec& block : BlocksOf(transformer).kinds) {
    const bool usual =
        block.mixer && block.feed_forward &&
        IsPlainAttention(block.transformer) &&
        block.transformer.attention_gate() == ATTENTION_GATE_NONE &&
        !block.transformer.has_sparse_index() &&
        block.transformer.expert_hidden_size() == 0 &&
        !block.transformer.parallel_block();
    if (!usual) return block.name;
  }
  return "";
}

std::string BlockWithoutContext(const Transformer& transformer) {
  if (transformer.has_encoder()) return "encoder";
  for (const BlockSpec& block : BlocksOf(transformer).kinds) {
    const Transformer& own = block.transformer;
    const bool supported =
        (IsPlainAttention(own) || own.has_latent_attention()) &&
        !own.has_sparse_index() && !own.has_compressed_attention() &&
        own.attention_chunk() == 0;
    if (block.mixer && !supported) return block.name;
  }
  return "";
}

bool HasWindow(const Transformer& transformer) {
  const std::vector<BlockSpec> kinds = BlocksOf(transformer).kinds;
  return std::any_of(kinds.begin(), kinds.end(), [](const BlockSpec& block) {
    return block.mixer && block.transformer.sliding_window() > 0;
  });
}

std::vector<std::string> SpecialFields(const Transformer& transformer) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  transformer.GetReflection()->ListFields(transformer, &fields);
  std::vector<std::string> names;
  for (const google::protobuf::FieldDescriptor* field : fields) {
    // Routing of tokens to experts changes no layer.
    if (field->number() >= Transformer::kActivationFieldNumber &&
        field->number() < Transformer::kNumRouterGroupsFieldNumber) {
      names.emplace_back(field->name());
    }
  }
  return names;
}

bool IsLinearMixer(const Transformer& transformer) {
  return transformer.has_mamba2() || transformer.has_delta_net() ||
         transformer.has_lightning_attention();
}

}  // namespace weir::models
