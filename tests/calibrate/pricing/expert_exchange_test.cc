// SPDX-License-Identifier: Apache-2.0
// Tests of the time of DeepEP's and HybridEP's exchanges: bytes, limits and
// measurements.
#include "calibrate/pricing/expert_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "calibrate/profile/device_profile.h"

namespace weir::calibrate::expert_exchange_test {

void ExpectRelative(double found, double expected, double error = 1e-9) {
  EXPECT_NEAR(found / expected, 1, error) << found << " for " << expected;
}

CollectiveModel H100() { return LoadDeviceProfile("h100-sxm")->collectives(); }

CollectiveGroup Nodes(int num_nodes, int per_node = 8) {
  CollectiveGroup group;
  group.num_ranks = num_nodes * per_node;
  group.ranks_per_node = per_node;
  group.intra_bytes_per_second = 450e9;
  group.inter_bytes_per_second = 50e9;
  return group;
}

// Tokens of DeepSeek-V3; fp8 with scales in the dispatch.
models::TokenRouting Tokens(double tokens, bool combine, int sms = 20) {
  return {.tokens = tokens,
          .token_bytes = 7168 * (combine ? 2 : 1 + 4 / 128.0),
          .experts = 256,
          .experts_per_token = 8,
          .multiprocessors = sms,
          .combine = combine};
}

TEST(ExpertExchangeTest, BytesAreThoseOfTheGpusAndNodesReached) {
  for (const int nodes : {1, 2, 4, 8}) {
    const models::TokenRouting tokens = Tokens(4096, false);
    const CollectiveCost cost = ExchangeCost(H100(), tokens, Nodes(nodes));
    const double bytes = 4096 * tokens.token_bytes;
    // In each node, one GPU receives a token and forwards it to 7 / 8 of the
    // GPUs that need it.
    ExpectRelative(cost.intra_bytes,
                   bytes * models::GroupsReached(256, 8, 8 * nodes) * 7 / 8);
    if (nodes == 1) {
      EXPECT_EQ(cost.inter_bytes, 0);
    } else {
      ExpectRelative(
          cost.inter_bytes,
          bytes * models::GroupsReached(256, 8, nodes) * (nodes - 1) / nodes);
    }
  }
}

// NCCL's all-to-all sends a copy for each expert of another node.
TEST(ExpertExchangeTest, TheNetworkCarriesOneCopyPerNode) {
  const models::TokenRouting tokens = Tokens(4096, true);
  const CollectiveGroup group = Nodes(4);
  const CollectiveCost pairs =
      CheapestCollective(H100(), models::CollectiveKind::kAllToAll,
                         8 * 4096 * tokens.token_bytes, group);
  const CollectiveCost deepep = ExchangeCost(H100(), tokens, group);
  ExpectRelative(pairs.inter_bytes, 4096 * tokens.token_bytes * 8 * 3 / 4);
  ExpectRelative(
      deepep.inter_bytes,
      4096 * tokens.token_bytes * models::GroupsReached(256, 8, 4) * 3 / 4);
  EXPECT_LT(deepep.inter_bytes, pairs.inter_bytes / 2);
}

TEST(ExpertExchangeTest, TimeIsBetweenTheLongerPartAndTheSumOfBoth) {
  const CollectiveModel model = H100();
  for (const bool combine : {false, true}) {
    const TokenExchange& figures = combine ? model.combine() : model.dispatch();
    for (const int nodes : {1, 4}) {
      for (const int sms : {8, 20, 60}) {
        const models::TokenRouting tokens = Tokens(8192, combine, sms);
        const CollectiveCost cost = ExchangeCost(model, tokens, Nodes(nodes));
        const double copies = models::GroupsReached(256, 8, 8 * nodes);
        const double bytes = 8192 * tokens.token_bytes;
        double work =
            8192 * (figures.token_seconds().value() +
                    copies * figures.copy_seconds().value()) +
            bytes * copies / figures.multiprocessor_bytes_per_second().value();
        double base = figures.base_seconds().value();
        if (nodes > 1) {
          work += bytes * models::GroupsReached(256, 8, nodes) /
                  figures.forward_bytes_per_second().value();
          base += figures.net_base_seconds().value();
        }
        work /= sms;
        const double rest = cost.Seconds() - base;
        EXPECT_GE(rest, std::max(work, cost.LinkSeconds()));
        EXPECT_LE(rest, std::pow(2, 0.25) * std::max(work, cost.LinkSeconds()) +
                            1e-12);
        EXPECT_GE(cost.latency_seconds, base);
      }
    }
  }
}

TEST(ExpertExchangeTest, MoreMultiprocessorsAreFasterUntilTheLinksLimit) {
  double last = 1;
  for (int sms = 4; sms <= 64; sms += 4) {
    const double seconds =
        ExchangeCost(H100(), Tokens(16384, false, sms), Nodes(1)).Seconds();
    EXPECT_LT(seconds, last);
    last = seconds;
  }
  const CollectiveCost most =
      ExchangeCost(H100(), Tokens(16384, false, 4000), Nodes(1));
  ExpectRelative(most.Seconds() - H100().dispatch().base_seconds().value(),
                 most.LinkSeconds(), 1e-3);
}

// github.com/ai-dynamo/aiconfigurator, deepep: 4,096 tokens of 7,168, 8 of 256
// experts, H100, microseconds, the notification included.
TEST(ExpertExchangeTest, MeasuredExchangesOfH100) {
  const struct {
    int nodes, sms;
    bool combine;
    double us;
  } rows[] = {{1, 20, false, 492.2},        {1, 12, false, 754.0},
              {1, 20, true, 982.7},         {1, 24, true, 960.6},
              {2, 20, false, 843.5 + 49.7}, {2, 20, true, 2099 + 50.5},
              {4, 20, false, 1801 + 59.5},  {4, 20, true, 3528 + 105.7}};
  for (const auto& [nodes, sms, combine, us] : rows) {
    ExpectRelative(
        1e6 * ExchangeCost(H100(), Tokens(4096, combine, sms), Nodes(nodes))
                  .Seconds(),
        us, 0.11);
  }
}

TEST(ExpertExchangeTest, WithoutFiguresTheRatesAreThoseOfPairs) {
  CollectiveModel model = H100();
  model.clear_dispatch();
  model.clear_combine();
  const models::TokenRouting tokens = Tokens(4096, false);
  const CollectiveCost cost = ExchangeCost(model, tokens, Nodes(4));
  const CollectiveCost known = ExchangeCost(H100(), tokens, Nodes(4));
  EXPECT_EQ(cost.intra_bytes, known.intra_bytes);
  EXPECT_EQ(cost.inter_bytes, known.inter_bytes);
  ExpectRelative(cost.inter_bytes_per_second,
                 50e9 * model.net_efficiency().value());
  ExpectRelative(cost.intra_bytes_per_second,
                 450e9 * model.pairs().link_efficiency().value());
  models::TokenRouting other = tokens;
  other.multiprocessors = 1;
  EXPECT_EQ(ExchangeCost(model, other, Nodes(4)).Seconds(), cost.Seconds());
}

// docs/README_Hybrid-EP.md of github.com/deepseek-ai/DeepEP, branch hybrid-ep:
// 4,096 tokens of 7,168 in bf16, 8 experts per token and GPU; GB/s that GPUs
// receive, calls from PyTorch.
TEST(ExpertExchangeTest, MeasuredExchangesOfHybridEp) {
  const struct {
    const char* device;
    int ranks, sms;
    double dispatch, combine;
  } rows[] = {
      {"gb200", 8, 16, 550.10, 538.44},   {"gb200", 8, 32, 545.71, 568.94},
      {"gb200", 16, 16, 472.84, 474.48},  {"gb200", 16, 32, 523.48, 521.55},
      {"gb200", 24, 16, 441.89, 444.40},  {"gb200", 24, 32, 507.32, 483.76},
      {"gb200", 32, 16, 485.50, 423.19},  {"gb200", 32, 32, 484.22, 464.54},
      {"gb200", 36, 16, 469.96, 418.27},  {"gb200", 36, 32, 479.02, 447.89},
      {"b200-sxm", 8, 16, 535.94, 530.86}};
  for (const auto& [device, ranks, sms, dispatch, combine] : rows) {
    const CollectiveModel model = LoadDeviceProfile(device)->collectives();
    CollectiveGroup group = Nodes(1, ranks);
    group.intra_bytes_per_second = 900e9;
    models::TokenRouting tokens = Tokens(4096, true, sms);
    tokens.experts = 8 * ranks;
    tokens.hybrid = true;
    const double received =
        4096 * tokens.token_bytes * models::GroupsReached(8 * ranks, 8, ranks);
    ExpectRelative(ExchangeCost(model, tokens, group).Seconds(),
                   received / (1e9 * combine), 0.11);
    tokens.combine = false;
    ExpectRelative(ExchangeCost(model, tokens, group).Seconds(),
                   received / (1e9 * dispatch), 0.09);
  }
}

// The H100 has figures of DeepEP only.
TEST(ExpertExchangeTest, HybridEpWithoutFiguresHasTheRatesOfPairs) {
  models::TokenRouting tokens = Tokens(4096, false);
  tokens.hybrid = true;
  const CollectiveCost cost = ExchangeCost(H100(), tokens, Nodes(1));
  ExpectRelative(cost.intra_bytes_per_second,
                 450e9 * H100().pairs().link_efficiency().value());
  EXPECT_NE(cost.Seconds(),
            ExchangeCost(H100(), Tokens(4096, false), Nodes(1)).Seconds());
}

TEST(ExpertExchangeTest, OneGpuExchangesNothing) {
  EXPECT_EQ(ExchangeCost(H100(), Tokens(4096, false), Nodes(1, 1)).Seconds(),
            0);
}

TEST(ExpertExchangeTest, OtherCallsAreThoseOfNccl) {
  const CollectiveCost pairs =
      CallCost(H100(), models::CollectiveKind::kAllToAll, 1e9, {}, Nodes(2));
  EXPECT_EQ(pairs.Seconds(),
            CheapestCollective(H100(), models::CollectiveKind::kAllToAll, 1e9,
                               Nodes(2))
                .Seconds());
  EXPECT_EQ(CallCost(H100(), models::CollectiveKind::kAllToAll, 1e9,
                     Tokens(4096, false), Nodes(2))
                .Seconds(),
            ExchangeCost(H100(), Tokens(4096, false), Nodes(2)).Seconds());
}

}  // namespace weir::calibrate::expert_exchange_test
