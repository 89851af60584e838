// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cuda_graphs.h"

#include <algorithm>
#include <set>
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

bool FusesRouter(const Training& training, const Runtime& runtime) {
  return training.has_moe_router_fusion() ? training.moe_router_fusion()
                                          : runtime.fuses_router();
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
  const std::set<int> scopes(training.cuda_graph_scope().begin(),
                             training.cuda_graph_scope().end());
  if (static_cast<int>(scopes.size()) < training.cuda_graph_scope_size()) {
    problems.Add("training.cuda_graph_scope",
                 "has a part twice, expected each at most once");
  }
  if (scopes.empty() || LaunchesWholeSteps(training)) return;
  if (training.recompute() == RECOMPUTE_FULL) {
    problems.Add("training.cuda_graph_scope",
                 "has parts of blocks with full recomputation, expected none "
                 "or full_iteration, as in Megatron-LM");
  }
  if (training.cpu_offloading_num_layers() > 0) {
    problems.Add("training.cuda_graph_scope",
                 "is given with training.cpu_offloading_num_layers, expected "
                 "one of them, as in Megatron-LM");
  }
  const auto& modules = training.recompute_modules();
  if (HasScope(training, CUDA_GRAPH_MOE_ROUTER) &&
      std::ranges::find(modules, MOE) != modules.end()) {
    problems.Add("training.cuda_graph_scope",
                 "has moe_router, whose module moe is recomputed, expected "
                 "others");
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
  if (HasScope(training, CUDA_GRAPH_MOE) &&
      transformer.capacity_factor() == 0) {
    problems.Add("training.cuda_graph_scope",
                 "has moe, which requires experts with a capacity "
                 "(training.moe_expert_capacity_factor)");
  }
  if (training.moe_router_fusion() &&
      !LackingFor(CUDA_GRAPH_MOE_ROUTER, transformer).empty()) {
    problems.Add("training.moe_router_fusion",
                 "is true, expected a model with experts");
  }
}

}  // namespace weir::scenarios
