// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "models/collectives.h"
#include "models/kernels.h"
#include "models/shape.h"
#include "models/transformer_layers.h"

namespace weir::models {
namespace {

constexpr double kTargetBytes = 4;
constexpr double kLogitBytes = 4;  // the loss is computed in fp32

double PaddingParameters(const Transformer& transformer, const WorkSpec& spec) {
  return (PaddedVocabulary(transformer, spec) - transformer.vocabulary_size()) *
         transformer.hidden_size() / spec.tensor_parallel;
}

// Returns the transformer without the vocabulary if shards of it are layers of
// their own.
Transformer WithoutShards(const Transformer& transformer,
                          const WorkSpec& spec) {
  if (spec.vocabulary_shards == 1) return transformer;
  Transformer without = transformer;
  without.clear_vocabulary_size();
  without.clear_head_bias();
  return without;
}

// Adds a dense layer with GELU and norm that every GPU of the group repeats.
void AddMlmTransform(const WorkSpec& spec, const Shape& shape,
                     LayerWork* work) {
  const double e = shape.element_bytes;
  const double tensor = e * shape.local_tokens * shape.hidden;
  AddLinear(
      spec,
      {.part = KernelPart::kVocabularyGemm,
       .rows = shape.local_tokens,
       .in = shape.hidden,
       .out = shape.hidden,
       .bias = true,
       .needed = shape.tokens / shape.tensor_parallel / shape.local_tokens},
      work);
  for (KernelPart part : {KernelPart::kElementwise, KernelPart::kNorm}) {
    work->forward.push_back(MemoryKernel(2 * tensor, part));
    work->backward_input.push_back(MemoryKernel(3 * tensor, part));
  }
  work->stash_bytes += 3 * tensor;  // inputs of dense layer, GELU and norm
  work->weight_gradient_stash_bytes += 2 * tensor;
}

// Adds the loss and its gradient. Saves fp32 probabilities, computed from
// 16-bit logits. Unfused forward: conversion to fp32, maximum, subtraction,
// exponential, sum, division. Unfused backward: in-place multiplication by the
// loss's gradient, conversion to 16 bits.
void AddLoss(const WorkSpec& spec, double logits, LayerWork* work) {
  const double e = spec.bytes_per_element;
  const double f = kLogitBytes;
  if (spec.in_place_cross_entropy) {  // second pass reads the cache
    AddPasses(KernelPart::kLoss, 2 * e * logits, 1, 0, 0, work);
    return;
  }
  if (spec.fused_cross_entropy) {
    AddPasses(KernelPart::kLoss, (2 * e + f) * logits, 2, (e + f) * logits, 1,
              work);
    return;
  }
  const double convert = e < f ? e + f : 0;
  AddPasses(KernelPart::kLoss, (convert + 8 * f) * logits, 6,
            (convert + 2 * f) * logits, 2, work);
  // The logits in both formats, besides the probabilities.
  work->forward_scratch_bytes = (e < f ? e + f : f) * logits;
}

void AddLogits(const WorkSpec& spec, const Shape& shape, bool bias,
               LayerWork* work) {
  const double e = shape.element_bytes;
  const double input = e * shape.local_tokens * shape.hidden;
  const double logits = shape.tokens * shape.vocabulary;
  AddLinear(spec,
            {.part = KernelPart::kVocabularyGemm,
             .rows = shape.tokens,
             .in = shape.hidden,
             .out = shape.vocabulary,
             .bias = bias,
             .needed = shape.vocabulary_needed},
            work);
  AddLoss(spec, logits, work);
  work->backward_scratch_bytes =
      e * (logits + shape.tokens * shape.hidden) +
      (spec.fused_gradient_accumulation || spec.lora.active()
           ? 0
           : e * shape.vocabulary * shape.hidden);
  work->stash_bytes +=
      input + (spec.in_place_cross_entropy ? e : kLogitBytes) * logits;
  work->weight_gradient_stash_bytes += input + e * logits;
  AddColumnInput(spec, e * shape.tokens * shape.hidden, work);
  if (spec.tensor_parallel == 1) return;
  // Per token: the largest logit, the sum of exponentials, the target's logit.
  AddCollective({.kind = CollectiveKind::kAllReduce,
                 .bytes = kLogitBytes * shape.tokens,
                 .count = 3},
                &work->forward_collectives);
}

// Adds a dense layer on the first token of each sequence and, with
// `next_sentence`, one with two outputs after it.
void AddPooler(const WorkSpec& spec, const Shape& shape, bool next_sentence,
               LayerWork* work) {
  const double e = shape.element_bytes;
  const double tensor = e * shape.sequences * shape.hidden;
  Linear linear{.part = KernelPart::kVocabularyGemm,
                .rows = shape.sequences,
                .in = shape.hidden,
                .out = shape.hidden,
                .bias = true,
                .needed = 1 / shape.tensor_parallel};
  AddLinear(spec, linear, work);
  work->stash_bytes += 2 * tensor;
  work->weight_gradient_stash_bytes += 2 * tensor;
  if (next_sentence) {
    linear.out = 2;
    AddLinear(spec, linear, work);
    work->weight_gradient_stash_bytes += tensor;
  }
}

// Adds the gather of one row per token and per position or token type, and the
// scatter of their gradients. Unfused, the scatter fills a separate table,
// which is then added to the gradients: the table is cleared and read, the
// gradient buffer read and written.
void AddEmbedding(const WorkSpec& spec, const Transformer& transformer,
                  const Shape& shape, LayerWork* work) {
  const double e = shape.element_bytes;
  const double g = spec.gradient_bytes;
  const double whole = shape.tokens * shape.hidden;
  const double local = shape.local_tokens * shape.hidden;
  const auto forward = [&](double bytes) {
    work->forward.push_back(MemoryKernel(bytes, KernelPart::kEmbedding));
  };
  const auto backward = [&](double bytes, int launches = 1) {
    if (spec.lora.active()) return;  // the tables are frozen
    work->backward_weight.push_back(
        MemoryKernel(bytes, KernelPart::kEmbedding, launches));
  };
  if (spec.fused_embedding) {
    const bool positions = transformer.num_positions() > 0;
    forward((positions ? 3 : 2) * e * whole);
    backward((e + 2 * g) * whole +
             (positions ? 2 * g * shape.sequence_length * shape.hidden : 0));
    return;
  }
  forward(2 * e * whole);
  backward(3 * e * whole);
  backward((2 * e + 2 * g) * shape.vocabulary * shape.hidden, 2);
  for (uint32_t rows :
       {transformer.num_positions(), transformer.num_token_types()}) {
    if (rows == 0) continue;
    forward(3 * e * local);
    backward(e * local);
  }
}

}  // namespace

LayerWork EmbeddingWork(const Transformer& given, const WorkSpec& any_spec) {
  const WorkSpec spec = WithoutQuantization(any_spec);
  const Transformer transformer = WithoutShards(given, spec);
  const Shape shape = ShapeOf(transformer, spec);
  const double e = shape.element_bytes;
  const double mask = spec.residual_dropout_only ? 0 : shape.mask_bytes;
  const double whole = shape.tokens * shape.hidden;
  const double local = shape.local_tokens * shape.hidden;
  LayerWork work;
  work.name = "embedding";
  work.role = LayerRole::kEmbedding;
  AddEmbedding(spec, transformer, shape, &work);
  work.stash_bytes = (spec.int32_tokens ? 4 : 8) * shape.tokens;
  work.weight_gradient_stash_bytes = work.stash_bytes + e * local;
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
                           spec.tensor_parallel) +
                    PaddingParameters(transformer, spec);
  if (spec.early_release) {
    work.forward_scratch_bytes = e * local;  // the sum while it is computed
  } else if (!spec.lora.active()) {
    // The table's gradient, before it is accumulated.
    work.backward_scratch_bytes =
        e * (shape.vocabulary * shape.hidden + 2 * local);
  }
  AddRowOutput(spec, e * whole, &work);
  AddEncoder(transformer, spec, &work);
  return work;
}

