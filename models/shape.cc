// SPDX-License-Identifier: Apache-2.0
#include "models/shape.h"

#include <algorithm>
#include <cmath>

namespace weir::models {

Shape ShapeOf(const Transformer& transformer, const WorkSpec& spec) {
  const double t = spec.tensor_parallel;
  const double kv_heads = transformer.num_kv_heads();
  Shape shape;
  shape.tensor_parallel = t;
  shape.sequences = spec.microbatch_size;
  shape.sequence_length =
      static_cast<double>(spec.sequence_length) / spec.context.size();
  shape.tokens = shape.sequences * shape.sequence_length;
  shape.local_tokens = spec.sequence_parallel ? shape.tokens / t : shape.tokens;
  shape.hidden = transformer.hidden_size();
  shape.heads = transformer.num_heads() / t;
  shape.head_size = transformer.head_size();
  if (transformer.value_head_size() > 0) {
    shape.value_part = transformer.value_head_size() / shape.head_size;
  }
  shape.query = shape.heads * shape.head_size;
  shape.key_value = std::max(kv_heads / t, 1.0) * shape.head_size;
  shape.key_value_share = kv_heads / t * shape.head_size;
  shape.feed_forward = transformer.feed_forward_size() / t;
  shape.feed_forward_inputs = transformer.gated_feed_forward() ? 2 : 1;
  const double padded = PaddedVocabulary(transformer, spec);
  shape.vocabulary = padded / t;
  if (padded > 0) {  // encoders have none
    shape.vocabulary_needed = transformer.vocabulary_size() / padded;
  }
  shape.element_bytes = spec.bytes_per_element;
  shape.mask_bytes = spec.dropout ? 1 : 0;
  return shape;
}

double PaddedVocabulary(const Transformer& transformer, const WorkSpec& spec) {
  const double multiple =
      double(spec.vocabulary_multiple) * spec.tensor_parallel;
  const double size = transformer.vocabulary_size();
  return multiple > 0 ? multiple * std::ceil(size / multiple) : size;
}

double PerGpu(const ParameterCount& count, const Transformer& transformer,
              int tensor_parallel) {
  const double kv_parts =
      std::min<double>(tensor_parallel, transformer.num_kv_heads());
  return count.split / tensor_parallel + count.key_value / kv_parts +
         count.replicated;
}

double LocalBytes(const Shape& shape) {
  return shape.element_bytes * shape.local_tokens * shape.hidden;
}

double WholeBytes(const Shape& shape) {
  return shape.element_bytes * shape.tokens * shape.hidden;
}

}  // namespace weir::models
