// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "models/cuda_graphs.h"
#include "models/kernels.h"
#include "models/mixers.h"
#include "models/recompute_work.h"
#include "models/shape.h"
#include "models/sublayers.h"
#include "models/transformer_layers.h"

namespace weir::models {
namespace {

// Adds the kernels that add a sublayer's output to the residual stream, with
// bias and dropout if any. The backward adds the gradients of the two branches.
void AddResidual(const WorkSpec& spec, const Shape& shape, bool bias,
                 bool before_norm, LayerWork* work) {
  const double e = shape.element_bytes;
  const double mask = shape.mask_bytes;
  const double elements = shape.local_tokens * shape.hidden;
  const bool dropout = mask > 0;
  double bytes = 3 * e + mask;
  int launches = 1;
  if (!spec.fused_bias_dropout_add) {
    bytes = 3 * e + (bias ? 2 * e : 0) + (dropout ? 2 * e + mask : 0);
    launches = 1 + bias + dropout;
  }
  const bool in_norm = spec.fused_residual_norm;
  AddPasses(KernelPart::kElementwise,
            in_norm && before_norm ? 0 : bytes * elements, launches,
            in_norm ? 0 : 3 * e * elements, 1, work);
  if (dropout) {
    AddPasses(KernelPart::kElementwise, 0, 0, (2 * e + mask) * elements, 1,
              work);
  }
  work->stash_bytes += mask * elements;
}

// Returns the peak bytes besides saved activations in a backward with eager
// execution: the gradients of the feed-forward layer at the beginning, or the
// gradients of the scores after the activations saved by the feed-forward layer
// have been freed.
double BackwardScratch(const WorkSpec& spec, const Shape& shape, double width,
                       double scores_bytes, double feed_forward_stash) {
  const double e = shape.element_bytes;
  const double inner = e * shape.tokens * width * shape.feed_forward_inputs;
  const double weights =
      spec.fused_gradient_accumulation ? 0 : e * width * shape.hidden;
  return 2 * LocalBytes(shape) +
         std::max(inner + weights, scores_bytes - feed_forward_stash);
}

// Peak of the bytes besides saved activations in a pass that frees tensors
// after their last use.
class PeakBytes {
 public:
  void Allocate(double bytes) { most_ = std::max(most_, now_ += bytes); }
  void Free(double bytes) { now_ -= bytes; }
  double most() const { return most_; }

