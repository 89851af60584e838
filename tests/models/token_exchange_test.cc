// SPDX-License-Identifier: Apache-2.0
// Tests of the exchange of tokens between experts by DeepEP and in 8 bits:
// copies and bytes in closed form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "models/layer_work.h"
#include "models/model.h"
#include "tests/models/gpt.h"

namespace weir::models::token_exchange_test {

// DeepSeek-V3: 256 experts, 8 of them for each token.
constexpr double kHidden = 7168, kTokens = 4096, kExperts = 256, kTopk = 8;
constexpr int kBlock = 10;  // with experts

WorkSpec Spec(int expert_parallel) {
  WorkSpec spec;
  spec.sequence_length = 4096;
  spec.flash_attention = true;
  spec.expert_parallel = expert_parallel;
  return spec;
}

WorkSpec DeepEp(int expert_parallel) {
  WorkSpec spec = Spec(expert_parallel);
  spec.token_dispatcher = TOKENS_DEEPEP;
  spec.dispatch_multiprocessors = 20;
  return spec;
}

LayerWork Block(const WorkSpec& spec) {
  return LayersOf(*LoadModel("deepseek-v3"), spec)[kBlock];
}

// The sum over all subsets of groups: a token misses a group if all its experts
// are among the others.
TEST(TokenExchangeTest, GroupsReachedAreThoseOfDistinctExperts) {
  EXPECT_SAME(GroupsReached(8, 2, 8), 2);  // one expert per group
  EXPECT_SAME(GroupsReached(8, 8, 4), 4);  // all experts
  EXPECT_SAME(GroupsReached(8, 1, 4), 1);
  EXPECT_SAME(GroupsReached(8, 5, 1), 1);
  // 4 experts in 2 groups, 2 per token: 2 of 6 pairs are in one group.
  EXPECT_SAME(GroupsReached(4, 2, 2), 2 - 2.0 / 6);
  for (const double groups : {2, 8, 64}) {
    const double reached = GroupsReached(kExperts, kTopk, groups);
    EXPECT_LE(reached, std::min(groups, kTopk) + 1e-9);
    // Choices with repetition reach fewer groups.
    EXPECT_GT(reached, groups * (1 - std::pow(1 - 1 / groups, kTopk)));
  }
}

// Counts the parts of experts that a token reaches over all choices of groups
// and of experts in them.
double CountReached(int experts, int experts_per_token, int parts,
                    int router_groups, int groups_per_token) {
  const int width = experts / router_groups;
  const auto ones = [](unsigned bits) { return __builtin_popcount(bits); };
  double sum = 0, choices = 0;
  for (unsigned groups = 0; groups < 1u << router_groups; ++groups) {
    if (ones(groups) != groups_per_token) continue;
    for (unsigned chosen = 0; chosen < 1u << experts; ++chosen) {
      if (ones(chosen) != experts_per_token) continue;
      unsigned reached = 0;
      bool allowed = true;
      for (int e = 0; e < experts; ++e) {
        if ((chosen >> e & 1) == 0) continue;
        allowed = allowed && (groups >> (e / width) & 1) != 0;
        reached |= 1u << (e * parts / experts);
      }
      if (!allowed) continue;
      sum += ones(reached);
      ++choices;
    }
  }
  return sum / choices;
}

TEST(TokenExchangeTest, NodeLimitedRoutingReachesFewerGroups) {
  for (const int groups : {1, 2, 3, 4, 6}) {
    for (int chosen = 1; chosen <= groups; ++chosen) {
      for (const int k : {1, 2, 3, 4}) {
        if (k > chosen * 12 / groups) continue;
        for (const int parts : {1, 2, 3, 4, 6, 12}) {
          EXPECT_NEAR(GroupsReached(12, k, parts, groups, chosen),
                      CountReached(12, k, parts, groups, chosen), 1e-12)
              << groups << " " << chosen << " " << k << " " << parts;
        }
      }
    }
  }
  // DeepSeek-V3 with a node for each group: at most four nodes.
  EXPECT_LT(GroupsReached(kExperts, kTopk, 8, 8, 4), 4);
  EXPECT_GT(GroupsReached(kExperts, kTopk, 8, 8, 4), 3.5);
  EXPECT_GT(GroupsReached(kExperts, kTopk, 8), 5);
}

// Limits change how often a token is copied, not how many experts it has.
TEST(TokenExchangeTest, NodeLimitedRoutingConservesTheWorkOfExperts) {
  Model limited = *LoadModel("deepseek-v3");
  Model free = limited;
  free.mutable_transformer()->clear_num_router_groups();
  free.mutable_transformer()->clear_router_groups_per_token();
  ASSERT_EQ(limited.transformer().num_router_groups(), 8);
  ASSERT_EQ(limited.transformer().router_groups_per_token(), 4);
  for (const int expert : {8, 64}) {
    for (const WorkSpec& spec : {Spec(expert), DeepEp(expert)}) {
      const LayerWork with = LayersOf(limited, spec)[kBlock];
      const LayerWork without = LayersOf(free, spec)[kBlock];
      EXPECT_SAME(ModelFlops(LayersOf(limited, spec), 1),
                  ModelFlops(LayersOf(free, spec), 1));
      EXPECT_SAME(with.stash_bytes, without.stash_bytes);
      const double ratio = with.forward_collectives[0].bytes /
                           without.forward_collectives[0].bytes;
      // NCCL sends a copy to each expert in any case.
      const bool deepep = spec.token_dispatcher == TOKENS_DEEPEP;
      EXPECT_SAME(ratio, deepep ? GroupsReached(kExperts, kTopk, expert, 8, 4) /
                                      GroupsReached(kExperts, kTopk, expert)
                                : 1);
      EXPECT_EQ(ratio < 1, deepep);
    }
  }
}

TEST(TokenExchangeTest, DeepEpSendsOneCopyToEachGpuThatHasAnExpert) {
  for (const int expert : {8, 64, 256}) {
    const LayerWork block = Block(DeepEp(expert));
    ASSERT_EQ(block.forward_collectives.size(), 2);
    const double reached = GroupsReached(kExperts, kTopk, expert, 8, 4);
    for (const LayerCollective& one : block.forward_collectives) {
      EXPECT_EQ(one.routing.tokens, kTokens);
      EXPECT_EQ(one.routing.token_bytes, 2 * kHidden);
      EXPECT_SAME(one.bytes, kTokens * reached * 2 * kHidden);
      EXPECT_EQ(one.count, 1);
    }
    EXPECT_FALSE(block.forward_collectives[0].routing.combine);
    EXPECT_TRUE(block.forward_collectives[1].routing.combine);
    // The backward dispatches gradients and combines those of the inputs.
    ASSERT_EQ(block.backward_collectives.size(), 2);
    EXPECT_FALSE(block.backward_collectives[0].routing.combine);
    EXPECT_TRUE(block.backward_collectives[1].routing.combine);
    // NCCL sends a copy to each expert.
    EXPECT_SAME(Block(Spec(expert)).forward_collectives[0].bytes,
                kTokens * kTopk * 2 * kHidden);
  }
}

double PermutedBytes(const std::vector<Kernel>& kernels) {
  double bytes = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.part == KernelPart::kPermute) bytes += kernel.bytes;
  }
  return bytes;
}

