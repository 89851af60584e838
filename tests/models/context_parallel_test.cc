// SPDX-License-Identifier: Apache-2.0
// Tests of context parallelism: what is conserved, what is divided, and the
// bytes of each exchange in closed form.
#include "models/context_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model.h"
#include "tests/models/gpt.h"

namespace weir::models::context_parallel_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Llama 3.1 8B: 32 heads of 128, 8 of keys and values.
constexpr int kTokens = 32768;
constexpr double h = 4096, kv = 1024, e = 2, s = kTokens;

struct Case {
  ContextMethod method;
  int size;
  std::vector<int> hierarchy = {};
};

const Case kCases[] = {{CONTEXT_P2P, 2},
                       {CONTEXT_P2P, 8},
                       {CONTEXT_ALL_GATHER, 2},
                       {CONTEXT_ALL_GATHER, 8},
                       {CONTEXT_A2A, 2},
                       {CONTEXT_A2A, 4},
                       {CONTEXT_A2A_P2P, 8, {2, 4}}};

WorkSpec SpecOf(const Case& one, int tensor = 1) {
  WorkSpec spec;
  spec.sequence_length = kTokens;
  spec.flash_attention = true;
  spec.tensor_parallel = tensor;
  spec.sequence_parallel = tensor > 1;
  spec.context = ContextSpecOf(one.method, one.size, one.hierarchy);
  return spec;
}

WorkSpec Alone(int tensor = 1) { return SpecOf({CONTEXT_P2P, 1}, tensor); }

Model Llama() { return *LoadModel("llama-3.1-8b"); }

std::vector<LayerWork> Layers(const WorkSpec& spec) {
  const absl::Status valid = ValidateWorkSpec("test", Llama(), spec);
  EXPECT_TRUE(valid.ok()) << valid;
  return LayersOf(Llama(), spec);
}

LayerWork Block(const WorkSpec& spec) { return Layers(spec)[1]; }

double PerformedFlops(const std::vector<Kernel>& kernels) {
  double flops = 0;
  for (const Kernel& kernel : kernels) {
    flops += kernel.performed_flops > 0 ? kernel.performed_flops : kernel.flops;
  }
  return flops;
}

std::vector<LayerCollective> ContextOf(
    const std::vector<LayerCollective>& all) {
  std::vector<LayerCollective> found;
  for (const LayerCollective& one : all) {
    if (one.group == LayerCollective::Group::kContext) found.push_back(one);
  }
  return found;
}

// [kind, bytes, count] of each entry.
std::vector<std::tuple<CollectiveKind, double, int>> Calls(
    const std::vector<LayerCollective>& all) {
  std::vector<std::tuple<CollectiveKind, double, int>> calls;
  for (const LayerCollective& one : ContextOf(all)) {
    calls.emplace_back(one.kind, one.bytes, one.count);
  }
  return calls;
}

TEST(ContextParallelTest, FlopAreSharedOutEvenly) {
  for (const int tensor : {1, 2}) {
    const std::vector<LayerWork> whole = Layers(Alone(tensor));
    for (const Case& one : kCases) {
      const std::vector<LayerWork> parts = Layers(SpecOf(one, tensor));
      SCOPED_TRACE(ContextMethodName(one.method));
      EXPECT_SAME(one.size * ModelFlops(parts, tensor),
                  ModelFlops(whole, tensor));
      for (size_t i = 0; i < whole.size(); ++i) {
        EXPECT_SAME(1 + one.size * PerformedFlops(parts[i].forward),
                    1 + PerformedFlops(whole[i].forward));
        EXPECT_SAME(1 + one.size * PerformedFlops(parts[i].backward_input),
                    1 + PerformedFlops(whole[i].backward_input));
      }
    }
  }
}

TEST(ContextParallelTest, ActivationsAndTransfersAreSharedOutEvenly) {
  for (const RecomputeMode recompute :
       {RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_OPERATORS}) {
    WorkSpec alone = Alone(2);
    alone.recompute = recompute;
    const std::vector<LayerWork> whole = Layers(alone);
    for (const Case& one : kCases) {
      WorkSpec spec = SpecOf(one, 2);
      spec.recompute = recompute;
      const std::vector<LayerWork> parts = Layers(spec);
      for (size_t i = 0; i < whole.size(); ++i) {
        EXPECT_SAME(one.size * parts[i].stash_bytes, whole[i].stash_bytes);
        EXPECT_SAME(1 + one.size * parts[i].output_bytes,
                    1 + whole[i].output_bytes);
        EXPECT_EQ(parts[i].parameters, whole[i].parameters);
      }
    }
  }
}

// Each step of a ring computes 1/c of a GPU's attention with the keys and
// values of one rank, and sends these to the next one.
TEST(ContextParallelTest, ARingSendsKeysAndValuesInEveryStepButTheLast) {
  constexpr int c = 8;
  const LayerWork block = Block(SpecOf({CONTEXT_P2P, c}));
  const double message = 2 * e * s / c * kv;
  EXPECT_THAT(
      Calls(block.forward_collectives),
      ElementsAre(std::tuple(CollectiveKind::kSendReceive, message, c - 1)));
  // With their gradients, which then return to their owner.
  EXPECT_THAT(
      Calls(block.backward_collectives),
      ElementsAre(std::tuple(CollectiveKind::kSendReceive, message, 1),
                  std::tuple(CollectiveKind::kSendReceive, 2 * message, c - 2),
                  std::tuple(CollectiveKind::kSendReceive, message, 1)));
  int steps = 0;
  for (const Kernel& kernel : block.forward) {
    if (kernel.kind != Kernel::Kind::kAttention) continue;
    ++steps;
    EXPECT_EQ(kernel.m, s / c);
    EXPECT_EQ(kernel.n, s / c);
    EXPECT_SAME(kernel.flops, 4 * s / c * s / c * h);
    EXPECT_SAME(kernel.performed_flops, kernel.flops / 2);  // causal
  }
  EXPECT_EQ(steps, c);
  // Two ranks have no step in between.
  EXPECT_THAT(Calls(Block(SpecOf({CONTEXT_P2P, 2})).backward_collectives),
              ElementsAre(std::tuple(CollectiveKind::kSendReceive,
                                     2 * e * s / 2 * kv, 2)));
}

