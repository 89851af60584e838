// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cuda_graphs.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/block_spec.h"
#include "models/cuda_graphs.h"

namespace weir::scenarios {
namespace {

bool HasScope(const Training& training, CudaGraphScope scope) {
  return std::ranges::find(training.cuda_graph_scope(), scope) !=
         training.cuda_graph_scope().end();
}

// Returns what a model has to have for a scope, or "".
std::string LackingFor(CudaGraphScope scope, const Transformer& transformer) {
  bool experts = false, dense = false, mamba = false, attention = false;
  const models::BlockList blocks = models::BlocksOf(transformer);
  for (const models::BlockSpec& block : blocks.kinds) {
    experts |= block.experts;
    dense |= block.feed_forward && !block.experts;
    mamba |= block.mixer && block.transformer.has_mamba2();
    attention |= block.mixer && !block.transformer.has_mamba2();
  }
  switch (scope) {
    case CUDA_GRAPH_ATTN:
      return attention ? "" : "attention";
    case CUDA_GRAPH_MLP:
      return dense ? "" : "dense feed-forward layers";
    case CUDA_GRAPH_MOE:
    case CUDA_GRAPH_MOE_ROUTER:
    case CUDA_GRAPH_MOE_PREPROCESS:
      return experts ? "" : "experts";
    case CUDA_GRAPH_MAMBA:
      return mamba ? "" : "Mamba-2 layers";
    default:
      return "";
  }
}

}  // namespace

bool LaunchesWholeSteps(const Training& training) {
  return HasScope(training, CUDA_GRAPH_FULL_ITERATION);
}

void CheckCudaGraphs(Problems& problems, const Training& training) {
  for (int i = 0; i < training.cuda_graph_scope_size(); ++i) {
    const int scope = training.cuda_graph_scope(i);
    if (CudaGraphScope_IsValid(scope) && scope != 0) continue;
    std::vector<std::string> names;
    for (const CudaGraphScope known : models::CudaGraphScopes()) {
      names.push_back(CudaGraphScope_Name(known));
    }
    problems.Add(absl::StrCat("training.cuda_graph_scope[", i, "]"),
                 absl::StrCat("is ", scope, ", expected one of ",
                              absl::StrJoin(names, ", ")));
  }
  if (LaunchesWholeSteps(training) && training.cuda_graph_scope_size() > 1) {
    problems.Add("training.cuda_graph_scope",
                 "has full_iteration and other parts, expected it alone");
  }
  if (HasScope(training, CUDA_GRAPH_MOE_PREPROCESS) &&
      !HasScope(training, CUDA_GRAPH_MOE_ROUTER)) {
    problems.Add("training.cuda_graph_scope",
                 "has moe_preprocess, which requires moe_router, as in "
                 "Megatron-LM");
  }
  if (HasScope(training, CUDA_GRAPH_MOE) &&
      HasScope(training, CUDA_GRAPH_MOE_ROUTER)) {
    problems.Add("training.cuda_graph_scope",
                 "has moe and moe_router, expected one of them");
  }
}

void CheckCudaGraphs(Problems& problems, const Training& training,
                     const Transformer& transformer) {
  for (const int scope : training.cuda_graph_scope()) {
    const auto known = static_cast<CudaGraphScope>(scope);
    const std::string lacking = LackingFor(known, transformer);
    if (lacking.empty()) continue;
    problems.Add("training.cuda_graph_scope",
                 absl::StrCat("has ", models::Name(known),
                              ", expected others: the model has no ", lacking));
  }
  if (training.moe_router_fusion() &&
      !LackingFor(CUDA_GRAPH_MOE_ROUTER, transformer).empty()) {
    problems.Add("training.moe_router_fusion",
                 "is true, expected a model with experts");
  }
}

}  // namespace weir::scenarios