// A token's vector on its way to an expert, in 16 bits.
constexpr double kVector = 2 * kHidden;
constexpr double kSent = kTokens * kTopk * kVector;

// NCCL: a token is read once and written for each expert, and the reverse.
// Between these, the copies are sorted by expert and back.
TEST(TokenExchangeTest, PermutationsReadEveryTokenOnce) {
  WorkSpec spec = Spec(64);
  spec.weights_in_experts = true;
  const LayerWork block = Block(spec);
  const double both = 2 * (kTokens * kVector + kSent) + 2 * 2 * kSent;
  EXPECT_SAME(PermutedBytes(block.forward), both);
  EXPECT_SAME(PermutedBytes(block.backward_input), both);
}

TEST(TokenExchangeTest, DeepEpPermutesWhatAGpuReceives) {
  WorkSpec spec = DeepEp(64);
  spec.weights_in_experts = true;
  const LayerWork block = Block(spec);
  const double reached =
      kTokens * GroupsReached(kExperts, kTopk, 64, 8, 4) * kVector;
  EXPECT_SAME(PermutedBytes(block.forward), 2 * (reached + kSent));
  EXPECT_SAME(PermutedBytes(block.backward_input), 2 * (reached + kSent));
}

// The calls of HybridEP contain one copy of what a GPU receives.
TEST(TokenExchangeTest, HybridEpPermutesWhatItsCallsDoNotCopy) {
  WorkSpec spec = DeepEp(64);
  spec.weights_in_experts = true;
  const LayerWork deepep = Block(spec);
  spec.token_dispatcher = TOKENS_HYBRID_EP;
  const LayerWork hybrid = Block(spec);
  const double reached =
      kTokens * GroupsReached(kExperts, kTopk, 64, 8, 4) * kVector;
  EXPECT_SAME(PermutedBytes(hybrid.forward),
              PermutedBytes(deepep.forward) - 2 * 2 * reached);
  EXPECT_SAME(PermutedBytes(hybrid.backward_input),
              PermutedBytes(deepep.backward_input) - 2 * 2 * reached);
}

