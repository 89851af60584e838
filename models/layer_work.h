// SPDX-License-Identifier: Apache-2.0
// The work of each layer of a model on one GPU, per microbatch: kernels with
// their FLOP and bytes, parameters, activations. Independent of the device;
// contains seconds only for measured models.
#ifndef WEIR_MODELS_LAYER_WORK_H_
#define WEIR_MODELS_LAYER_WORK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/collective_kind.h"
#include "models/model.pb.h"
#include "models/quantization.h"
#include "models/recompute.h"
#include "models/training.pb.h"

namespace weir::models {

// A context-parallel group of heads_parallel x ring GPUs. Each holds an equal
// part of every sequence. Around the attention, `heads_parallel` neighbors
// exchange tokens for heads, so that each has their tokens for its part of the
// heads; `ring` such groups then share the queries of these heads, each against
// all keys and values.
struct ContextSpec {
  ContextMethod method = CONTEXT_P2P;
  int heads_parallel = 1;
  int ring = 1;

  int size() const { return heads_parallel * ring; }
  bool operator==(const ContextSpec&) const = default;
};

// Low-rank adapters; rank 0: none, and all weights are trained.
struct LoraSpec {
  int rank = 0;
  uint32_t modules = 0;  // bit m: those of LoraModule m

  bool active() const { return rank > 0; }
  bool Adapts(LoraModule module) const {
    return active() && module != LORA_MODULE_UNSPECIFIED &&
           (modules >> module & 1) != 0;
  }
  bool operator==(const LoraSpec&) const = default;
};

// Documents of a sequence, which do not see each other
// (docs/packed-sequences.md).
struct PackedDocuments {
  // Expected keys of a token without a mask: E[l^2] / E[l] of document lengths
  // l. 0: each sequence is one document.
  double length = 0;
  // Attention of the busiest data-parallel rank and microbatch relative to the
  // mean of all.
  double imbalance = 1;

  bool operator==(const PackedDocuments&) const = default;
};

// GEMM, softmax in one kernel, selection in three.
inline constexpr int kLeastRouterKernels = 5;

// How a layer is executed. Fusions are properties of the framework; each saves
// the passes over memory that its name implies (Narayanan et al. 2021, section
// 5.9: from 113 to 135 and from 133 to 148 TFLOP/s on A100).
struct WorkSpec {
  int microbatch_size = 1;
  int sequence_length = 0;
  int tensor_parallel = 1;         // t
  bool sequence_parallel = false;  // Korthikanti et al. 2022, section 4.2.2
  bool flash_attention = false;    // no score matrix in memory
  bool dropout = false;            // masks are saved for the backward
  Recompute recompute;
  int bytes_per_element = 2;  // of activations and of weights in use
  int gradient_bytes = 2;     // per element of accumulated weight gradients
  int expert_parallel = 1;    // GPUs that share the experts of a layer
  // GPUs that share each expert; 0: t. The tokens that they receive are
  // gathered and their outputs summed.
  int expert_tensor_parallel = 0;
  // Tokens of this GPU's experts over the mean of all GPUs (expert_load.h).
  double expert_load = 1;
  // Mean tokens that experts accept over those that are routed to them, with a
  // capacity and without padding.
  double accepted_tokens = 1;
  ContextSpec context;  // GPUs that share the tokens of a sequence
  // Pipeline ranks that share the embedding and the head, each with a part of
  // the vocabulary (vocabulary_shards.h). 1: they are layers of their own.
  int vocabulary_shards = 1;
  PackedDocuments documents;
  Quantization quantization;  // of the linear layers of blocks
  LoraSpec lora;
  TokenDispatcher token_dispatcher = TOKENS_ALL_TO_ALL;
  int dispatch_multiprocessors = 0;  // that DeepEP or HybridEP occupies
  bool lists_matrices = false;       // LayerWork::matrices are needed
  // Overlaps the backward's collectives of input and input gradient with its
  // GEMMs (Megatron-LM since version 3; earlier versions wait for each).
  bool tensor_async = false;
  // With sequence parallelism, collectives also overlap with the GEMM that
  // needs or makes their tensor, piece by piece (Transformer Engine's
  // userbuffers, --tp-comm-overlap): an all-gather begins with the GPU's own
  // part, a reduce-scatter ends with the last of kReduceScatterPieces. The
  // GEMMs run in the same pieces.
  bool tensor_pieces = false;
  // Megatron-LM's scaled masked softmax: one 16-bit kernel. False: conversion
  // to fp32, scaling, mask, softmax, conversion back, a kernel each.
  bool fused_softmax = true;
  // Bias and activation in one kernel; for SwiGLU gate, activation and product.
  bool fused_bias_gelu = true;
  bool fused_bias_dropout_add = true;  // false: three kernels
  // The bias of an expert's second layer is added in the epilogue of its GEMM.
  // False: by kernels for each expert (Runtime.unfused_expert_bias).
  bool fused_expert_bias = true;
  // A GEMM and a cast for each expert, not one kernel for all.
  bool launches_each_expert = false;
  // Kernels of the router in a forward, its GEMM included, and those that
  // prepare an all-to-all of tokens (Runtime.router_kernels).
  int router_kernels = kLeastRouterKernels;
  int exchange_preparation_kernels = 0;
  uint32_t graph_scopes = 0;  // a bit for each CudaGraphScope
  bool fused_clamp = true;    // false: Runtime.unfused_clamp
  // The activation of an expert multiplies by the token's weight. False: the
  // sum of the experts' outputs does.
  bool weights_in_experts = false;
  // The GEMM of a weight gradient accumulates into the gradient buffer. False:
  // it writes a separate tensor, which another kernel adds.
  bool fused_gradient_accumulation = true;
  // The loss in two passes over the logits. False: one kernel per operation, as
  // in Megatron-LM's vocab_parallel_cross_entropy.
  bool fused_cross_entropy = false;
  // The vocabulary is padded to a multiple of this x t (Megatron-LM:
  // make_vocab_size_divisible_by, 128); 0: not padded.
  int vocabulary_multiple = 0;

