// SPDX-License-Identifier: Apache-2.0
// Checks that the placer computes the times of the final order.
#include "schedules/systems/pass_placer.h"

#include "gtest/gtest.h"
#include "schedules/walk.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::pass_placer_test {

ScheduleSpec Spec() {
  ScheduleSpec spec = {.num_ranks = 3, .num_microbatches = 7};
  for (int stage = 0; stage < 3; ++stage) {
    StagePassCosts costs;
    costs.forward = 1 + 0.3 * stage;
    costs.backward_input = 1.7 - 0.2 * stage;
    costs.backward_weight = 0.9;
    costs.activation = 3;
    costs.weight_gradient_inputs = 2;
    spec.costs.stages.push_back(costs);
  }
  spec.costs.hop = 0.4;
  return spec;
}

TEST(PassPlacerTest, KnowsTheTimesOfTheReplay) {
  const ScheduleSpec spec = Spec();
  const Schedule schedule = Generated("zb-h2", spec);
  const WalkTimes times = TimedWalk(schedule, spec.costs);
  PassPlacer placer(spec, schedule.routes[0], 6);
  const Dependencies dependencies(schedule);
  WalkSchedule(schedule, dependencies, [&](int rank, int32_t position) {
    const Action& action = schedule.rank_actions[rank][position];
    placer.Put(action.op, action.stage);
    EXPECT_NEAR(placer.free_at(rank), times.end[rank][position], 1e-12);
  });
  EXPECT_NEAR(placer.longest_span(), times.span(), 1e-12);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_NEAR(placer.span(rank),
                times.end[rank].back() - times.start[rank].front(), 1e-12);
  }
  EXPECT_EQ(placer.TakeActions(), schedule.rank_actions);
}

// A limit of 2 is 6 here: two activations, or one and the inputs of one W.
TEST(PassPlacerTest, MakesRoomByWeightsOnly) {
  const ScheduleSpec spec = Spec();
  const std::vector<int> route = {0, 1, 2};
  PassPlacer placer(spec, route, 2);
  EXPECT_TRUE(placer.HasRoomForForwards(2, 2));
  EXPECT_FALSE(placer.HasRoomForForwards(2, 3));
  for (int stage = 0; stage < 3; ++stage) placer.Put(Op::kForward, stage);
  placer.Put(Op::kBackwardInput, 2);
  EXPECT_TRUE(placer.HasRoomForForwards(2, 1));
  EXPECT_EQ(placer.WeightsBeforeForward(2), 0);
  placer.Put(Op::kForward, 0);
  placer.Put(Op::kForward, 1);
  placer.Put(Op::kForward, 2);
  EXPECT_EQ(placer.WeightsBeforeForward(2), 1);
  placer.MakeRoomForForward(2);
  EXPECT_EQ(placer.num(Op::kBackwardWeight, 2), 1);
  EXPECT_FALSE(placer.HasWeight(2));
}

TEST(PassPlacerTest, KnowsWhatCanComeNext) {
  ScheduleSpec spec = Spec();
  spec.num_microbatches = 1;
  const std::vector<int> route = {0, 1, 2};
  PassPlacer placer(spec, route, 3);
  EXPECT_TRUE(placer.CanPut(Op::kForward, 0));
  EXPECT_FALSE(placer.CanPut(Op::kForward, 1));
  EXPECT_FALSE(placer.CanPut(Op::kBackwardInput, 2));
  for (int stage = 0; stage < 3; ++stage) placer.Put(Op::kForward, stage);
  EXPECT_FALSE(placer.CanPut(Op::kForward, 0));  // that was the last
  EXPECT_TRUE(placer.CanPut(Op::kBackwardInput, 2));
  EXPECT_FALSE(placer.CanPut(Op::kBackwardInput, 1));
}

TEST(PassPlacerTest, ArrivesAHopAfterItsProducer) {
  const ScheduleSpec spec = Spec();
  const std::vector<int> route = {0, 1, 2};
  PassPlacer placer(spec, route, 3);
  EXPECT_LT(placer.Arrival(Op::kForward, 0), 0);
  placer.Put(Op::kForward, 0);
  EXPECT_DOUBLE_EQ(placer.Arrival(Op::kForward, 1), 1.4);
  placer.Put(Op::kForward, 1);
  placer.Put(Op::kForward, 2);
  EXPECT_LT(placer.Arrival(Op::kBackwardInput, 2), 0);
  placer.Put(Op::kBackwardInput, 2);
  EXPECT_DOUBLE_EQ(placer.Arrival(Op::kBackwardInput, 1),
                   placer.free_at(2) + 0.4);
}

}  // namespace weir::schedules::pass_placer_test
