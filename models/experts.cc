// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

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
  // The others compute with indices and probabilities of few bytes, and most
  // have no gradient.
  const int others = spec.router_kernels - kLeastRouterKernels;
  if (others > 0) {
    work->forward.push_back(MemoryKernel(0, KernelPart::kRouter, others));
  }
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

// The tokens of a GPU on their way to experts and back. Bytes are those of 16
// bits unless said otherwise.
struct Exchange {
  double sent = 0;      // a copy for each expert
  double gathered = 0;  // after the all-gather in the tensor-parallel group
  double local = 0;     // one copy
  double ratio = 1;     // bytes of the format of the dispatch over these
  // The exchange ends when the most loaded GPU has received its tokens: those
  // over the mean.
  double load = 1;
  OperandFormat format = OPERAND_16_BIT;
  // With DeepEP and HybridEP: how tokens are spread, and one copy for each GPU
  // reached.
  TokenRouting routing = {};
  double reached = 0;
  bool one_copy() const { return routing.tokens > 0; }
};

// Returns the bytes of the kernel that sorts the received tokens by expert, or
// sums the outputs of a token's experts. It reads every token once. The calls
// of HybridEP copy tokens between registered buffers and tensors of the
// framework; in training this kernel does that (Megatron-LM,
// docs/discussions/deepseek-v3-gb200-optimization, section 2.5), so that it
// only adds the further copies.
double ReceivedBytes(const Exchange& exchange) {
  return exchange.routing.hybrid
             ? std::max(exchange.sent - exchange.reached, 0.0)
             : exchange.sent + exchange.reached;
}

// Returns true if tokens cross GPUs.
bool IsDivided(const WorkSpec& spec) { return spec.expert_parallel > 1; }

// Returns the all-to-all that moves tokens in 16 bits, or in the format of the
// dispatch.
LayerCollective TokenCollective(const Exchange& exchange, bool combine) {
  const double ratio = combine ? 1 : exchange.ratio;
  LayerCollective one{.kind = CollectiveKind::kAllToAll,
                      .group = LayerCollective::Group::kExpert,
                      .bytes = ratio * exchange.sent * exchange.load};
  if (!exchange.one_copy()) return one;
  one.bytes = ratio * exchange.reached * exchange.load;
  one.routing = exchange.routing;
  one.routing.token_bytes *= ratio;
  one.routing.tokens *= exchange.load;
  one.routing.combine = combine;
  return one;
}

// Adds the cast of the local tokens to the format of the dispatch, in one
// direction.
void AddDispatchCast(const WorkSpec& spec, const Exchange& exchange,
                     std::vector<Kernel>* kernels) {
  if (exchange.format == OPERAND_16_BIT || !IsDivided(spec)) return;
  kernels->push_back(
      MemoryKernel((1 + exchange.ratio) * exchange.local, KernelPart::kCast));
}

// Adds the kernels that prepare an all-to-all.
void AddPreparation(const WorkSpec& spec, const Exchange& exchange,
                    LayerWork* work) {
  const int count = spec.exchange_preparation_kernels;
  if (count == 0 || !IsDivided(spec) || exchange.one_copy()) return;
  work->forward.push_back(MemoryKernel(0, KernelPart::kPermute, count));
}

// Adds the dispatch of tokens to the experts.
void AddDispatch(const WorkSpec& spec, const Exchange& exchange,
                 LayerWork* work) {
  const auto [sent, gathered, local, ratio, load, format, routing, reached] =
      exchange;
  AddDispatchCast(spec, exchange, &work->forward);
  if (IsDivided(spec)) {
    if (exchange.one_copy()) {
      // Its kernels read and write the tokens in their own order.
      AddCollective(TokenCollective(exchange, false),
                    &work->forward_collectives);
      const double sorted = ReceivedBytes(exchange);
      AddPasses(KernelPart::kPermute, ratio * sorted, 1, sorted, 1, work);
    } else {
      AddPasses(KernelPart::kPermute, ratio * (local + sent), 2, local + sent,
                1, work);
      AddCollective(TokenCollective(exchange, false),
                    &work->forward_collectives);
    }
    // Gradients of the tokens return and are summed.
    AddFrontCollective(TokenCollective(exchange, true),
                       &work->backward_collectives);
  } else {
    AddPasses(KernelPart::kPermute, local + sent, 2, local + sent, 1, work);
  }
  if (spec.gpus_per_expert() > 1) {
    AddExchange({.kind = CollectiveKind::kAllGather,
                 .group = ExpertTensorGroup(spec),
                 .bytes = gathered},
                CollectiveKind::kReduceScatter, work);
  }
  if (exchange.one_copy()) return;
  // Sorts the chunks of each sender into the order of the experts.
  AddPasses(KernelPart::kPermute, 2 * gathered, 1, 2 * gathered, 1, work);
}