  // Fusions of weir's own stage kernels (calibrate/execute/stage/). GELU, its
  // bias and its gradient run in the epilogues of the GEMMs around it, which
  // also write and read the pre-activation.
  bool gelu_epilogue = false;
  // The norm's kernel also adds the residual before it. The norm's backward
  // kernel adds the two gradients of the residual and computes the gradients of
  // gain and shift. The norm saves two fp32 statistics per row.
  bool fused_residual_norm = false;
  // The loss immediately overwrites the 16-bit logits with their gradient.
  bool in_place_cross_entropy = false;
  // Token and position embedding in one kernel; the gradient is scattered
  // directly into the accumulated one.
  bool fused_embedding = false;
  // Dropout only before residual additions, not of attention probabilities and
  // embeddings (attn_pdrop and embd_pdrop of 0).
  bool residual_dropout_only = false;
  bool int32_tokens = false;  // false: int64
  // Frees every tensor after the last kernel that reads it, and runs the
  // backward-input of all layers before their backward-weight. False: tensor
  // lifetimes of eager execution.
  bool early_release = false;

  // Returns true if a CUDA graph launches this part of a block.
  bool InGraph(CudaGraphScope scope) const {
    return (graph_scopes >> scope & 1) != 0;
  }
  int gpus_per_expert() const {
    return expert_tensor_parallel > 0 ? expert_tensor_parallel
                                      : tensor_parallel;
  }
};

// The purpose of a kernel, for explaining predictions part by part.
enum class KernelPart : uint8_t {
  kAttentionGemm,    // unfused scores and weighted sum
  kProjectionGemm,   // queries, keys, values; output of the attention
  kFeedForwardGemm,  // of dense layers and of experts
  kVocabularyGemm,   // logits, and the head's other dense layers
  kAttentionCore,    // fused attention
  kNorm,
  kElementwise,  // bias, activation, dropout, residual, rotation
  kSoftmax,      // of the scores, with its mask
  kLoss,
  kEmbedding,
  kOptimizer,
  kRouter,      // of a mixture of experts: GEMM, softmax, selection
  kPermute,     // tokens into the order of the experts and back
  kRecurrence,  // linear recurrences over the tokens: Mamba-2, delta nets
  kCast,        // to the operand formats of a recipe
};
inline constexpr int kNumKernelParts =
    static_cast<int>(KernelPart::kCast) + 1;  // the last one
const char* Name(KernelPart part);            // "attention_gemm"
// Returns the part with this name, or nullopt.
std::optional<KernelPart> KernelPartOf(absl::string_view name);

// A kernel. Kind kGemm: `batch` GEMMs of (m x k) by (k x n). Kind
// kAttention: fused attention over `batch` heads with m queries, n keys and
// head size k. Kind kMemory: a kernel that only moves bytes (m = n = k = 0).
struct Kernel {
  enum class Kind : uint8_t { kGemm, kAttention, kMemory };
  // kGrouped: GEMMs of experts, whose sizes are not equal in a real step.
  // kLatent: attention whose queries are wider than its values. kDecay, kDelta:
  // GEMMs of the chunks of recurrences with decays, and of the delta rule.
  // kConvolution: causal convolutions along the sequence.
  enum class Variant : uint8_t {
    kPlain,
    kGrouped,
    kLatent,
    kDecay,
    kDelta,
    kConvolution,
  };
  Kind kind = Kind::kMemory;
  Variant variant = Variant::kPlain;
  KernelPart part = KernelPart::kElementwise;
  // Number of GPU kernels that an eager framework launches for it.
  int launches = 1;
  bool in_graph = false;  // launched by a CUDA graph
  // The host calls a module with linear layers that launches this kernel first
  // (Runtime.module_seconds).
  bool begins_module = false;
  double batch = 0, m = 0, n = 0, k = 0;
  int num_gemms = 1;  // GEMMs in fused attention
  // Format of the operands of a GEMM or of fused attention. The result has 16
  // bits, or is accumulated in the gradient.
  OperandFormat format = OPERAND_16_BIT;
  // FLOP that the model requires of this GPU; a multiply-add counts as two.
  // Causal attention counts in full, as in the literature.
  double flops = 0;
  // FLOP that the kernel performs, if different; 0: `flops`. Fused causal
  // attention skips the masked half, and its backward recomputes the scores. A
  // GEMM that tensor parallelism repeats on every GPU counts 1/t in `flops`.
  double performed_flops = 0;
  double bytes = 0;  // device memory traffic, reads and writes
  // Largest power of two that divides the rows of all matrices of a GEMM, in
  // elements; 0: unknown. Vector loads need rows that are multiples of 16
  // bytes.
  double row_alignment = 0;