double TablePerGpu(const Transformer& transformer, const WorkSpec& spec) {
  return PaddedVocabulary(transformer, spec) * transformer.hidden_size() /
         spec.tensor_parallel;
}

// The kernels of both layers at 1 / shards of the vocabulary. The logits exist
// only between the passes S and T of a microbatch, which are neighbors in the
// order of a rank, so that they do not remain from a forward to its backward.
LayerWork VocabularyShardWork(const Transformer& transformer,
                              const WorkSpec& any_spec) {
  const WorkSpec spec = WithoutQuantization(any_spec);
  const double shards = spec.vocabulary_shards;
  Transformer part = transformer;
  part.set_vocabulary_size(
      static_cast<uint32_t>(std::ceil(transformer.vocabulary_size() / shards)));
  part.clear_num_positions();
  part.clear_num_token_types();
  Shape shape = ShapeOf(part, spec);
  shape.vocabulary_needed =
      transformer.vocabulary_size() / shards / PaddedVocabulary(part, spec);
  LayerWork work;
  work.name = "vocabulary shard";
  work.role = LayerRole::kVocabulary;
  AddEmbedding(spec, part, shape, &work);
  AddLogits(spec, shape, transformer.head_bias(), &work);
  work.forward_scratch_bytes += work.stash_bytes;
  work.backward_scratch_bytes += work.stash_bytes;
  work.stash_bytes = 0;
  const double tables = transformer.tied_embeddings() ? 1 : 2;
  work.parameters = tables * TablePerGpu(part, spec);
  if (transformer.head_bias()) work.parameters += shape.vocabulary;
  work.output_bytes = LocalBytes(shape);
  return work;
}

