// SPDX-License-Identifier: Apache-2.0
// Names as in megatron/training/arguments.py (NVIDIA/Megatron-LM, November
// 2025), and their names in older versions.
#include "plan/frameworks/megatron_unsupported.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"

namespace weir::plan {
namespace {

constexpr absl::string_view kUnsupported[] = {
    // Sources of further configuration.
    "use-checkpoint-args",
    "use-mp-args-from-checkpoint-args",
    "yaml-cfg",
    // Layout.
    "account-for-embedding-in-pipeline-split",
    "account-for-loss-in-pipeline-split",
    "decoder-first-pipeline-num-layers",
    "decoder-last-pipeline-num-layers",
    "decoder-num-layers",
    "decoder-seq-length",
    "decoder-tensor-model-parallel-size",
    "encoder-num-layers",
    "encoder-pipeline-model-parallel-size",
    "encoder-seq-length",
    "encoder-tensor-model-parallel-size",
    "hierarchical-context-parallel-sizes",
    "microbatch-group-size-per-virtual-pipeline-stage",
    "model-parallel-size",
    "num-distributed-optimizer-instances",
    "pipeline-model-parallel-split-rank",
    "standalone-embedding-stage",
    // Model.
    "attention-output-gate",
    "experimental-attention-variant",
    "heterogeneous-layers-config-encoded-json",
    "heterogeneous-layers-config-path",
    "is-hybrid-model",
    "moe-latent-size",
    "mtp-num-layers",
    "multi-latent-attention",
    "no-position-embedding",
    "quick-geglu",
    "retro-add-retriever",
    "spec",
    "squared-relu",
    "use-legacy-models",
    "window-attn-skip-freq",
    // Batch.
    "batch-size",
    "perform-rl-step",
    "rampup-batch-size",
    // Precision.
    "exp-avg-dtype",
    "exp-avg-sq-dtype",
    "first-last-layers-bf16",
    "fp16-lm-cross-entropy",
    "fp32-residual-connection",
    "fp4-format",
    "fp4-param-gather",
    "fp8-e4m3",
    "fp8-format",
    "fp8-hybrid",
    "fp8-param-gather",
    "main-grads-dtype",
    "main-params-dtype",
    "use-precision-aware-optimizer",
    // Memory.
    "checkpoint-activations",
    "checkpoint-num-layers",
    "cpu-offloading-num-layers",
    "distribute-saved-activations",
    "fine-grained-activation-offloading",
    "moe-layer-recompute",
    "optimizer-cpu-offload",
    // Communication and its overlap.
    "data-parallel-sharding-strategy",
    "ddp-num-buckets",
    "delay-wgrad-compute",
    "defer-embedding-wgrad-compute",
    "moe-enable-deepep",
    "moe-shared-expert-overlap",
    "no-async-tensor-model-parallel-allreduce",
    "no-scatter-gather-tensors-in-pipeline",
    "overlap-moe-expert-parallel-comm",
    "overlap-p2p-communication-warmup-flush",
    "overlap-param-gather",
    "overlap-param-gather-with-optimizer-step",
    "torch-fsdp2-no-reshard-after-forward",
    "tp-comm-overlap",
    "use-custom-fsdp",
    "use-megatron-fsdp",
    "use-sharp",
    // Launches.
    "enable-cuda-graph",
    "external-cuda-graph",
};

}  // namespace

bool IsUnsupportedMegatronArgument(absl::string_view name) {
  return absl::StartsWith(name, "hybrid-") ||
         absl::StartsWith(name, "mamba-") ||
         absl::StartsWith(name, "linear-") ||
         std::find(std::begin(kUnsupported), std::end(kUnsupported), name) !=
             std::end(kUnsupported);
}

}  // namespace weir::plan