TEST(ContextParallelTest, AllGatherCollectsKeysAndValues) {
  const LayerWork block = Block(SpecOf({CONTEXT_ALL_GATHER, 4}));
  const double whole = e * s * kv;
  EXPECT_THAT(Calls(block.forward_collectives),
              ElementsAre(std::tuple(CollectiveKind::kAllGather, whole, 2)));
  EXPECT_THAT(
      Calls(block.backward_collectives),
      ElementsAre(std::tuple(CollectiveKind::kAllGather, whole, 2),
                  std::tuple(CollectiveKind::kReduceScatter, whole, 2)));
}

TEST(ContextParallelTest, AllToAllExchangesTokensForHeads) {
  const LayerWork block = Block(SpecOf({CONTEXT_A2A, 4}));
  const double q = e * s / 4 * h, k = e * s / 4 * kv;
  EXPECT_THAT(Calls(block.forward_collectives),
              ElementsAre(std::tuple(CollectiveKind::kAllToAll, q, 1),
                          std::tuple(CollectiveKind::kAllToAll, k, 2),
                          std::tuple(CollectiveKind::kAllToAll, q, 1)));
  EXPECT_THAT(Calls(block.backward_collectives),
              ElementsAre(std::tuple(CollectiveKind::kAllToAll, q, 2),
                          std::tuple(CollectiveKind::kAllToAll, k, 2)));
  for (const Kernel& kernel : block.forward) {
    if (kernel.kind != Kernel::Kind::kAttention) continue;
    EXPECT_EQ(kernel.batch, 32 / 4);
    EXPECT_EQ(kernel.m, s);
  }
}

// Groups of 2 GPUs exchange tokens for heads; a ring of 4 groups shares the
// keys and values of these heads, which are as many bytes as those of one GPU.
TEST(ContextParallelTest, AHierarchyHasBoth) {
  const LayerWork block = Block(SpecOf({CONTEXT_A2A_P2P, 8, {2, 4}}));
  const double q = e * s / 8 * h, k = e * s / 8 * kv;
  EXPECT_THAT(Calls(block.forward_collectives),
              ElementsAre(std::tuple(CollectiveKind::kAllToAll, q, 1),
                          std::tuple(CollectiveKind::kAllToAll, k, 2),
                          std::tuple(CollectiveKind::kSendReceive, 2 * k, 3),
                          std::tuple(CollectiveKind::kAllToAll, q, 1)));
  for (const Kernel& kernel : block.forward) {
    if (kernel.kind != Kernel::Kind::kAttention) continue;
    EXPECT_EQ(kernel.batch, 16);
    EXPECT_EQ(kernel.m, s / 4);
    EXPECT_EQ(kernel.n, s / 4);
  }
}

TEST(ContextParallelTest, FullRecomputationRepeatsTheExchange) {
  for (const Case& one : kCases) {
    WorkSpec spec = SpecOf(one);
    const LayerWork plain = Block(spec);
    spec.recompute = RECOMPUTE_FULL;
    const LayerWork again = Block(spec);
    const auto count = [](const std::vector<LayerCollective>& all) {
      int sum = 0;
      for (const LayerCollective& call : ContextOf(all)) sum += call.count;
      return sum;
    };
    EXPECT_EQ(
        count(again.backward_collectives),
        count(plain.backward_collectives) + count(plain.forward_collectives));
    // The outputs of the attention are kept.
    spec.recompute = RECOMPUTE_OPERATORS;
    EXPECT_EQ(count(Block(spec).backward_collectives),
              count(plain.backward_collectives));
  }
}

TEST(ContextParallelTest, OneGpuExchangesNothing) {
  const LayerWork block = Block(Alone());
  EXPECT_THAT(block.forward_collectives, IsEmpty());
  EXPECT_THAT(block.backward_collectives, IsEmpty());
}

std::string MessageFor(const WorkSpec& spec, const Model& model) {
  return std::string(ValidateWorkSpec("test", model, spec).message());
}

TEST(ContextParallelTest, NamesWhatItNeeds) {
  WorkSpec spec = SpecOf({CONTEXT_P2P, 3});
  EXPECT_THAT(MessageFor(spec, Llama()),
              HasSubstr("sequence_length is 32768, expected a multiple of 2 x "
                        "context 3"));
  spec = SpecOf({CONTEXT_A2A, 16});
  EXPECT_THAT(MessageFor(spec, Llama()),
              HasSubstr("context.heads_parallel is 16, expected"));
  spec = SpecOf({CONTEXT_P2P, 2});
  spec.flash_attention = false;
  EXPECT_THAT(MessageFor(spec, Llama()),
              HasSubstr("flash_attention is off, expected on"));
  Model windowed = Llama();
  windowed.mutable_transformer()->set_sliding_window(4096);
  EXPECT_THAT(
      MessageFor(SpecOf({CONTEXT_P2P, 2}), windowed),
      HasSubstr("context.method is a ring, expected all_gather or a2a"));
  EXPECT_EQ(MessageFor(SpecOf({CONTEXT_ALL_GATHER, 2}), windowed), "");
}

}  // namespace weir::models::context_parallel_test