LayerWork HeadWork(const Transformer& given, const WorkSpec& any_spec) {
  const WorkSpec spec = WithoutQuantization(any_spec);
  const Transformer transformer = WithoutShards(given, spec);
  const Shape shape = ShapeOf(transformer, spec);
  const double tensor = shape.element_bytes * shape.local_tokens * shape.hidden;
  LayerWork work;
  work.name = "head";
  work.role = LayerRole::kHead;
  if (!transformer.post_norm()) {
    work.forward.push_back(MemoryKernel(2 * tensor, KernelPart::kNorm));
    work.backward_input.push_back(MemoryKernel(3 * tensor, KernelPart::kNorm));
    work.stash_bytes += tensor;
    if (spec.fused_residual_norm) {
      work.stash_bytes += kStatisticsBytes * shape.local_tokens;
    }
  }
  if (transformer.mlm_head()) AddMlmTransform(spec, shape, &work);
  if (transformer.pooler()) {
    AddPooler(spec, shape, transformer.next_sentence_head(), &work);
  }
  if (HasLogits(transformer) && spec.vocabulary_shards == 1) {
    AddLogits(spec, shape, transformer.mlm_head() || transformer.head_bias(),
              &work);
  }
  if (spec.early_release) {
    // Targets and losses in the forward; the incoming and outgoing gradients of
    // the norm in the backward.
    work.forward_scratch_bytes =
        (kTargetBytes + kLogitBytes) * shape.local_tokens;
    work.backward_scratch_bytes = 2 * tensor;
    work.backward_kept_bytes = work.weight_gradient_stash_bytes + tensor;
  }
  const double padding =
      HasLogits(transformer) ? PaddingParameters(transformer, spec) : 0;
  work.shared_parameters = TiedParameters(transformer) / spec.tensor_parallel;
  if (work.shared_parameters > 0) work.shared_parameters += padding;
  work.parameters =
      work.shared_parameters +
      PerGpu(HeadParameters(transformer), transformer, spec.tensor_parallel) +
      (work.shared_parameters > 0 ? 0 : padding);
  if (transformer.num_mtp_modules() > 0) {
    // Every MTP module passes through the head again, with its weights.
    LayerWork again = work;
    again.parameters = 0;
    AppendLayer(again, static_cast<int>(transformer.num_mtp_modules()), &work);
  }
  return work;
}

}  // namespace weir::models
