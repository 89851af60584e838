// SPDX-License-Identifier: Apache-2.0
// What CUDA graphs launch (docs/cuda-graphs.md).
#ifndef WEIR_MODELS_CUDA_GRAPHS_H_
#define WEIR_MODELS_CUDA_GRAPHS_H_

#include <span>

#include "models/model.pb.h"
#include "models/training.pb.h"

namespace weir::models {

// Returns the name of a scope in Megatron Core: "moe_router".
const char* Name(CudaGraphScope scope);

// Returns the scope with the attention of a block, or what replaces it.
CudaGraphScope MixerGraphScope(const Transformer& transformer);

// Returns all scopes.
std::span<const CudaGraphScope> CudaGraphScopes();

}  // namespace weir::models

#endif  // WEIR_MODELS_CUDA_GRAPHS_H_
