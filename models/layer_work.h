// SPDX-License-Identifier: Apache-2.0
// What each layer of a model asks of one GPU, per microbatch: kernels with
// their FLOP and bytes, parameters, activations. No device and no seconds,
// except where the model itself was measured.
#ifndef WEIR_MODELS_LAYER_WORK_H_
#define WEIR_MODELS_LAYER_WORK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/model.pb.h"

namespace weir {

enum class Recompute { kNone, kSelective, kFull };

// How a layer is run. What a framework fuses is a fact about it: each fusion
// saves the passes over memory that its name says (Narayanan et al. 2021,
// section 5.9: 113 to 135 and 133 to 148 TFLOP/s on A100).
struct WorkSpec {
  int microbatch_size = 1;
  int sequence_length = 0;
  int tensor_parallel = 1;         // t
  bool sequence_parallel = false;  // Korthikanti et al. 2022, section 4.2.2
  bool flash_attention = false;    // fused attention: no score matrix in memory
  bool dropout = false;            // masks are kept for the backward
  Recompute recompute = Recompute::kNone;
  int bytes_per_element = 2;  // of activations and of weights in use
  int gradient_bytes = 2;     // per element, of accumulated weight gradients
  int expert_parallel = 1;    // GPUs that share out the experts of a layer
  // The backward's collectives of input and of input gradient run beside its
  // products (Megatron-LM from version 3; before it waited for each).
  bool tensor_async = false;
  // Megatron-LM's scaled masked softmax: one kernel in the 16-bit format. Else
  // widened to fp32, scaled, masked, softmax, narrowed, a kernel each.
  bool fused_softmax = true;
  // Bias and activation in one kernel; gate, activation and product of SwiGLU.
  bool fused_bias_gelu = true;
  bool fused_bias_dropout_add = true;  // else three kernels
  // The product of a weight gradient adds to what is there; else it leaves a
  // tensor of its own, added by one more kernel.
  bool fused_gradient_accumulation = true;
  // The loss in two passes over the logits; else operation by operation, as
  // Megatron-LM's vocab_parallel_cross_entropy.
  bool fused_cross_entropy = false;
  // The vocabulary is padded to a multiple of this x t (Megatron-LM:
  // make_vocab_size_divisible_by, 128); 0: not padded.
  int vocabulary_multiple = 0;

  // Further fusions, of our own stage kernels (calibrate/stage/).
  // GELU, its bias and its gradient in the epilogues of the products around
  // it, which write and read the pre-activation on the way.
  bool gelu_epilogue = false;
  // The residual before a norm is added in the norm's kernel, the gradients
  // that meet there in that of its backward, with those of gain and shift. The
  // norm keeps two fp32 statistics a row.
  bool fused_residual_norm = false;
  // The loss makes the gradient in the place of the 16-bit logits, at once.
  bool in_place_cross_entropy = false;
  // Token and position in one kernel; the gradient is scattered straight into
  // the accumulated one.
  bool fused_embedding = false;
  // Dropout where sublayers meet the residual, none of attention probabilities
  // and embeddings (attn_pdrop and embd_pdrop of 0).
  bool residual_dropout_only = false;
  bool int32_tokens = false;  // else int64
  // Every tensor goes back behind the last kernel that reads it, and a backward
  // is backward-input of all layers, then backward-weight. Else as eager
  // execution holds them.
  bool early_release = false;
};

// What a kernel is for, so that a prediction can be explained part by part.
enum class KernelPart : uint8_t {
  kAttentionProduct,    // scores and weighted sum, where not fused
  kProjectionProduct,   // queries, keys, values; output of the attention
  kFeedForwardProduct,  // of dense layers and of experts
  kVocabularyProduct,   // logits, and the other dense layers of the head
  kAttentionCore,       // fused attention
  kNorm,
  kElementwise,  // bias, activation, dropout, residual, rotation
  kSoftmax,      // of the scores, with its mask
  kLoss,
  kEmbedding,
  kOptimizer,
  kRouter,   // of a mixture of experts: its product, softmax and choice
  kPermute,  // tokens into the order of the experts and back
};
const char* Name(KernelPart part);  // "attention_product"

// One kernel. A product multiplies `batch` times (m x k) by (k x n); attention
// is fused over `batch` heads with m queries, n keys and head size k; any other
// kernel only moves bytes (m = n = k = 0).
struct Kernel {
  enum class Kind : uint8_t { kProduct, kAttention, kMemory };
  Kind kind = Kind::kMemory;
  KernelPart part = KernelPart::kElementwise;
  // GPU kernels that an eager framework launches for it.
  int launches = 1;
  double batch = 0, m = 0, n = 0, k = 0;
  int products = 1;  // that fused attention makes of its performed_flops
  // What the model needs of this GPU, multiply and add as two. Causal attention
  // counts in full, as the literature does.
  double flops = 0;
  // What the kernel really computes, where it differs; 0: flops. Fused causal
  // attention skips the masked half, its backward computes the scores again; a
  // product that tensor parallelism repeats on every GPU counts 1/t in `flops`.
  double performed_flops = 0;
  double bytes = 0;  // read and written in device memory

