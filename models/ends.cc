// SPDX-License-Identifier: Apache-2.0
#include "models/collectives.h"
#include "models/kernels.h"
#include "models/shape.h"
#include "models/transformer_layers.h"

namespace weir {
namespace {

constexpr double kTokenIdBytes = 8;
constexpr double kLogitBytes = 4;  // the loss is computed in fp32

// A dense layer with GELU and norm that every GPU of the group repeats.
void AddMlmTransform(const Shape& shape, LayerWork* work) {
  const double e = shape.element_bytes;
  const double tensor = e * shape.local_tokens * shape.hidden;
  AddLinear(
      {.part = KernelPart::kVocabularyProduct,
       .rows = shape.local_tokens,
       .in = shape.hidden,
       .out = shape.hidden,
       .bias = true,
       .element_bytes = e,
       .needed = shape.tokens / shape.tensor_parallel / shape.local_tokens},
      work);
  for (KernelPart part : {KernelPart::kElementwise, KernelPart::kNorm}) {
    work->forward.push_back(MemoryKernel(2 * tensor, part));
    work->backward_input.push_back(MemoryKernel(3 * tensor, part));
  }
  work->stash_bytes += 3 * tensor;  // inputs of dense, GELU and norm
  work->weight_gradient_stash_bytes += 2 * tensor;
}

void AddLogits(const WorkSpec& spec, const Shape& shape, bool bias,
               LayerWork* work) {
  const double e = shape.element_bytes;
  const double input = e * shape.local_tokens * shape.hidden;
  const double logits = shape.tokens * shape.vocabulary;
  AddLinear({.part = KernelPart::kVocabularyProduct,
             .rows = shape.tokens,
             .in = shape.hidden,
             .out = shape.vocabulary,
             .bias = bias,
             .element_bytes = e},
            work);
  // Softmax and loss: 16-bit logits in, fp32 probabilities kept, and back.
  work->forward.push_back(
      MemoryKernel((e + kLogitBytes) * logits, KernelPart::kLoss));
  work->backward_input.push_back(
      MemoryKernel((e + kLogitBytes) * logits, KernelPart::kLoss));
  work->stash_bytes += input + kLogitBytes * logits;
  work->weight_gradient_stash_bytes += input + e * logits;
  AddColumnInput(spec, e * shape.tokens * shape.hidden, work);
  if (spec.tensor_parallel == 1) return;
  // The largest logit of each token, the sum of exponentials, the target's.
  AddCollective({.kind = LayerCollective::Kind::kAllReduce,
                 .bytes = kLogitBytes * shape.tokens,
                 .count = 3},
                &work->forward_collectives);
}

// Dense on the first token of each sequence, and two outputs from it.
void AddPooler(const Shape& shape, bool next_sentence, LayerWork* work) {
  const double e = shape.element_bytes;
  const double tensor = e * shape.sequences * shape.hidden;
  Linear linear{.part = KernelPart::kVocabularyProduct,
                .rows = shape.sequences,
                .in = shape.hidden,
                .out = shape.hidden,
                .bias = true,
                .element_bytes = e,
                .needed = 1 / shape.tensor_parallel};
  AddLinear(linear, work);
  work->stash_bytes += 2 * tensor;
  work->weight_gradient_stash_bytes += 2 * tensor;
  if (next_sentence) {
    linear.out = 2;
    AddLinear(linear, work);
    work->weight_gradient_stash_bytes += tensor;
  }
}

}  // namespace

LayerWork EmbeddingWork(const Transformer& transformer, const WorkSpec& spec) {
  const Shape shape = ShapeOf(transformer, spec);
  const double e = shape.element_bytes;
  const double mask = shape.mask_bytes;
  const double whole = shape.tokens * shape.hidden;
  const double local = shape.local_tokens * shape.hidden;
  LayerWork work;
  work.name = "embedding";
  work.role = LayerRole::kEmbedding;
  work.forward.push_back(MemoryKernel(2 * e * whole, KernelPart::kEmbedding));
  work.backward_weight.push_back(
      MemoryKernel(3 * e * whole, KernelPart::kEmbedding));
  work.stash_bytes = kTokenIdBytes * shape.tokens;
  work.weight_gradient_stash_bytes = work.stash_bytes + e * local;
  for (uint32_t rows :
       {transformer.num_positions(), transformer.num_token_types()}) {
    if (rows == 0) continue;
    work.forward.push_back(MemoryKernel(3 * e * local, KernelPart::kEmbedding));
    work.backward_weight.push_back(
        MemoryKernel(e * local, KernelPart::kEmbedding));
  }
  if (transformer.embedding_norm()) {
    work.forward.push_back(MemoryKernel(2 * e * local, KernelPart::kNorm));
    work.backward_input.push_back(
        MemoryKernel(3 * e * local, KernelPart::kNorm));
    work.stash_bytes += e * local;
  }
  if (mask > 0) {
    work.forward.push_back(
        MemoryKernel((2 * e + mask) * local, KernelPart::kElementwise));
    work.backward_input.push_back(
        MemoryKernel((2 * e + mask) * local, KernelPart::kElementwise));
    work.stash_bytes += mask * local;
  }
  work.output_bytes = e * local;
  work.parameters = PerGpu(EmbeddingParameters(transformer), transformer,
                           spec.tensor_parallel);
  AddRowOutput(spec, e * whole, &work);
  return work;
}

LayerWork HeadWork(const Transformer& transformer, const WorkSpec& spec) {
  const Shape shape = ShapeOf(transformer, spec);
  const double tensor = shape.element_bytes * shape.local_tokens * shape.hidden;
  LayerWork work;
  work.name = "head";
  work.role = LayerRole::kHead;
  if (!transformer.post_norm()) {
    work.forward.push_back(MemoryKernel(2 * tensor, KernelPart::kNorm));
    work.backward_input.push_back(MemoryKernel(3 * tensor, KernelPart::kNorm));
    work.stash_bytes += tensor;
  }
  if (transformer.mlm_head()) AddMlmTransform(shape, &work);
  if (transformer.pooler()) {
    AddPooler(shape, transformer.next_sentence_head(), &work);
  }
  if (HasLogits(transformer))
    AddLogits(spec, shape, transformer.mlm_head(), &work);
  work.shared_parameters = TiedParameters(transformer) / spec.tensor_parallel;
  work.parameters =
      work.shared_parameters +
      PerGpu(HeadParameters(transformer), transformer, spec.tensor_parallel);
  return work;
}

}  // namespace weir
