// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "models/collectives.h"
#include "models/kernels.h"
#include "models/sublayers.h"

namespace weir::models {
namespace {

constexpr double kProbabilityBytes = 4;  // the router computes in fp32

// Adds the router: GEMM, softmax, and selection of the best experts.
void AddRouter(const Transformer& transformer, const WorkSpec& spec,
               const Shape& shape, LayerWork* work) {
  const double experts = transformer.num_experts();
  const double scores = kProbabilityBytes * shape.local_tokens * experts;
  Linear linear{.part = KernelPart::kRouter,
                .rows = shape.local_tokens,
                .in = shape.hidden,
                .out = experts};
  // Without sequence parallelism every GPU of the group routes every token.
  linear.needed = shape.tokens / shape.tensor_parallel / shape.local_tokens;
  AddLinear(spec, linear, work);
  AddPasses(KernelPart::kRouter, 2 * scores, 1, 3 * scores, 1, work);
  AddPasses(KernelPart::kRouter, 2 * scores, 3, 2 * scores, 2, work);
  work->stash_bytes += scores;
  work->weight_gradient_stash_bytes += scores;
}

// Adds a collective of the forward and its counterpart in the backward, which
// runs in reverse order.
void AddExchange(const LayerCollective& forward, CollectiveKind backward,
                 LayerWork* work) {
  AddCollective(forward, &work->forward_collectives);
  LayerCollective back = forward;
  back.kind = backward;
  AddFrontCollective(back, &work->backward_collectives);
}

// Returns the GPUs that share one expert.
LayerCollective::Group ExpertTensorGroup(const WorkSpec& spec) {
  return spec.gpus_per_expert() == spec.tensor_parallel
             ? LayerCollective::Group::kTensor
             : LayerCollective::Group::kExpertTensor;
}

// Adds the dispatch of tokens to the experts. This GPU sends `sent` bytes and
// has `gathered` bytes after the all-gather among the GPUs of an expert. The
// exchange ends when the most loaded GPU has received its tokens.
void AddDispatch(const WorkSpec& spec, double sent, double gathered,
                 LayerWork* work) {
  AddPasses(KernelPart::kPermute, 2 * sent, 2, 2 * sent, 1, work);
  if (spec.expert_parallel > 1) {
    AddExchange({.kind = CollectiveKind::kAllToAll,
                 .group = LayerCollective::Group::kExpert,
                 .bytes = sent * spec.expert_load},
                CollectiveKind::kAllToAll, work);
  }
  if (spec.gpus_per_expert() > 1) {
    AddExchange({.kind = CollectiveKind::kAllGather,
                 .group = ExpertTensorGroup(spec),
                 .bytes = gathered},
                CollectiveKind::kReduceScatter, work);
  }
  // Sorts the chunks of each sender into the order of the experts.
  AddPasses(KernelPart::kPermute, 2 * gathered, 1, 2 * gathered, 1, work);
}

// Adds the return of the tokens and their weighted sum, from `sent` bytes to
// `local` bytes.
void AddCombine(const WorkSpec& spec, double sent, double gathered,
                double local, LayerWork* work) {
  AddPasses(KernelPart::kPermute, 2 * gathered, 1, 2 * gathered, 1, work);
  if (spec.gpus_per_expert() > 1) {
    AddExchange({.kind = CollectiveKind::kReduceScatter,
                 .group = ExpertTensorGroup(spec),
                 .bytes = gathered},
                CollectiveKind::kAllGather, work);
  }
  if (spec.expert_parallel > 1) {
    AddExchange({.kind = CollectiveKind::kAllToAll,
                 .group = LayerCollective::Group::kExpert,
                 .bytes = sent * spec.expert_load},
                CollectiveKind::kAllToAll, work);
  }
  // The backward also computes the gradients of the weights in that sum.
  AddPasses(KernelPart::kPermute, sent + local, 2, 2 * sent + local, 2, work);
  work->stash_bytes += sent;
}

// Adds the projection of the tokens to the narrower vectors that experts
// process, or back, on every GPU of the tensor-parallel group for its tokens.
void AddLatentProjection(const Transformer& transformer, const WorkSpec& spec,
                         const Shape& shape, double in, double out,
                         LayerWork* work) {
  const double token = shape.element_bytes * shape.local_tokens;
  AddLinear(
      spec,
      {.part = KernelPart::kFeedForwardGemm,
       .rows = shape.local_tokens,
       .in = in,
       .out = out,
       .needed = shape.tokens / shape.tensor_parallel / shape.local_tokens,
       .input = in < out ? Linear::Input::kOwn : Linear::Input::kShared},
      work);
  work->weight_gradient_stash_bytes += token * (in + out);
  const double latent = token * std::min(in, out);
  if (in < out) {
    work->stash_bytes += latent;  // the input; that of the other is saved
    return;
  }
  work->weight_gradient_stash_bytes -= token * in;  // also the router's input
  if (!transformer.expert_hidden_norm()) return;
  AddPasses(KernelPart::kNorm, 2 * latent, 1, 5 * latent, 3, work);
  work->stash_bytes += latent;
}

// Returns the bytes of the tokens that this GPU sends to experts.
double SentBytes(const Transformer& transformer, const Shape& shape) {
  const double latent =
      shape.element_bytes * shape.local_tokens * ExpertHidden(transformer);
  const double capacity = transformer.capacity_factor();
  const double copies =
      transformer.experts_per_token() * (capacity > 0 ? capacity : 1);
  return copies * latent;
}

// Returns the bytes of the tokens of this GPU's experts.
double GatheredBytes(const Transformer& transformer, const WorkSpec& spec,
                     const Shape& shape) {
  const double sent = SentBytes(transformer, shape) * spec.expert_load;
  const bool folded = spec.gpus_per_expert() != spec.tensor_parallel;
  return spec.sequence_parallel || folded ? sent * spec.gpus_per_expert()
                                          : sent;
}

}  // namespace

void AddSharedExperts(const Transformer& transformer, const WorkSpec& spec,
                      const Shape& shape, LayerWork* work) {
  const double width = SharedExpertWidth(transformer);
  const double whole = shape.element_bytes * shape.tokens * shape.hidden;
  const double local = whole / shape.tokens * shape.local_tokens;
  AddColumnInput(spec, whole, work);
  AddFeedForward(spec, shape,
                 {.rows = shape.tokens,
                  .width = width / shape.tensor_parallel,
                  .input = Linear::Input::kShared,
                  .local_rows = shape.local_tokens},
                 work);
  AddRowOutput(spec, whole, work);
  AddPasses(KernelPart::kElementwise, 3 * local, 1, 3 * local, 1, work);
  work->weight_gradient_stash_bytes += local - whole;
}

void AddRoutedExperts(const Transformer& transformer, const WorkSpec& spec,
                      const Shape& shape, LayerWork* work) {
  Shape inner = shape;
  inner.hidden = ExpertHidden(transformer);
  const double num_local =
      double(transformer.num_experts()) / spec.expert_parallel;
  AddFeedForward(
      spec, inner,
      {.batch = num_local,
       .rows = GatheredBytes(transformer, spec, shape) /
               (shape.element_bytes * inner.hidden) / num_local,
       .width = transformer.expert_feed_forward_size() /
                static_cast<double>(spec.gpus_per_expert()),
       .bias = transformer.expert_bias(),
       .needed = 1 / (std::max<double>(transformer.capacity_factor(), 1.0) *
                      spec.expert_load),
       .experts = true},
      work);
}

void AddExperts(const Transformer& transformer, const WorkSpec& spec,
                const Shape& shape, LayerWork* work) {
  const double e = shape.element_bytes;
  const double local = e * shape.local_tokens * shape.hidden;
  const double hidden = ExpertHidden(transformer);
  const double latent = e * shape.local_tokens * hidden;
  const double sent = SentBytes(transformer, shape);
  const double gathered = GatheredBytes(transformer, spec, shape);
  AddRouter(transformer, spec, shape, work);
  work->stash_bytes += local;  // input of the router and of the shared experts
  work->weight_gradient_stash_bytes += local;
  if (transformer.expert_hidden_size() > 0) {
    AddLatentProjection(transformer, spec, shape, shape.hidden, hidden, work);
  }
  AddDispatch(spec, sent, gathered, work);
  AddRoutedExperts(transformer, spec, shape, work);
  work->stash_bytes += gathered;  // the experts' input
  work->weight_gradient_stash_bytes += gathered;
  AddCombine(spec, sent, gathered, latent, work);
  if (transformer.expert_hidden_size() > 0) {
    AddLatentProjection(transformer, spec, shape, hidden, shape.hidden, work);
  }
  if (SharedExpertWidth(transformer) > 0) {
    AddSharedExperts(transformer, spec, shape, work);
  }
}

}  // namespace weir::models