  bool operator==(const Kernel&) const = default;
};

// Collectives of equal size that one GPU takes part in, one after the other.
struct LayerCollective {
  enum class Kind : uint8_t {
    kAllReduce,
    kAllGather,
    kReduceScatter,
    kAllToAll
  };
  enum class Group : uint8_t { kTensor, kExpert };
  Kind kind = Kind::kAllReduce;
  Group group = Group::kTensor;
  // Of each: the whole tensor, which is what an all-reduce takes and leaves, an
  // all-gather leaves and a reduce-scatter takes (nccl-tests' size). For an
  // all-to-all what one GPU sends in all, its own share included.
  double bytes = 0;
  int count = 1;
  // The framework runs it beside the product of the weight gradient, or of the
  // input gradient; else the GPU waits for it.
  bool overlaps_weight_gradient = false;
  bool overlaps_input_gradient = false;
  bool of_recompute = false;  // repeats one of the forward before the backward

  bool operator==(const LayerCollective&) const = default;
};
const char* Name(LayerCollective::Kind kind);    // "all_reduce"
const char* Name(LayerCollective::Group group);  // "tensor"

enum class LayerRole : uint8_t { kEmbedding, kBlock, kHead, kMeasured };

struct LayerWork {
  std::string name;
  LayerRole role = LayerRole::kBlock;

  std::vector<Kernel> forward;
  std::vector<Kernel> backward_input;
  std::vector<Kernel> backward_weight;
  std::vector<Kernel> recompute;  // run again before the backward
  // Set for measured layers only, scaled to the microbatch size.
  std::optional<double> forward_seconds;
  std::optional<double> backward_seconds;
  std::optional<double> recompute_seconds;  // 0 without recomputation

  // In order, equal neighbours merged. The backward includes those that
  // recomputation repeats. Sequence parallelism all-gathers before and
  // reduce-scatters behind the products (Korthikanti et al. 2022, section
  // 4.2.2); Megatron-LM then gathers the input once more in the backward.
  std::vector<LayerCollective> forward_collectives;
  std::vector<LayerCollective> backward_collectives;

  double parameters = 0;  // on one GPU, experts included
  // The part of `parameters` that belongs to experts: its gradients add up over
  // the replicas of the expert, not over all data-parallel ranks.
  double expert_parameters = 0;
  // The part of `parameters` that copies the embedding's (tied embeddings): a
  // stage that holds both layers has it once. StageParameters adds up right.
  double shared_parameters = 0;
  // Sent to the next layer, per GPU: the whole tensor, or 1/t of it under
  // sequence parallelism, where each GPU holds its own tokens.
  double output_bytes = 0;

  double stash_bytes = 0;  // kept from forward until the backward ends
  double recompute_scratch_bytes = 0;  // extra while its backward runs
  // What eager execution holds beside the stash at the worst moment of a pass:
  // gradients of activations, weight gradients not yet added, unfused logits.
  double forward_scratch_bytes = 0;
  double backward_scratch_bytes = 0;
  // Kept from backward-input until backward-weight when the two are apart.
  double weight_gradient_stash_bytes = 0;
  // What is there instead of the stash while earlier layers' backward runs:
  // nothing, or with early release, whose backward-weight is a pass of its own,
  // weight_gradient_stash_bytes and the gradient that the head hands on.
  double backward_kept_bytes = 0;
};

// Everything that LayersOf requires of a spec, all problems at once.
absl::Status ValidateWorkSpec(absl::string_view label, const Model& model,
                              const WorkSpec& spec);

// The layers in order: embedding, blocks, head; or the measured chain.
// REQUIRES: ValidateModel and ValidateWorkSpec are OK.
std::vector<LayerWork> LayersOf(const Model& model, const WorkSpec& spec);

// FLOP that one microbatch costs without any recomputation, all GPUs together:
// the numerator of model FLOP utilization. Attention counts in full, causal or
// not. Measured layers have none.
double ModelFlops(const std::vector<LayerWork>& layers, int tensor_parallel);
// The forward's part of them.
double ForwardFlops(const std::vector<LayerWork>& layers, int tensor_parallel);

// Parameters that a stage of layers [first, last) keeps on one GPU: a copy of
// the embedding counts only where the embedding itself is elsewhere.
double StageParameters(const std::vector<LayerWork>& layers, int first,
                       int last);
// The part of them that belongs to experts.
double StageExpertParameters(const std::vector<LayerWork>& layers, int first,
                             int last);

}  // namespace weir

#endif  // WEIR_MODELS_LAYER_WORK_H_
