// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cut_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/problems.h"
#include "scenarios/costs.h"
#include "scenarios/scenario.h"
#include "tests/random_source.h"

namespace weir::scenarios {
namespace {

using Stage = GivenCosts::Stage;
using testing::HasSubstr;

// Stages of `blocks` blocks that take 1 s forward and 2 s backward each, an
// embedding of 0.5 s and 1 s, and a head of 3 s and 6 s.
GivenCosts CostsOfBlocks(const std::vector<uint32_t>& blocks) {
  GivenCosts costs;
  for (const uint32_t n : blocks) {
    Stage* stage = costs.add_stages();
    stage->set_forward_seconds(n);
    stage->set_backward_seconds(2.0 * n);
    costs.add_blocks_per_stage(n);
  }
  Stage* first = costs.mutable_stages(0);
  first->set_forward_seconds(first->forward_seconds() + 0.5);
  first->set_backward_seconds(first->backward_seconds() + 1);
  Stage* last = costs.mutable_stages(costs.stages_size() - 1);
  last->set_forward_seconds(last->forward_seconds() + 3);
  last->set_backward_seconds(last->backward_seconds() + 6);
  return costs;
}

void ExpectSameTimes(const GivenCosts& actual, const GivenCosts& expected) {
  ASSERT_EQ(actual.stages_size(), expected.stages_size());
  for (int s = 0; s < actual.stages_size(); ++s) {
    EXPECT_NEAR(actual.stages(s).forward_seconds(),
                expected.stages(s).forward_seconds(), 1e-9);
    EXPECT_NEAR(actual.stages(s).backward_seconds(),
                expected.stages(s).backward_seconds(), 1e-9);
  }
}

TEST(CutCostsTest, EqualBlocksGiveTheCostsOfAnyOtherCut) {
  const GivenCosts recorded = CostsOfBlocks({8, 8, 8, 8});
  for (const std::vector<uint32_t>& blocks :
       {std::vector<uint32_t>{4, 4, 4, 4, 4, 4, 4, 4},
        {16, 16},
        {32},
        {9, 9, 9, 5},
        {1, 2, 29}}) {
    const GivenCosts cut = CutCosts(recorded, blocks);
    ExpectSameTimes(cut, CostsOfBlocks(blocks));
    EXPECT_EQ(cut.blocks_per_stage_size(), static_cast<int>(blocks.size()));
  }
}

TEST(CutCostsTest, StagesAtTheEndsMayHaveNoBlocks) {
  const GivenCosts cut = CutCosts(CostsOfBlocks({0, 10, 10, 0}), {5, 5, 5, 5});
  ExpectSameTimes(cut, CostsOfBlocks({5, 5, 5, 5}));
}

TEST(CutCostsTest, InnerStagesKeepTheirOwnCosts) {
  GivenCosts recorded = CostsOfBlocks({2, 2, 2, 2, 2});
  recorded.mutable_stages(2)->set_forward_seconds(6);  // three times as long
  const GivenCosts cut = CutCosts(recorded, std::vector<uint32_t>(10, 1));
  EXPECT_NEAR(cut.stages(3).forward_seconds(), 1, 1e-12);
  EXPECT_NEAR(cut.stages(4).forward_seconds(), 3, 1e-12);
  EXPECT_NEAR(cut.stages(5).forward_seconds(), 3, 1e-12);
  EXPECT_NEAR(cut.stages(6).forward_seconds(), 1, 1e-12);
}

// Adds a replica whose stage `slow` takes `factor` times as long.
void AddReplica(int slow, double factor, GivenCosts* costs) {
  auto* replica = costs->add_replicas();
  *replica->mutable_stages() = costs->stages();
  Stage* stage = replica->mutable_stages(slow);
  stage->set_forward_seconds(factor * stage->forward_seconds());
  stage->set_backward_seconds(factor * stage->backward_seconds());
}

TEST(CutCostsTest, ASlowGpuAtAnEndIsSlowInAllItsBlocks) {
  for (const int slow : {0, 3}) {
    for (const int num_replicas : {2, 3, 4}) {
      GivenCosts recorded = CostsOfBlocks({8, 8, 8, 8});
      AddReplica(slow, 2, &recorded);
      while (recorded.replicas_size() < num_replicas) {
        AddReplica(slow, 1, &recorded);
      }
      const GivenCosts usual = CostsOfBlocks({4, 4, 4, 4, 4, 4, 4, 4});
      const GivenCosts cut = CutCosts(recorded, std::vector<uint32_t>(8, 4));
      ExpectSameTimes(cut, usual);
      for (int r = 0; r < num_replicas; ++r) {
        for (int s = 0; s < 8; ++s) {
          const double factor = r == 0 && s / 2 == slow ? 2 : 1;
          EXPECT_NEAR(cut.replicas(r).stages(s).forward_seconds(),
                      factor * usual.stages(s).forward_seconds(), 1e-9);
          EXPECT_NEAR(cut.replicas(r).stages(s).backward_seconds(),
                      factor * usual.stages(s).backward_seconds(), 1e-9);
        }
      }
    }
  }
}

TEST(CutCostsTest, TwoStagesAreDividedEqually) {
  GivenCosts recorded;
  for (const double seconds : {8.0, 12.0}) {
    Stage* stage = recorded.add_stages();
    stage->set_forward_seconds(seconds);
    stage->set_backward_seconds(2 * seconds);
    recorded.add_blocks_per_stage(4);
  }
  const GivenCosts cut = CutCosts(recorded, {2, 2, 2, 2});
  EXPECT_NEAR(cut.stages(0).forward_seconds(), 4, 1e-12);
  EXPECT_NEAR(cut.stages(2).forward_seconds(), 6, 1e-12);
  EXPECT_NEAR(cut.stages(3).backward_seconds(), 12, 1e-12);
}

TEST(CutCostsTest, SumsStayAndTheRecordedCutIsReproduced) {
  std::mt19937 twister(7);
  MersenneSource random(&twister);
  for (int round = 0; round < 200; ++round) {
    GivenCosts recorded;
    const int num_stages = random.Int(2, 8);
    uint32_t total = 0;
    for (int s = 0; s < num_stages; ++s) {
      const auto blocks = static_cast<uint32_t>(random.Int(1, 9));
      recorded.add_blocks_per_stage(blocks);
      total += blocks;
      Stage* stage = recorded.add_stages();
      stage->set_forward_seconds(random.Real(0.1, 3));
      stage->set_backward_input_seconds(random.Real(0.1, 3));
      stage->set_backward_weight_seconds(random.Real(0.1, 3));
      stage->set_activation_bytes(random.Real(1, 100));
      stage->set_offload_seconds(random.Real(0, 1));
    }
    std::vector<uint32_t> blocks;
    for (uint32_t left = total; left > 0; left -= blocks.back()) {
      blocks.push_back(
          static_cast<uint32_t>(random.Int(1, static_cast<int>(left))));
    }
    const auto sum = [](const GivenCosts& costs, auto value) {
      double result = 0;
      for (const Stage& stage : costs.stages()) result += value(stage);
      return result;
    };
    const GivenCosts cut = CutCosts(recorded, blocks);
    for (const auto& value : std::vector<std::function<double(const Stage&)>>{
             [](const Stage& s) { return s.forward_seconds(); },
             [](const Stage& s) { return s.backward_input_seconds(); },
             [](const Stage& s) { return s.backward_weight_seconds(); },
             [](const Stage& s) { return s.activation_bytes(); },
             [](const Stage& s) { return s.offload_seconds(); }}) {
      EXPECT_NEAR(sum(cut, value), sum(recorded, value), 1e-9);
    }
    const GivenCosts same =
        CutCosts(recorded, {recorded.blocks_per_stage().begin(),
                            recorded.blocks_per_stage().end()});
    for (int s = 0; s < num_stages; ++s) {
      EXPECT_NEAR(same.stages(s).forward_seconds(),
                  recorded.stages(s).forward_seconds(), 1e-9);
      EXPECT_NEAR(same.stages(s).activation_bytes(),
                  recorded.stages(s).activation_bytes(), 1e-9);
    }
  }
}

TEST(CutCostsTest, FactorsAndCompressionComeFromTheLargestPart) {
  GivenCosts recorded = CostsOfBlocks({2, 4, 6});
  for (int s = 0; s < 3; ++s) {
    recorded.mutable_stages(s)->set_codec_seconds(s + 1);
    recorded.mutable_stages(s)->add_forward_factors(0.5 + s);
  }
  const GivenCosts cut = CutCosts(recorded, {1, 5, 3, 3});
  const std::vector<double> expected = {1, 2, 3, 3};
  for (int s = 0; s < 4; ++s) {
    EXPECT_EQ(cut.stages(s).codec_seconds(), expected[s]);
    ASSERT_EQ(cut.stages(s).forward_factors_size(), 1);
    EXPECT_EQ(cut.stages(s).forward_factors(0), expected[s] - 0.5);
  }
}

TEST(CutCostsTest, ReplicasAreDividedToo) {
  GivenCosts recorded = CostsOfBlocks({4, 4, 4});
  *recorded.add_replicas()->mutable_stages() = recorded.stages();
  auto* slow = recorded.add_replicas()->mutable_stages();
  *slow = recorded.stages();
  for (Stage& stage : *slow) {
    stage.set_forward_seconds(2 * stage.forward_seconds());
  }
  const GivenCosts cut = CutCosts(recorded, {6, 6});
  const GivenCosts expected = CostsOfBlocks({6, 6});
  for (int s = 0; s < 2; ++s) {
    const double forward = expected.stages(s).forward_seconds();
    EXPECT_NEAR(cut.replicas(0).stages(s).forward_seconds(), forward, 1e-9);
    EXPECT_NEAR(cut.replicas(1).stages(s).forward_seconds(), 2 * forward, 1e-9);
  }
}

TEST(CutCostsTest, AFieldThatAStageLacksIsRemoved) {
  GivenCosts recorded = CostsOfBlocks({4, 4, 4});
  recorded.mutable_stages(0)->set_overlapped_seconds(1);
  EXPECT_FALSE(CutCosts(recorded, {6, 6}).stages(0).has_overlapped_seconds());
}

Scenario ScenarioOf(const GivenCosts& costs, uint32_t pipeline) {
  Scenario scenario;
  scenario.set_schedule("1f1b");
  scenario.set_num_microbatches(8);
  scenario.mutable_parallelism()->set_pipeline(pipeline);
  *scenario.mutable_costs() = costs;
  return scenario;
}

TEST(CutGivenCostsTest, ThePipelineSizeIsFree) {
  const GivenCosts recorded = CostsOfBlocks({8, 8, 8, 8});
  const auto same = ResolveScenario("x", ScenarioOf(recorded, 4));
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_TRUE(same->warnings.empty());
  const auto other = ResolveScenario("x", ScenarioOf(recorded, 8));
  ASSERT_TRUE(other.ok()) << other.status();
  ExpectSameTimes(other->scenario.costs(),
                  CostsOfBlocks(std::vector<uint32_t>(8, 4)));
  ASSERT_EQ(other->warnings.size(), 1u);
  EXPECT_THAT(other->warnings[0], HasSubstr("4 recorded stages are divided"));
  // A result's scenario is simulated again as it is.
  const auto again = ResolveScenario("x", other->scenario);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->warnings.empty());
}

TEST(CutGivenCostsTest, ChunksOfAScheduleCount) {
  Scenario scenario = ScenarioOf(CostsOfBlocks({8, 8, 8, 8}), 2);
  scenario.set_schedule("interleaved-1f1b:v=4");
  const auto resolved = ResolveScenario("x", scenario);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->scenario.costs().stages_size(), 8);
}