// Adds the return of the tokens and their weighted sum.
void AddCombine(const WorkSpec& spec, const Exchange& exchange,
                LayerWork* work) {
  const auto [sent, gathered, local, ratio, load, format, routing, reached] =
      exchange;
  if (!exchange.one_copy()) {
    AddPasses(KernelPart::kPermute, 2 * gathered, 1, 2 * gathered, 1, work);
  }
  if (spec.gpus_per_expert() > 1) {
    AddExchange({.kind = CollectiveKind::kReduceScatter,
                 .group = ExpertTensorGroup(spec),
                 .bytes = gathered},
                CollectiveKind::kAllGather, work);
  }
  AddDispatchCast(spec, exchange, &work->backward_input);
  if (IsDivided(spec)) {
    AddCollective(TokenCollective(exchange, true), &work->forward_collectives);
    // Gradients of the sums are dispatched like tokens.
    AddFrontCollective(TokenCollective(exchange, false),
                       &work->backward_collectives);
  }
  // DeepEP and HybridEP sum the copies of a GPU before, and those of several
  // GPUs in their kernels.
  const double summed =
      exchange.one_copy() ? ReceivedBytes(exchange) : sent + local;
  if (spec.weights_in_experts) {
    AddPasses(KernelPart::kPermute, summed, 2, summed, 1, work);
    return;
  }
  // The backward also computes the gradients of the weights in that sum.
  AddPasses(KernelPart::kPermute, summed, 2, sent + summed, 2, work);
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
double SentBytes(const Transformer& transformer, const WorkSpec& spec,
                 const Shape& shape) {
  const double latent =
      shape.element_bytes * shape.local_tokens * ExpertHidden(transformer);
  double processed = 1;  // of the tokens that are routed to experts
  if (transformer.capacity_factor() > 0) {
    processed = transformer.unpadded_capacity() ? spec.accepted_tokens
                                                : transformer.capacity_factor();
  }
  return transformer.experts_per_token() * processed * latent;
}

// Returns the bytes of the tokens of this GPU's experts.
double GatheredBytes(const Transformer& transformer, const WorkSpec& spec,
                     const Shape& shape) {
  const double sent = SentBytes(transformer, spec, shape) * spec.expert_load;
  const bool folded = spec.gpus_per_expert() != spec.tensor_parallel;
  return spec.sequence_parallel || folded ? sent * spec.gpus_per_expert()
                                          : sent;
}

Exchange ExchangeOf(const Transformer& transformer, const WorkSpec& spec,
                    const Shape& shape) {
  Exchange exchange;
  const double hidden = ExpertHidden(transformer);
  exchange.sent = SentBytes(transformer, spec, shape);
  exchange.gathered = GatheredBytes(transformer, spec, shape);
  exchange.local = shape.element_bytes * shape.local_tokens * hidden;
  exchange.load = spec.expert_load;
  exchange.format = spec.quantization.dispatch;
  if (exchange.format != OPERAND_16_BIT) {
    exchange.ratio = OperandBytes(exchange.format) / shape.element_bytes;
  }
  if (!SendsOneCopyPerGpu(spec.token_dispatcher) || !IsDivided(spec)) {
    return exchange;
  }
  exchange.routing = {
      .tokens = shape.local_tokens,
      .token_bytes = shape.element_bytes * hidden,
      .experts = static_cast<double>(transformer.num_experts()),
      .experts_per_token = static_cast<double>(transformer.experts_per_token()),
      .multiprocessors = spec.dispatch_multiprocessors,
      .hybrid = spec.token_dispatcher == TOKENS_HYBRID_EP};
  const auto groups = static_cast<int>(transformer.num_router_groups());
  const auto chosen = static_cast<int>(transformer.router_groups_per_token());
  if (groups > 1 && chosen > 0) {
    exchange.routing.router_groups = groups;
    exchange.routing.groups_per_token = chosen;
  }
  exchange.reached =
      exchange.local * GroupsReached(exchange.routing, spec.expert_parallel);
  return exchange;
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
                  .clamped = transformer.activation() == CLAMPED_SILU,
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
  const double padded = transformer.unpadded_capacity()
                            ? 1
                            : std::max(transformer.capacity_factor(), 1.0);
  AddFeedForward(spec, inner,
                 {.batch = num_local,
                  .rows = GatheredBytes(transformer, spec, shape) /
                          (shape.element_bytes * inner.hidden) / num_local,
                  .width = transformer.expert_feed_forward_size() /
                           static_cast<double>(spec.gpus_per_expert()),
                  .bias = transformer.expert_bias(),
                  .needed = 1 / (padded * spec.expert_load),
                  .experts = true,
                  .clamped = transformer.activation() == CLAMPED_SILU,
                  .input_format = IsDivided(spec) ? spec.quantization.dispatch
                                                  : OPERAND_16_BIT},
                 work);
}

void AddExperts(const Transformer& transformer, const WorkSpec& spec,
                const Shape& shape, LayerWork* work) {
  const double e = shape.element_bytes;
  const double local = e * shape.local_tokens * shape.hidden;
  const double hidden = ExpertHidden(transformer);
  const Exchange exchange = ExchangeOf(transformer, spec, shape);
  GraphPart router(spec.InGraph(CUDA_GRAPH_MOE_ROUTER), work);
  AddRouter(transformer, spec, shape, work);
  router.End();
  GraphPart preprocess(spec.InGraph(CUDA_GRAPH_MOE_PREPROCESS), work);
  AddPreparation(spec, exchange, work);
  work->stash_bytes += local;  // input of the router and of the shared experts
  work->weight_gradient_stash_bytes += local;
  if (transformer.expert_hidden_size() > 0) {
    AddLatentProjection(transformer, spec, shape, shape.hidden, hidden, work);
  }
  preprocess.End();
  AddDispatch(spec, exchange, work);
  AddRoutedExperts(transformer, spec, shape, work);
  work->stash_bytes += exchange.gathered;  // the experts' input
  work->weight_gradient_stash_bytes += exchange.gathered;
  AddCombine(spec, exchange, work);
  if (transformer.expert_hidden_size() > 0) {
    AddLatentProjection(transformer, spec, shape, hidden, shape.hidden, work);
  }
  if (SharedExpertWidth(transformer) > 0) {
    GraphPart shared(spec.InGraph(CUDA_GRAPH_MOE_ROUTER), work);
    AddSharedExperts(transformer, spec, shape, work);
    shared.End();
  }
}

}  // namespace weir::models