// If the sum applies the weights, its backward also reads the experts' outputs,
// which are saved.
TEST(TokenExchangeTest, WeightsInTheSumSaveTheOutputsOfExperts) {
  WorkSpec spec = Spec(64);
  const LayerWork sum = Block(spec);
  spec.weights_in_experts = true;
  const LayerWork experts = Block(spec);
  EXPECT_SAME(sum.stash_bytes - experts.stash_bytes, kSent);
  EXPECT_SAME(
      PermutedBytes(sum.backward_input) - PermutedBytes(experts.backward_input),
      kSent);
  EXPECT_EQ(sum.forward, experts.forward);
}

TEST(TokenExchangeTest, HybridEpSendsTheCopiesOfDeepEp) {
  WorkSpec spec = DeepEp(64);
  const LayerWork deepep = Block(spec);
  spec.token_dispatcher = TOKENS_HYBRID_EP;
  const LayerWork hybrid = Block(spec);
  EXPECT_EQ(hybrid.stash_bytes, deepep.stash_bytes);
  ASSERT_EQ(hybrid.forward_collectives.size(), 2);
  for (int i = 0; i < 2; ++i) {
    models::TokenRouting routing = hybrid.forward_collectives[i].routing;
    EXPECT_TRUE(routing.hybrid);
    routing.hybrid = false;
    EXPECT_EQ(routing, deepep.forward_collectives[i].routing);
    EXPECT_EQ(hybrid.forward_collectives[i].bytes,
              deepep.forward_collectives[i].bytes);
  }
}

TEST(TokenExchangeTest, OneGpuExchangesNothing) {
  const LayerWork block = Block(DeepEp(1));
  EXPECT_TRUE(block.forward_collectives.empty());
  EXPECT_EQ(block.forward, Block(Spec(1)).forward);
  EXPECT_EQ(block.backward_input, Block(Spec(1)).backward_input);
}

TEST(TokenExchangeTest, ExpertsComputeTheSame) {
  EXPECT_SAME(Flops(Block(DeepEp(64)).forward), Flops(Block(Spec(64)).forward));
  EXPECT_SAME(Flops(Block(DeepEp(64)).backward_weight),
              Flops(Block(Spec(64)).backward_weight));
  EXPECT_EQ(Block(DeepEp(64)).parameters, Block(Spec(64)).parameters);
}