 private:
  double now_ = 0, most_ = 0;
};

// Returns the peak bytes besides saved activations in a backward with early
// release. The gradient that the block receives counts for the next layer, the
// gradient that it passes on for this block.
double EarlyReleaseBackwardScratch(const WorkSpec& spec, const Shape& shape,
                                   const AttentionCore& core) {
  const double stream = LocalBytes(shape);
  const double inner = shape.element_bytes * shape.tokens * shape.feed_forward;
  const double activation = shape.feed_forward_inputs * inner;
  const double query = shape.element_bytes * shape.tokens * shape.query;
  const double packed =
      query + 2 * shape.element_bytes * shape.tokens * shape.key_value;
  const double statistics = kStatisticsBytes * shape.local_tokens;
  const double mask = shape.mask_bytes * shape.local_tokens * shape.hidden;
  PeakBytes peak;
  const auto dropout = [&] {
    if (!spec.dropout) return;
    peak.Allocate(stream);
    peak.Free(mask);
  };
  dropout();
  if (shape.feed_forward_inputs == 2) peak.Allocate(inner);
  peak.Allocate(activation);
  peak.Free(activation + (shape.feed_forward_inputs == 2 ? inner : 0));
  // The incoming and outgoing gradients of the second norm's backward.
  peak.Allocate(2 * stream);
  peak.Free(2 * stream + statistics + (spec.dropout ? stream : 0));
  dropout();
  peak.Allocate(query + packed + core.backward_scratch_bytes);
  peak.Free(query + packed + core.backward_scratch_bytes + core.stash_bytes);
  peak.Allocate(2 * stream);
  return peak.most();
}

// `input_bytes`: size of the block's input.
void SetRecompute(const BlockSpec& block, const WorkSpec& spec,
                  const Shape& shape, const AttentionCore& core,
                  double input_bytes, LayerWork* work) {
  switch (spec.recompute.mode()) {
    case RECOMPUTE_OPERATORS:
      return RecomputeOperators(spec, shape, work);
    case RECOMPUTE_FULL:
      // Otherwise it depends on the stage.
      if (!spec.recompute.by_stage()) RecomputeFully(input_bytes, work);
      return;
    case RECOMPUTE_SELECTIVE:
      return RecomputeModules(block, spec, shape, core, work);
    default:
      return;
  }
}

// Returns the number of hidden states per token that a block passes on: all
// residual streams, or with attention residuals the current one and, on
// average over the model, half of the sums of earlier blocks.
double ResidualWidth(const Transformer& transformer) {
  double width = std::max<double>(transformer.residual_streams(), 1);
  if (transformer.residual_block() > 0) {
    width += std::floor(transformer.num_layers() /
                        double(transformer.residual_block())) /
             2;
  }
  return width;
}

// Adds the mixture of residual streams around one half of a block: a weighted
// sum of all is its input; its result and a mixture of the streams are the new
// ones. Saves the streams. Nothing if there is only one stream.
void AddResidualMixture(const Transformer& transformer, const WorkSpec& spec,
                        const Shape& shape, LayerWork* work) {
  const double width = ResidualWidth(transformer);
  if (width == 1) return;
  const double tensor = LocalBytes(shape);
  if (const double n = transformer.residual_streams(); n > 1) {
    // The weights of inputs, outputs and mixtures, from all streams.
    AddRepeatedLinear(WithoutQuantization(spec), shape, n * shape.hidden,
                      2 * n + n * n, true, work);
  }
  // Attention residuals only read the sums of earlier blocks.
  const double written = transformer.residual_streams() > 1 ? width + 1 : 1;
  const double read =
      transformer.residual_streams() > 1 ? 2 * width + 1 : width;
  AddPasses(KernelPart::kElementwise, (read + written) * tensor, 2,
            2 * (read + written) * tensor, 4, work);
  work->stash_bytes += (width - 1) * tensor;
}

}  // namespace

// The saved bytes add up to Korthikanti et al. 2022, section 4.1.
LayerWork BlockWork(const BlockSpec& block, const WorkSpec& spec) {
  const Transformer& transformer = block.transformer;
  const Shape shape = ShapeOf(transformer, spec);
  const bool parallel =
      transformer.parallel_block() && block.mixer && block.feed_forward;
  LayerWork work;
  work.name = block.name;
  work.role = LayerRole::kBlock;
  AttentionCore core;
  if (block.mixer) {
    GraphPart graph(spec.InGraph(MixerGraphScope(transformer)), &work);
    AddResidualMixture(transformer, spec, shape, &work);
    AddNorm(spec, shape, /*after_residual=*/false, &work);
    core = AddMixer(transformer, spec, shape, &work);
    if (!parallel) {
      AddResidual(spec, shape, transformer.attention_output_bias(),
                  /*before_norm=*/block.feed_forward, &work);
    }
    graph.End();
  }
  const double mixer_stash = work.stash_bytes;
  double width = 0;
  if (block.feed_forward) {
    GraphPart graph(
        spec.InGraph(block.experts ? CUDA_GRAPH_MOE : CUDA_GRAPH_MLP), &work);
    GraphPart before_router(
        block.experts && spec.InGraph(CUDA_GRAPH_MOE_ROUTER), &work);
    AddResidualMixture(transformer, spec, shape, &work);
    if (!parallel) AddNorm(spec, shape, block.mixer, &work);
    before_router.End();
    if (block.experts) {
      AddExperts(transformer, spec, shape, &work);
    } else {
      AddDenseFeedForward(transformer, spec, shape, !parallel, &work);
    }
    if (parallel && spec.quantization.weight_gradient == OPERAND_16_BIT) {
      work.stash_bytes -= LocalBytes(shape);  // the same input
    }
    AddResidual(spec, shape, transformer.feed_forward_bias(),
                /*before_norm=*/false, &work);
    graph.End();
    width = block.experts ? transformer.expert_feed_forward_size() *
                                transformer.experts_per_token() *
                                spec.expert_load / shape.tensor_parallel
                          : shape.feed_forward;
  }
  for (uint32_t i = 0; i < transformer.extra_norms(); ++i) {
    AddNorm(spec, shape, /*after_residual=*/false, &work);
  }
  work.backward_scratch_bytes =
      BackwardScratch(spec, shape, width, core.backward_scratch_bytes,
                      work.stash_bytes - mixer_stash);
  work.forward_scratch_bytes = core.forward_scratch_bytes;
  if (spec.early_release) {
    // The last residual holds its two inputs.
    work.forward_scratch_bytes =
        std::max(work.forward_scratch_bytes, 2 * LocalBytes(shape));
    work.backward_scratch_bytes =
        EarlyReleaseBackwardScratch(spec, shape, core);
    work.backward_kept_bytes = work.weight_gradient_stash_bytes;
  }
  work.stash_bytes += core.stash_bytes;
  const double stream = LocalBytes(shape) * ResidualWidth(transformer);
  SetRecompute(block, spec, shape, core, stream, &work);
  work.output_bytes = stream;
  // The layers have added those of adapters.
  work.expert_parameters +=
      ExpertParameters(block) /
      (1.0 * spec.expert_parallel * spec.gpus_per_expert());
  work.parameters =
      PerGpu(BlockParameters(block), transformer, spec.tensor_parallel) +
      work.expert_parameters + work.adapter_parameters -
      work.expert_adapter_parameters;
  return work;
}

}  // namespace weir::models
