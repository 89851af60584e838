// SPDX-License-Identifier: Apache-2.0
#include "models/model_limits.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/block_limits.h"

namespace weir::models {
namespace {

struct Limit {
  const char* field;
  double value;
  double low;
  double high;
};

void CheckExperts(const Transformer& transformer, const FieldName& name,
                  Problems* problems) {
  const uint32_t experts = transformer.num_experts();
  problems->CheckRange(name("num_experts"), experts, 0, 1e5);
  problems->CheckRange(name("capacity_factor"), transformer.capacity_factor(),
                       0, 1e3);
  if (experts == 0) {
    for (const auto& [field, value] :
         {std::pair("experts_per_token", transformer.experts_per_token()),
          std::pair("num_router_groups", transformer.num_router_groups()),
          std::pair("num_shared_experts", transformer.num_shared_experts()),
          std::pair("num_dense_blocks", transformer.num_dense_blocks())}) {
      if (value == 0) continue;
      problems->Add(name(field), absl::StrFormat("is %d, expected 0: %s is 0",
                                                 value, name("num_experts")));
    }
    return;
  }
  problems->CheckRange(name("experts_per_token"),
                       transformer.experts_per_token(), 1, experts);
  problems->CheckRange(name("expert_feed_forward_size"),
                       transformer.expert_feed_forward_size(), 0, 1e7);
  problems->CheckRange(name("num_shared_experts"),
                       transformer.num_shared_experts(), 0, 1e4);
  problems->CheckRange(name("num_dense_blocks"), transformer.num_dense_blocks(),
                       0, transformer.num_layers());
  problems->CheckRange(name("expert_block_interval"),
                       transformer.expert_block_interval(), 0, kMaxLayers);
  CheckRouterGroups(transformer, name, problems);
}

}  // namespace

void CheckRouterGroups(const Transformer& transformer, const FieldName& name,
                       Problems* problems) {
  const uint32_t groups = transformer.num_router_groups();
  const uint32_t chosen = transformer.router_groups_per_token();
  if (groups <= 1) {
    problems->CheckRange(name("router_groups_per_token"), chosen, 0, 1);
    return;
  }
  const uint32_t experts = transformer.num_experts();
  if (experts % groups != 0) {
    problems->Add(name("num_router_groups"),
                  absl::StrFormat("is %d, expected a divisor of %s (%d)",
                                  groups, name("num_experts"), experts));
    return;
  }
  problems->CheckRange(name("router_groups_per_token"), chosen, 0, groups);
  const uint32_t available =
      (chosen > 0 ? chosen : groups) * (experts / groups);
  if (transformer.experts_per_token() > available) {
    problems->Add(
        name("router_groups_per_token"),
        absl::StrFormat("is %d, expected groups with at least %s (%d) "
                        "experts; %d have %d",
                        chosen, name("experts_per_token"),
                        transformer.experts_per_token(), chosen, available));
  }
}

void CheckHeads(const Transformer& transformer, const FieldName& name,
                Problems* problems) {
  const uint32_t heads = transformer.num_heads();
  if (heads == 0) return;
  const uint32_t kv_heads = transformer.num_kv_heads();
  if (kv_heads != 0 && heads % kv_heads != 0) {
    problems->Add(name("num_kv_heads"),
                  absl::StrFormat("is %d, expected a divisor of %s (%d)",
                                  kv_heads, name("num_heads"), heads));
  }
  if (transformer.head_size() == 0 && transformer.hidden_size() % heads != 0) {
    problems->Add(
        name("hidden_size"),
        absl::StrFormat("is %d, expected a multiple of %s (%d), or %s",
                        transformer.hidden_size(), name("num_heads"), heads,
                        name("head_size")));
  }
}

void CheckTransformer(const Transformer& transformer, const FieldName& name,
                      Problems* problems) {
  const Limit limits[] = {
      {"num_layers", double(transformer.num_layers()), 1, kMaxLayers},
      {"hidden_size", double(transformer.hidden_size()), 1, 1e6},
      {"num_heads", double(transformer.num_heads()), 1, 1e5},
      {"num_kv_heads", double(transformer.num_kv_heads()), 0, 1e5},
      {"head_size", double(transformer.head_size()), 0, 1e5},
      {"feed_forward_size", double(transformer.feed_forward_size()), 0, 1e7},
      {"vocabulary_size", double(transformer.vocabulary_size()), 1, 1e8},
      {"num_positions", double(transformer.num_positions()), 0, 1e8},
      {"num_token_types", double(transformer.num_token_types()), 0, 1e6},
      {"default_sequence_length", double(transformer.default_sequence_length()),
       0, 1e8},
  };
  for (const Limit& limit : limits) {
    problems->CheckRange(name(limit.field), limit.value, limit.low, limit.high);
  }
  CheckHeads(transformer, name, problems);
  CheckExperts(transformer, name, problems);
  CheckBlocks(transformer, name, problems);
  if (transformer.has_encoder()) {
    CheckEncoder(transformer.encoder(), name, problems);
  }
  const uint32_t positions = transformer.num_positions();
  if (positions != 0 && transformer.default_sequence_length() > positions) {
    problems->Add(name("default_sequence_length"),
                  absl::StrFormat("is %d, expected at most %s (%d)",
                                  transformer.default_sequence_length(),
                                  name("num_positions"), positions));
  }
}

void CheckMeasured(const MeasuredModel& measured, Problems* problems) {
  if (measured.layers_size() < 1 || measured.layers_size() > kMaxLayers) {
    problems->Add("measured.layers",
                  absl::StrFormat("has %d entries, expected 1 to %d",
                                  measured.layers_size(), kMaxLayers));
    return;
  }
  problems->CheckRange("measured.microbatch_size", measured.microbatch_size(),
                       0, 1e6);
  for (int i = 0; i < measured.layers_size(); ++i) {
    const MeasuredLayer& layer = measured.layers(i);
    const std::string where = absl::StrCat("measured.layers[", i, "].");
    const Limit limits[] = {
        {"forward_seconds", layer.forward_seconds(), 0, kMaxSeconds},
        {"backward_seconds", layer.backward_seconds(), 0, kMaxSeconds},
        {"activation_bytes", layer.activation_bytes(), 0, kMaxBytes},
        {"parameter_bytes", layer.parameter_bytes(), 0, kMaxBytes},
        {"cut_bytes", layer.cut_bytes(), 0, kMaxBytes},
    };
    for (const Limit& limit : limits) {
      problems->CheckRange(absl::StrCat(where, limit.field), limit.value,
                           limit.low, limit.high);
    }
  }
}

}  // namespace weir::models
