// SPDX-License-Identifier: Apache-2.0
#include "models/cuda_graphs.h"

namespace weir::models {
namespace {

constexpr CudaGraphScope kScopes[] = {CUDA_GRAPH_ATTN,
                                      CUDA_GRAPH_MLP,
                                      CUDA_GRAPH_MOE,
                                      CUDA_GRAPH_MOE_ROUTER,
                                      CUDA_GRAPH_MOE_PREPROCESS,
                                      CUDA_GRAPH_MAMBA,
                                      CUDA_GRAPH_FULL_ITERATION};

}  // namespace

const char* Name(CudaGraphScope scope) {
  switch (scope) {
    case CUDA_GRAPH_ATTN:
      return "attn";
    case CUDA_GRAPH_MLP:
      return "mlp";
    case CUDA_GRAPH_MOE:
      return "moe";
    case CUDA_GRAPH_MOE_ROUTER:
      return "moe_router";
    case CUDA_GRAPH_MOE_PREPROCESS:
      return "moe_preprocess";
    case CUDA_GRAPH_MAMBA:
      return "mamba";
    case CUDA_GRAPH_FULL_ITERATION:
      return "full_iteration";
    default:
      return "unknown";
  }
}

CudaGraphScope MixerGraphScope(const Transformer& transformer) {
  return transformer.has_mamba2() ? CUDA_GRAPH_MAMBA : CUDA_GRAPH_ATTN;
}

std::span<const CudaGraphScope> CudaGraphScopes() { return kScopes; }

}  // namespace weir::models
