// SPDX-License-Identifier: Apache-2.0
#include "models/parameters.h"

#include <algorithm>

#include "models/model.h"

namespace weir::models {
namespace {

double NormParameters(const Transformer& transformer) {
  return (transformer.rms_norm() ? 1.0 : 2.0) * transformer.hidden_size();
}

double TokenTable(const Transformer& transformer) {
  return double(transformer.vocabulary_size()) * transformer.hidden_size();
}

}  // namespace

bool HasLogits(const Transformer& transformer) {
  return transformer.mlm_head() || !transformer.pooler();
}

ParameterCount EmbeddingParameters(const Transformer& transformer) {
  ParameterCount count;
  count.split = TokenTable(transformer);
  count.replicated = (double(transformer.num_positions()) +
                      double(transformer.num_token_types())) *
                     transformer.hidden_size();
  if (transformer.embedding_norm()) {
    count.replicated += NormParameters(transformer);
  }
  return count;
}

bool HasExperts(const Transformer& transformer, int index) {
  const int position = index - static_cast<int>(transformer.num_dense_blocks());
  const int interval =
      std::max(static_cast<int>(transformer.expert_block_interval()), 1);
  return transformer.num_experts() > 0 && position >= 0 &&
         position % interval == 0;
}

double ExpertParameters(const Transformer& transformer) {
  const double into = transformer.gated_feed_forward() ? 2 : 1;
  return double(transformer.num_experts()) * (into + 1) *
         transformer.hidden_size() * transformer.expert_feed_forward_size();
}

ParameterCount BlockParameters(const Transformer& transformer, bool experts) {
  const double hidden = transformer.hidden_size();
  const double query =
      double(transformer.num_heads()) * transformer.head_size();
  const double key_value =
      double(transformer.num_kv_heads()) * transformer.head_size();
  const double feed_forward = experts
                                  ? double(transformer.num_shared_experts()) *
                                        transformer.expert_feed_forward_size()
                                  : transformer.feed_forward_size();
  const double into = transformer.gated_feed_forward() ? 2 : 1;
  ParameterCount count;
  count.split = 2 * hidden * query + (into + 1) * hidden * feed_forward;
  count.key_value = 2 * hidden * key_value;
  count.replicated = 2 * NormParameters(transformer);
  if (transformer.attention_bias()) {
    count.split += query;
    count.key_value += 2 * key_value;
  }
  if (transformer.attention_output_bias()) count.replicated += hidden;
  if (experts) {
    count.replicated += hidden * transformer.num_experts();  // router
    if (transformer.shared_expert_gate()) count.replicated += hidden;
  } else if (transformer.feed_forward_bias()) {
    count.split += into * feed_forward;
    count.replicated += hidden;
  }
  if (transformer.query_key_norm()) {
    count.replicated += 2.0 * transformer.head_size();
  }
  return count;
}

ParameterCount HeadParameters(const Transformer& transformer) {
  const double hidden = transformer.hidden_size();
  ParameterCount count;
  if (!transformer.post_norm()) count.replicated += NormParameters(transformer);
  if (transformer.mlm_head()) {
    count.replicated += hidden * hidden + hidden + NormParameters(transformer);
    count.split += transformer.vocabulary_size();
  }
  if (transformer.pooler()) count.replicated += hidden * hidden + hidden;
  if (transformer.next_sentence_head()) count.replicated += 2 * hidden + 2;
  if (HasLogits(transformer) && !transformer.tied_embeddings()) {
    count.split += TokenTable(transformer);
  }
  return count;
}

double TiedParameters(const Transformer& transformer) {
  const bool tied = HasLogits(transformer) && transformer.tied_embeddings();
  return tied ? TokenTable(transformer) : 0;
}

double CountParameters(const Model& model) {
  if (model.has_measured()) {
    double bytes = 0;
    for (const MeasuredLayer& layer : model.measured().layers()) {
      bytes += layer.parameter_bytes();
    }
    return bytes / 4;
  }
  const Transformer& transformer = model.transformer();
  double blocks = 0;
  for (int i = 0; i < static_cast<int>(transformer.num_layers()); ++i) {
    const bool experts = HasExperts(transformer, i);
    blocks += BlockParameters(transformer, experts).Whole();
    if (experts) blocks += ExpertParameters(transformer);
  }
  return EmbeddingParameters(transformer).Whole() + blocks +
         HeadParameters(transformer).Whole();
}

}  // namespace weir::models
