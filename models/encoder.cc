// SPDX-License-Identifier: Apache-2.0
// Encoders of images: patches, blocks without a causal mask, and projectors
// into the hidden size of the language model (Dosovitskiy et al. 2021; Liu et
// al. 2023).
#include <algorithm>

#include "models/collectives.h"
#include "models/kernels.h"
#include "models/shape.h"
#include "models/transformer_layers.h"

namespace weir::models {
namespace {

struct EncoderSizes {
  double hidden;      // of the encoder
  double joined;      // input width of a projector
  double projector;   // width between its layers; 0: one layer
  double projectors;  // number
};

EncoderSizes EncoderSizesOf(const Encoder& encoder) {
  const double hidden = encoder.blocks().hidden_size();
  const double patches =
      encoder.pooling() ? 1 : std::max(encoder.patches_per_token(), 1u);
  return {.hidden = hidden,
          .joined = hidden * patches,
          .projector = double(encoder.projector_size()),
          .projectors = double(std::max(encoder.num_projectors(), 1u))};
}

WorkSpec EncoderSpecOf(const Encoder& encoder, const WorkSpec& spec) {
  WorkSpec images = spec;
  images.microbatch_size =
      spec.microbatch_size *
      static_cast<int>(std::max(encoder.images_per_sequence(), 1u));
  images.sequence_length = static_cast<int>(encoder.patches_per_image());
  images.expert_parallel = 1;
  images.documents = {};
  return images;
}

// Returns the linear layer from pixels to patches. Pixels have no gradient.
LayerWork Patches(const Encoder& encoder, const WorkSpec& spec) {
  const Shape shape = ShapeOf(encoder.blocks(), spec);
  LayerWork work;
  AddLinear(
      spec,
      {.rows = shape.local_tokens,
       .in = double(encoder.patch_elements()),
       .out = shape.hidden,
       .bias = encoder.patch_bias(),
       .needed = shape.tokens / shape.tensor_parallel / shape.local_tokens},
      &work);
  work.backward_input.clear();
  const double local = LocalBytes(shape);
  if (encoder.blocks().num_positions() > 0) {
    AddPasses(KernelPart::kEmbedding, 3 * local, 1, 0, 0, &work);
    work.backward_weight.push_back(MemoryKernel(local, KernelPart::kEmbedding));
  }
  if (encoder.final_norm()) {
    AddPasses(KernelPart::kNorm, 2 * local, 1, 5 * local, 3, &work);
    work.stash_bytes += local;
  }
  work.stash_bytes +=
      shape.element_bytes * shape.local_tokens * encoder.patch_elements();
  work.weight_gradient_stash_bytes = work.stash_bytes + local;
  return work;
}

// Returns a projector: norm, one or two linear layers, split over the
// tensor-parallel group, and the insertion of its tokens into the sequence.
LayerWork Projector(const Transformer& transformer, const WorkSpec& spec) {
  const Encoder& encoder = transformer.encoder();
  const Shape shape = ShapeOf(encoder.blocks(), spec);
  const EncoderSizes sizes = EncoderSizesOf(encoder);
  const double e = shape.element_bytes;
  const double t = shape.tensor_parallel;
  const double hidden = transformer.hidden_size();
  const double tokens =
      shape.tokens / std::max(encoder.patches_per_token(), 1u);
  const double in = e * tokens * sizes.joined;
  const double out = e * tokens * hidden;
  const double local_share = shape.local_tokens / shape.tokens;
  LayerWork work;
  AddPasses(KernelPart::kNorm, 2 * in * local_share, 1, 5 * in * local_share, 3,
            &work);
  AddColumnInput(spec, in, &work);
  Linear linear{.rows = tokens,
                .in = sizes.joined,
                .out = (sizes.projector > 0 ? sizes.projector : hidden) / t,
                .bias = encoder.projector_bias()};
  AddLinear(spec, linear, &work);
  work.stash_bytes += 2 * in * local_share;  // input and output of the norm
  work.weight_gradient_stash_bytes += in + out;
  if (sizes.projector > 0) {
    const double inner = e * tokens * sizes.projector / t;
    AddPasses(KernelPart::kElementwise, 2 * inner, 1, 3 * inner, 1, &work);
    linear.in = sizes.projector / t;
    linear.out = hidden;
    AddLinear(spec, linear, &work);
    work.stash_bytes += 2 * inner;  // input and output of the activation
    work.weight_gradient_stash_bytes += 2 * inner;
  }
  AddRowOutput(spec, out, &work);
  AddPasses(KernelPart::kEmbedding, 2 * out * local_share, 1,
            2 * out * local_share, 1, &work);
  return work;
}

}  // namespace

ParameterCount EncoderParameters(const Transformer& transformer) {
  const Encoder& encoder = transformer.encoder();
  const Transformer& blocks = encoder.blocks();
  const EncoderSizes sizes = EncoderSizesOf(encoder);
  const double hidden = transformer.hidden_size();
  ParameterCount count;
  const BlockList list = BlocksOf(blocks);
  for (const int kind : list.kind_of)
    count += BlockParameters(list.kinds[kind]);
  count.replicated +=
      sizes.hidden * (double(encoder.patch_elements()) + encoder.patch_bias() +
                      blocks.num_positions());
  if (encoder.final_norm()) count.replicated += NormParameters(blocks);
  const double bias = encoder.projector_bias() ? 1 : 0;
  const double first = sizes.projector > 0 ? sizes.projector : hidden;
  double projector = (sizes.joined + bias) * first;
  if (sizes.projector > 0) projector += (first + bias) * hidden;
  count.split += sizes.projectors * projector;
  // The norm covers a patch, or the joined vector.
  count.replicated += sizes.projectors * NormParameters(blocks);
  return count;
}

void AddEncoder(const Transformer& transformer, const WorkSpec& spec,
                LayerWork* embedding) {
  if (!transformer.has_encoder()) return;
  const Encoder& encoder = transformer.encoder();
  WorkSpec images = EncoderSpecOf(encoder, spec);
  images.graph_scopes = 0;  // graphs launch the text model
  AppendLayer(Patches(encoder, images), 1, embedding);
  const BlockList list = BlocksOf(encoder.blocks());
  for (const int kind : list.kind_of) {
    AppendLayer(BlockWork(list.kinds[kind], images), 1, embedding);
  }
  AppendLayer(Projector(transformer, images),
              static_cast<int>(std::max(encoder.num_projectors(), 1u)),
              embedding);
  // AppendLayer has added the parameters of the blocks.
  double parameters = PerGpu(EncoderParameters(transformer), encoder.blocks(),
                             spec.tensor_parallel);
  for (const int kind : list.kind_of) {
    parameters -= PerGpu(BlockParameters(list.kinds[kind]), encoder.blocks(),
                         spec.tensor_parallel);
  }
  embedding->parameters += parameters;
}

}  // namespace weir::models