  bool operator==(const Kernel&) const = default;
};

// The tokens of one GPU that it exchanges with experts by DeepEP or HybridEP.
struct TokenRouting {
  double tokens = 0;       // 0: another kind of collective
  double token_bytes = 0;  // of one copy of a token
  double experts = 0, experts_per_token = 0;
  // Groups of experts, and those of a token's experts.
  int router_groups = 1, groups_per_token = 1;
  int multiprocessors = 0;
  bool combine = false;  // copies return and are summed
  bool hybrid = false;   // by HybridEP

  bool operator==(const TokenRouting&) const = default;
  auto operator<=>(const TokenRouting&) const = default;
};
// Returns true for programs that send one copy of a token to each GPU with one
// of its experts.
bool SendsOneCopyPerGpu(TokenDispatcher dispatcher);

// Returns the expected number of groups that have one of a token's experts, if
// the experts are divided among `num_groups` equal groups and each token
// chooses its experts at random.
double GroupsReached(double experts, double experts_per_token,
                     double num_groups);
// The same if a token chooses at random `groups_per_token` of `router_groups`
// equal groups of neighboring experts, and then its experts among theirs
// (DeepSeek-V3, section 2.1.2). Requires: 1 <= groups_per_token <=
// router_groups, which divides `experts`.
double GroupsReached(double experts, double experts_per_token,
                     double num_groups, int router_groups,
                     int groups_per_token);
double GroupsReached(const TokenRouting& routing, double num_groups);

// Consecutive collectives of equal size in which a GPU takes part.
struct LayerCollective {
  // kContext: the context-parallel group. An all-to-all runs over
  // ContextSpec::heads_parallel neighbors, everything else over the ring.
  // kExpert: the GPUs that share the experts. kExpertTensor: those that share
  // one expert, if they are not the tensor-parallel group.
  enum class Group : uint8_t { kTensor, kExpert, kContext, kExpertTensor };
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Group group = Group::kTensor;
  // Bytes of each collective: the whole tensor, which is the input and output
  // of an all-reduce, the output of an all-gather and the input of a
  // reduce-scatter (the size in nccl-tests). For an all-to-all: the bytes that
  // one GPU sends in total, including its own share. For a send and receive: of
  // the message that each GPU sends to the next one of the ring while it
  // computes attention with what it has received before.
  double bytes = 0;
  int count = 1;
  // The framework overlaps it with the GEMM of the weight gradient, or with
  // that of the input gradient or the forward. If neither, the GPU waits for
  // it.
  bool overlaps_weight_gradient = false;
  bool overlaps_input_gradient = false;
  bool of_recompute = false;  // repeated for recomputation
  TokenRouting routing = {};  // of an all-to-all of DeepEP or HybridEP

