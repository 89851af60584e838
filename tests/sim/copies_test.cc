// SPDX-License-Identifier: Apache-2.0
// Tests stages that several ranks of one pipeline hold: bidirectional pipelines
// and replicated stages.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/simulate.h"
#include "tests/oracle.h"
#include "tests/sim/given_scenario.h"
#include "tests/sim/hand_schedules.h"
#include "tests/sim/measured.h"

namespace weir::sim::copies_test {

Measured TwoStages() {
  Measured measured;
  measured.num_ranks = 2;
  measured.num_microbatches = 2;
  measured.forward_seconds = {1, 1};
  measured.backward_seconds = {2, 2};
  measured.activation_bytes = {0, 0};
  measured.parameter_bytes = {300, 400};
  return measured;
}

std::map<std::string, double> Classes(const RankResult& rank) {
  std::map<std::string, double> classes;
  for (const MemoryClass& entry : rank.peak_memory_classes()) {
    classes[entry.name()] = entry.bytes();
  }
  return classes;
}

// Returns start and end of each stage's reduction in seconds, by stage. All
// members share them.
std::map<int, std::pair<double, double>> Reductions(const Result& result) {
  std::map<int, std::pair<double, double>> spans;
  const auto& events = result.timeline().collectives();
  for (int i = 0; i < events.gpu_size(); ++i) {
    EXPECT_EQ(events.kind(i), Timeline::Collectives::GRADIENT_REDUCTION);
    spans[events.stage(i)] = {events.start_seconds(i), events.end_seconds(i)};
  }
  return spans;
}

// Both ranks hold both stages and run F 0..1, F 1..2, B 2..4, B 4..6.
TEST(CopiesTest, GradientsAreReducedOverTheCopiesAtTheEnd) {
  const Result result =
      RunByHand(Resolve(TwoStages(), OneSwitch(2, 100, 0)), TwoDirections());
  const auto reductions = Reductions(result);
  // From 6 on, 300 and 400 bytes in each direction share 100 bytes/s.
  EXPECT_NEAR(reductions.at(0).first, 6, 1e-9);
  EXPECT_NEAR(reductions.at(0).second, 12, 1e-9);
  EXPECT_NEAR(reductions.at(1).second, 13, 1e-9);
  EXPECT_NEAR(result.makespan_seconds(), 13, 1e-9);
  for (const RankResult& rank : result.ranks()) {
    EXPECT_NEAR(rank.busy_seconds(), 6, 1e-9);
    EXPECT_NEAR(rank.exposed_communication_seconds(), 7, 1e-9);
    auto classes = Classes(rank);
    EXPECT_EQ(classes["weights"], 300 + 400);
    EXPECT_EQ(classes["gradients"], 300 + 400);
    EXPECT_EQ(classes["optimizer_state"], 2 * (300 + 400));
  }
}

// With overlap, a stage is reduced as soon as all its copies have finished its
// backwards.
TEST(CopiesTest, GradientsAreReducedEagerly) {
  Measured measured = TwoStages();
  measured.overlapped_reduction = true;
  const Result result =
      RunByHand(Resolve(measured, OneSwitch(2, 100, 0)), TwoDirections());
  const auto reductions = Reductions(result);
  EXPECT_NEAR(reductions.at(1).first, 4, 1e-9);
  EXPECT_NEAR(reductions.at(1).second, 10, 1e-9);
  EXPECT_NEAR(reductions.at(0).first, 6, 1e-9);
  EXPECT_NEAR(reductions.at(0).second, 11, 1e-9);
  EXPECT_NEAR(result.makespan_seconds(), 11, 1e-9);
}

// Two replicas of two copies form one ring of four.
TEST(CopiesTest, ReplicasAndCopiesReduceTogether) {
  Measured measured = TwoStages();
  measured.num_replicas = 2;
  const Result result =
      RunByHand(Resolve(measured, OneSwitch(4, 100, 0)), TwoDirections());
  EXPECT_EQ(result.timeline().collectives().gpu_size(), 2 * 4);
  const auto reductions = Reductions(result);
  // Each link carries 3/2 of the bytes; both stages share the links.
  EXPECT_NEAR(reductions.at(0).second, 6 + 2 * 4.5, 1e-9);
  EXPECT_NEAR(reductions.at(1).second, 6 + 2 * 4.5 + 1.5, 1e-9);
}

// One microbatch in each direction: as many activations as D stages hold in one
// direction.
TEST(CopiesTest, CopiesCountAsStagesOfTheirOwn) {
  GivenScenario given;
  given.num_ranks = given.num_microbatches = 2;
  const Result result = RunByHand(Resolve(given), TwoDirections());
  EXPECT_EQ(result.ranks(0).peak_activation_microbatches(), 2);
  EXPECT_EQ(result.ranks(1).peak_activation_microbatches(), 2);
  EXPECT_EQ(result.chunks(), 1u);
}

// The copies of a stage read the updates of each other: each forward waits for
// the other's backward, although no bytes are sent. The routes repeat after two
// batches, and so does the steady state.
TEST(CopiesTest, RoundRobinReachesItsSteadyState) {
  constexpr int kBatches = 24;
  const schedules::Schedule schedule = RoundRobin(kBatches);
  GivenScenario given;
  given.num_ranks = 3;
  given.num_microbatches = 1;
  given.forward_seconds = {2, 1};
  given.backward_seconds = {4, 2};
  const Result result = RunByHand(Resolve(given), schedule);
  EXPECT_TRUE(result.steady_state());
  oracle::Costs costs;
  costs.forward_seconds = given.forward_seconds;
  costs.backward_seconds = given.backward_seconds;
  const auto timing = oracle::Evaluate(schedule, costs);
  ASSERT_TRUE(timing.ok()) << timing.status();
  const auto end_of = [&](int k) {
    const auto& actions = schedule.rank_actions[k % 2];
    for (size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].op == schedules::Op::kBackward &&
          actions[i].microbatch == k) {
        return timing->end_seconds[k % 2][i];
      }
    }
    return 0.0;
  };
  const double period = end_of(kBatches - 6) - end_of(kBatches - 8);
  EXPECT_NEAR(result.batch_seconds(), period / 2, 1e-9);
  // Never faster than the busiest rank.
  EXPECT_GE(result.batch_seconds(), 3 - 1e-9);
}

}  // namespace weir::sim::copies_test