TEST(CutGivenCostsTest, WhatDoesNotFitIsRefused) {
  const auto message = [](const Scenario& scenario) {
    return std::string(ResolveScenario("x", scenario).status().message());
  };
  const GivenCosts recorded = CostsOfBlocks({8, 8, 8, 8});
  EXPECT_THAT(message(ScenarioOf(recorded, 5)),
              HasSubstr("parallelism.blocks_per_stage is missing, expected 5 "
                        "numbers"));
  Scenario scenario = ScenarioOf(recorded, 2);
  for (const uint32_t blocks : {16u, 17u}) {
    scenario.mutable_parallelism()->add_blocks_per_stage(blocks);
  }
  EXPECT_THAT(message(scenario), HasSubstr("has 33 blocks, expected 32"));

  GivenCosts bad = recorded;
  bad.set_blocks_per_stage(1, 0);
  EXPECT_THAT(message(ScenarioOf(bad, 4)),
              HasSubstr("costs.blocks_per_stage[1] is 0"));
  bad.mutable_blocks_per_stage()->Set(1, 999'990);
  EXPECT_THAT(message(ScenarioOf(bad, 4)),
              HasSubstr("the sum of costs.blocks_per_stage is 1000014"));
  bad = recorded;
  bad.mutable_blocks_per_stage()->RemoveLast();
  EXPECT_THAT(message(ScenarioOf(bad, 4)), HasSubstr("has 3 entries"));
  bad = recorded;
  bad.clear_blocks_per_stage();
  EXPECT_THAT(message(ScenarioOf(bad, 8)), HasSubstr("costs.blocks_per_stage"));
  scenario = ScenarioOf(bad, 4);
  scenario.mutable_parallelism()->add_blocks_per_stage(32);
  EXPECT_THAT(message(scenario), HasSubstr("costs.blocks_per_stage is not"));
  bad = recorded;
  bad.mutable_stages(2)->clear_backward_seconds();
  bad.mutable_stages(2)->set_backward_input_seconds(1);
  bad.mutable_stages(2)->set_backward_weight_seconds(1);
  EXPECT_THAT(message(ScenarioOf(bad, 8)),
              HasSubstr("costs.stages[2] has the parts of a backward"));
}

TEST(SetHopTest, TimesReplaceAndFactorsMultiply) {
  GivenCosts costs = CostsOfBlocks({8, 8});
  costs.set_hop_seconds(0.4);
  ASSERT_TRUE(SetHop("--hop", "0.5x", &costs).ok());
  EXPECT_DOUBLE_EQ(costs.hop_seconds(), 0.2);
  ASSERT_TRUE(SetHop("--hop", "30ms", &costs).ok());
  EXPECT_DOUBLE_EQ(costs.hop_seconds(), 0.03);
  for (const char* text : {"x", "-1s", "-2x", "fast", "nan", "1e300x", ""}) {
    const absl::Status status = SetHop("--hop", text, &costs);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected seconds"));
  }
  ASSERT_TRUE(SetHop("--hop", "0", &costs).ok());
  EXPECT_THAT(std::string(SetHop("--hop", "2x", &costs).message()),
              HasSubstr("hop_seconds of the costs is 0"));
}

}  // namespace
}  // namespace weir::scenarios