  bool operator==(const LayerCollective&) const = default;
};
const char* Name(LayerCollective::Group group);  // "tensor"
// Returns true for the messages of a ring.
inline bool IsRing(const LayerCollective& collective) {
  return collective.kind == CollectiveKind::kSendReceive;
}

// Equal matrices of a layer's weights, on one GPU.
struct WeightMatrix {
  double count = 0, rows = 0, columns = 0;
};

enum class LayerRole : uint8_t {
  kEmbedding,
  kBlock,
  kHead,
  kMeasured,
  kMtp,         // a module of multi-token prediction, without its logits
  kVocabulary,  // a part of the embedding and the head
};

struct LayerWork {
  std::string name;
  LayerRole role = LayerRole::kBlock;

  std::vector<Kernel> forward;
  std::vector<Kernel> backward_input;
  std::vector<Kernel> backward_weight;
  std::vector<Kernel> recompute;  // runs before the backward
  // Only for measured layers, scaled to the microbatch size.
  std::optional<double> forward_seconds;
  std::optional<double> backward_seconds;
  std::optional<double> recompute_seconds;  // 0 without recomputation

  // In execution order, with equal neighbors merged. The backward includes
  // those that recomputation repeats. Sequence parallelism all-gathers before
  // and reduce-scatters after the GEMMs (Korthikanti et al. 2022, section
  // 4.2.2); Megatron-LM then gathers the input again in the backward.
  std::vector<LayerCollective> forward_collectives;
  std::vector<LayerCollective> backward_collectives;

  double parameters = 0;  // on one GPU, including experts
  // The part of `parameters` that belongs to experts. Their gradients are
  // summed over the replicas of the expert, not over all data-parallel ranks.
  double expert_parameters = 0;
  // The part of `parameters` that GEMMs read in the format of the recipe.
  double quantized_parameters = 0;
  // The part of `parameters` that belongs to low-rank adapters, and to adapters
  // of experts. All others are frozen if there are adapters.
  double adapter_parameters = 0, expert_adapter_parameters = 0;
  // The weights of linear layers of blocks, with WorkSpec::lists_matrices.
  std::vector<WeightMatrix> matrices;
  // The part of `parameters` that is a copy of the embedding's (tied
  // embeddings, MTP modules). A stage with several such layers stores it once;
  // StageParameters accounts for that.
  double shared_parameters = 0;
  // Bytes sent to the next layer per GPU: the whole tensor, or 1/t of it with
  // sequence parallelism, where each GPU holds its own tokens.
  double output_bytes = 0;

  double stash_bytes = 0;              // saved from forward to end of backward
  double recompute_scratch_bytes = 0;  // extra during the backward
  // Peak bytes besides saved activations during a pass in eager execution:
  // gradients of activations, weight gradients not yet accumulated, unfused
  // logits.
  double forward_scratch_bytes = 0;
  double backward_scratch_bytes = 0;
  // Bytes saved from backward-input to backward-weight if these are separate.
  double weight_gradient_stash_bytes = 0;
  // Bytes that replace the saved activations while the backward of earlier
  // layers runs: 0, or with early release, where backward-weight is a separate
  // pass, weight_gradient_stash_bytes and for the head also the gradient that
  // it passes on.
  double backward_kept_bytes = 0;
};

// Checks the requirements of LayersOf on a spec. Reports all problems at once.
// Returns InvalidArgument with them.
absl::Status ValidateWorkSpec(absl::string_view label, const Model& model,
                              const WorkSpec& spec);

// Returns the layers in order: embedding, blocks, MTP modules, head; or the
// measured chain.
// Recomputation by stage is left out, see RecomputeStages.
// Requires: ValidateModel and ValidateWorkSpec return OK.
std::vector<LayerWork> LayersOf(const Model& model, const WorkSpec& spec);

// Returns the FLOP of one microbatch on the GPUs of a tensor-parallel group,
// without recomputation: the numerator of model FLOP utilization. Every
// context-parallel rank has an equal part of it. Attention counts in full,
// causal or not. Measured layers have none.
double ModelFlops(const std::vector<LayerWork>& layers, int tensor_parallel);
// Returns the forward's part of ModelFlops.
double ForwardFlops(const std::vector<LayerWork>& layers, int tensor_parallel);

// Returns the parameters that a stage of layers [first, last) stores on one
// GPU. A copy of the embedding counts only if the stage does not have the
// embedding.
double StageParameters(const std::vector<LayerWork>& layers, int first,
                       int last);
// Returns the part of StageParameters that belongs to experts.
double StageExpertParameters(const std::vector<LayerWork>& layers, int first,
                             int last);
// Returns the part of StageParameters that GEMMs read in the recipe's format.
double StageQuantizedParameters(const std::vector<LayerWork>& layers, int first,
                                int last);

}  // namespace weir::models

#endif  // WEIR_MODELS_LAYER_WORK_H_
