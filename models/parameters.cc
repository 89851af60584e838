// SPDX-License-Identifier: Apache-2.0
#include "models/parameters.h"

#include <algorithm>

#include "models/mixers.h"
#include "models/model.h"

namespace weir::models {
namespace {

double TokenTable(const Transformer& transformer) {
  return double(transformer.vocabulary_size()) * transformer.hidden_size();
}

// Returns the matrices of a feed-forward layer that read its input.
double InputMatrices(const Transformer& transformer) {
  return transformer.gated_feed_forward() ? 2 : 1;
}

// Returns the parameters of the feed-forward half of a block without its norm
// and its routed experts.
ParameterCount FeedForwardParameters(const BlockSpec& block) {
  const Transformer& transformer = block.transformer;
  const double hidden = transformer.hidden_size();
  const double into = InputMatrices(transformer);
  const double width = block.experts ? SharedExpertWidth(transformer)
                                     : transformer.feed_forward_size();
  ParameterCount count;
  count.split = (into + 1) * hidden * width;
  if (!block.experts) {
    if (transformer.feed_forward_bias()) {
      count.split += into * width;
      count.replicated += hidden;
    }
    return count;
  }
  const double experts = transformer.num_experts();
  count.replicated = hidden * experts;  // router
  if (transformer.router_bias()) count.replicated += experts;
  if (transformer.shared_expert_gate()) count.replicated += hidden;
  if (transformer.expert_hidden_size() > 0) {
    count.replicated += 2 * hidden * transformer.expert_hidden_size();
    if (transformer.expert_hidden_norm()) {
      count.replicated += transformer.expert_hidden_size();
    }
  }
  return count;
}

// Returns the parameters that mix residual streams, or sum those of earlier
// blocks, before and after one half of a block. Hyper-connections: a matrix of
// n x hidden to n inputs, n outputs and n x n mixtures of streams, their
// biases, and three scales. Attention residuals: a query and a norm.
double ResidualParameters(const Transformer& transformer) {
  const double hidden = transformer.hidden_size();
  double count = 0;
  if (transformer.residual_streams() > 1) {
    const double n = transformer.residual_streams();
    const double mixtures = 2 * n + n * n;
    count += mixtures * n * hidden + mixtures + 3;
  }
  if (transformer.residual_block() > 0) count += 2 * hidden;
  return count;
}

}  // namespace

double NormParameters(const Transformer& transformer) {
  if (transformer.plain_norms()) return 0;
  return (transformer.rms_norm() ? 1.0 : 2.0) * transformer.hidden_size();
}

bool HasLogits(const Transformer& transformer) {
  return transformer.mlm_head() || !transformer.pooler();
}

double SharedExpertWidth(const Transformer& transformer) {
  return transformer.shared_feed_forward_size() > 0
             ? transformer.shared_feed_forward_size()
             : double(transformer.num_shared_experts()) *
                   transformer.expert_feed_forward_size();
}

double ExpertHidden(const Transformer& transformer) {
  return transformer.expert_hidden_size() > 0 ? transformer.expert_hidden_size()
                                              : transformer.hidden_size();
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

double ExpertParameters(const BlockSpec& block) {
  if (!block.experts) return 0;
  const Transformer& transformer = block.transformer;
  const double into = InputMatrices(transformer);
  const double hidden = ExpertHidden(transformer);
  const double width = transformer.expert_feed_forward_size();
  const double biases = transformer.expert_bias() ? into * width + hidden : 0;
  return double(transformer.num_experts()) *
         ((into + 1) * hidden * width + biases);
}

ParameterCount BlockParameters(const BlockSpec& block) {
  const Transformer& transformer = block.transformer;
  ParameterCount count;
  double halves = 0;
  if (block.mixer) {
    count += MixerParameters(transformer);
    ++halves;
  }
  if (block.feed_forward) {
    count += FeedForwardParameters(block);
    ++halves;
  }
  const double norms =
      transformer.parallel_block() ? std::min(halves, 1.0) : halves;
  count.replicated +=
      (norms + transformer.extra_norms()) * NormParameters(transformer) +
      halves * ResidualParameters(transformer);
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
  if (transformer.head_bias()) count.split += transformer.vocabulary_size();
  return count;
}

ParameterCount MtpProjectionParameters(const Transformer& transformer) {
  const double hidden = transformer.hidden_size();
  return {.split = 2 * hidden * hidden,
          .replicated = 3 * NormParameters(transformer)};
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
  const BlockList list = BlocksOf(transformer);
  double blocks = 0;
  for (const int kind : list.kind_of) {
    const BlockSpec& block = list.kinds[kind];
    blocks += BlockParameters(block).Whole() + ExpertParameters(block);
  }
  double count = EmbeddingParameters(transformer).Whole() + blocks +
                 HeadParameters(transformer).Whole();
  if (transformer.has_encoder()) {
    count += EncoderParameters(transformer).Whole();
  }
  return count;
}

double CountActiveParameters(const Model& model) {
  double active = CountParameters(model);
  const Transformer& transformer = model.transformer();
  if (transformer.has_encoder()) {
    active -= EncoderParameters(transformer).Whole();
  }
  if (transformer.num_experts() == 0) return active;
  const double unused =
      1 - 1.0 * transformer.experts_per_token() / transformer.num_experts();
  const BlockList list = BlocksOf(transformer);
  for (const int kind : list.kind_of) {
    active -= unused * ExpertParameters(list.kinds[kind]);
  }
  return active;
}

double CountMtpParameters(const Model& model) {
  const Transformer& transformer = model.transformer();
  if (transformer.num_mtp_modules() == 0) return 0;
  const BlockList list = BlocksOf(transformer);
  double module = MtpProjectionParameters(transformer).Whole();
  for (const int kind : list.mtp) {
    module += BlockParameters(list.kinds[kind]).Whole() +
              ExpertParameters(list.kinds[kind]);
  }
  return transformer.num_mtp_modules() * module;
}

double CountTableParameters(const Model& model) {
  return model.has_transformer() ? TokenTable(model.transformer()) : 0;
}

}  // namespace weir::models
