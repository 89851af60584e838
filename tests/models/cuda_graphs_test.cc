// SPDX-License-Identifier: Apache-2.0
// Checks the kernels of routers and the casts of experts, and which kernels
// CUDA graphs launch.
#include "models/cuda_graphs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "models/layer_work.h"
#include "models/model.h"
#include "models/model.pb.h"

namespace weir::models::cuda_graphs_test {

WorkSpec Spec() {
  WorkSpec spec;
  spec.sequence_length = 4096;
  spec.flash_attention = true;
  spec.expert_parallel = 8;
  return spec;
}

// Qwen3 30B: attention, and 128 experts, 16 of them on each GPU.
LayerWork Block(const WorkSpec& spec) {
  return LayersOf(*LoadModel("qwen3-30b-a3b"), spec)[1];
}

int Launches(const std::vector<Kernel>& kernels, KernelPart part) {
  int launches = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.part == part) launches += kernel.launches;
  }
  return launches;
}

WorkSpec With(std::initializer_list<CudaGraphScope> scopes) {
  WorkSpec spec = Spec();
  for (const CudaGraphScope scope : scopes) {
    spec.graph_scopes |= 1u << scope;
  }
  return spec;
}

// Returns the parts of a pass that a graph launches.
std::set<KernelPart> InGraphs(const std::vector<Kernel>& kernels) {
  std::set<KernelPart> parts;
  for (const Kernel& kernel : kernels) {
    if (kernel.in_graph) parts.insert(kernel.part);
  }
  return parts;
}

TEST(CudaGraphsTest, RoutersHaveTheirKernelsInTheForward) {
  const LayerWork least = Block(Spec());
  WorkSpec spec = Spec();
  spec.router_kernels = 58;
  const LayerWork work = Block(spec);
  EXPECT_EQ(Launches(least.forward, KernelPart::kRouter), kLeastRouterKernels);
  EXPECT_EQ(Launches(work.forward, KernelPart::kRouter), 58);
  EXPECT_EQ(work.backward_input, least.backward_input);
  EXPECT_EQ(work.backward_weight, least.backward_weight);
  EXPECT_EQ(work.stash_bytes, least.stash_bytes);
}

TEST(CudaGraphsTest, OnlyAnAllToAllIsPrepared) {
  const auto permutations = [](WorkSpec spec, int prepared) {
    spec.exchange_preparation_kernels = prepared;
    return Launches(Block(spec).forward, KernelPart::kPermute);
  };
  WorkSpec spec = Spec();
  EXPECT_EQ(permutations(spec, 14), permutations(spec, 0) + 14);
  spec.token_dispatcher = TOKENS_HYBRID_EP;
  EXPECT_EQ(permutations(spec, 14), permutations(spec, 0));
  spec = Spec();
  spec.expert_parallel = 1;
  EXPECT_EQ(permutations(spec, 14), permutations(spec, 0));
}

// Two layers per expert, each with one cast in the forward and, of the gradient
// of its output, one in the backward.
TEST(CudaGraphsTest, TokensOfEachExpertAreCastByThemselves) {
  const auto casts = [](OperandFormat format, int reads, bool each) {
    WorkSpec spec = Spec();
    Quantization& formats = spec.quantization;
    formats.forward = formats.input_gradient = formats.weight_gradient = format;
    formats.input_reads = formats.gradient_reads = reads;
    const LayerWork together = Block(spec);
    spec.launches_each_expert = each;
    const LayerWork apart = Block(spec);
    const int forward = Launches(apart.forward, KernelPart::kCast) -
                        Launches(together.forward, KernelPart::kCast);
    EXPECT_EQ(Launches(apart.backward_input, KernelPart::kCast) -
                  Launches(together.backward_input, KernelPart::kCast),
              forward);
    return forward;
  };
  EXPECT_EQ(casts(OPERAND_MXFP8, 1, true), 2 * (16 - 1));
  EXPECT_EQ(casts(OPERAND_FP8, 2, true), 2 * 3 * (16 - 1));  // current scales
  EXPECT_EQ(casts(OPERAND_FP8, 1, true), 0);                 // delayed
  EXPECT_EQ(casts(OPERAND_16_BIT, 1, true), 0);
  EXPECT_EQ(casts(OPERAND_MXFP8, 1, false), 0);
}

TEST(CudaGraphsTest, GraphsHaveTheKernelsOfTheirScopes) {
  EXPECT_TRUE(InGraphs(Block(Spec()).forward).empty());
  EXPECT_TRUE(InGraphs(Block(With({CUDA_GRAPH_MLP})).forward).empty());

  const LayerWork attention = Block(With({CUDA_GRAPH_ATTN}));
  EXPECT_EQ(InGraphs(attention.forward),
            (std::set<KernelPart>{KernelPart::kProjectionGemm,
                                  KernelPart::kNorm, KernelPart::kAttentionCore,
                                  KernelPart::kElementwise}));
  EXPECT_TRUE(
      InGraphs(attention.backward_input).contains(KernelPart::kAttentionCore));
  EXPECT_EQ(InGraphs(attention.backward_weight),
            std::set<KernelPart>{KernelPart::kProjectionGemm});

  const LayerWork router =
      Block(With({CUDA_GRAPH_MOE_ROUTER, CUDA_GRAPH_MOE_PREPROCESS}));
  EXPECT_EQ(InGraphs(router.forward),
            (std::set<KernelPart>{KernelPart::kRouter, KernelPart::kNorm}));

  const LayerWork mixture = Block(With({CUDA_GRAPH_MOE}));
  EXPECT_TRUE(InGraphs(mixture.forward).contains(KernelPart::kFeedForwardGemm));
  EXPECT_FALSE(InGraphs(mixture.forward).contains(KernelPart::kAttentionCore));
}

// A graph changes nothing else of a layer.
TEST(CudaGraphsTest, OnlyLaunchesChange) {
  LayerWork work = Block(With(
      {CUDA_GRAPH_ATTN, CUDA_GRAPH_MOE_ROUTER, CUDA_GRAPH_MOE_PREPROCESS}));
  const LayerWork plain = Block(Spec());
  for (auto* kernels :
       {&work.forward, &work.backward_input, &work.backward_weight}) {
    for (Kernel& kernel : *kernels) kernel.in_graph = false;
  }
  EXPECT_EQ(work.forward, plain.forward);
  EXPECT_EQ(work.backward_input, plain.backward_input);
  EXPECT_EQ(work.backward_weight, plain.backward_weight);
  EXPECT_EQ(work.stash_bytes, plain.stash_bytes);
}

TEST(CudaGraphsTest, ScopesHaveTheNamesOfMegatronCore) {
  std::set<std::string> names;
  for (const CudaGraphScope scope : CudaGraphScopes()) {
    names.insert(Name(scope));
  }
  EXPECT_EQ(names, (std::set<std::string>{"attn", "mlp", "moe", "moe_router",
                                          "moe_preprocess", "mamba",
                                          "full_iteration"}));
}

}  // namespace weir::models::cuda_graphs_test