// One byte per element and 4 for each 128; the way back remains in 16 bits.
TEST(TokenExchangeTest, DispatchIn8BitsHalvesTheBytesOfOneDirection) {
  constexpr double kRatio = (1 + 4.0 / 128) / 2;
  for (const bool deepep : {false, true}) {
    WorkSpec spec = deepep ? DeepEp(64) : Spec(64);
    const LayerWork wide = Block(spec);
    spec.quantization.dispatch = OPERAND_FP8_BLOCK;
    const LayerWork narrow = Block(spec);
    const double before = wide.forward_collectives[0].bytes;
    ASSERT_EQ(narrow.forward_collectives.size(), 2);
    EXPECT_SAME(narrow.forward_collectives[0].bytes, kRatio * before);
    EXPECT_SAME(narrow.forward_collectives[1].bytes, before);
    ASSERT_EQ(narrow.backward_collectives.size(), 2);
    EXPECT_SAME(narrow.backward_collectives[0].bytes, kRatio * before);
    EXPECT_SAME(narrow.backward_collectives[1].bytes, before);
    if (!deepep) continue;
    EXPECT_SAME(narrow.forward_collectives[0].routing.token_bytes,
                kRatio * 2 * kHidden);
    EXPECT_SAME(narrow.forward_collectives[1].routing.token_bytes, 2 * kHidden);
  }
}

double CastBytes(const std::vector<Kernel>& kernels) {
  double bytes = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.part == KernelPart::kCast) bytes += kernel.bytes;
  }
  return bytes;
}

// The GEMM reads what has arrived, and the copy for the weight gradient is made
// from that: the cast of each copy from 16 bits is gone.
TEST(TokenExchangeTest, ExpertsReadTokensInTheFormatOfTheDispatch) {
  WorkSpec spec = DeepEp(64);
  spec.quantization.forward = spec.quantization.input_gradient =
      spec.quantization.weight_gradient = OPERAND_FP8_BLOCK;
  const double before = CastBytes(Block(spec).forward);
  spec.quantization.dispatch = OPERAND_FP8_BLOCK;
  const double bytes = OperandBytes(OPERAND_FP8_BLOCK);
  const double elements = kTokens * kTopk * kHidden;
  // 2 + 2 copies per element before; 1 + 1 now, and the local tokens once.
  EXPECT_SAME(CastBytes(Block(spec).forward),
              before - 2 * elements + (2 + bytes) * kTokens * kHidden);
}

TEST(TokenExchangeTest, AttentionIn8BitsCastsItsOperands) {
  WorkSpec spec = Spec(1);
  spec.quantization.attention = OPERAND_FP8;
  const LayerWork block = Block(spec), plain = Block(Spec(1));
  // 128 heads: queries and keys of 192, values of 128.
  EXPECT_SAME(CastBytes(block.forward), 3 * kTokens * 128 * (2 * 192 + 128));
  EXPECT_SAME(CastBytes(block.backward_input), 3 * kTokens * 128 * 128);
  int in_fp8 = 0;
  for (const Kernel& kernel : block.forward) {
    EXPECT_EQ(kernel.format == OPERAND_FP8,
              kernel.kind == Kernel::Kind::kAttention);
    in_fp8 += kernel.format == OPERAND_FP8;
  }
  EXPECT_EQ(in_fp8, 1);
  EXPECT_SAME(Flops(block.forward), Flops(plain.forward));
  EXPECT_EQ(block.stash_bytes, plain.stash_bytes);
}

TEST(TokenExchangeTest, KernelsSayWhatTheyAre) {
  for (const Kernel& kernel : Block(Spec(8)).forward) {
    if (kernel.kind == Kernel::Kind::kAttention) {
      EXPECT_EQ(kernel.variant, Kernel::Variant::kLatent);
    } else if (kernel.kind == Kernel::Kind::kGemm && kernel.batch > 1) {
      EXPECT_EQ(kernel.variant, Kernel::Variant::kGrouped);
    } else {
      EXPECT_EQ(kernel.variant, Kernel::Variant::kPlain);
    }
  }
}

}  // namespace weir::models::token_exchange_test
