// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/power_cap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "plan/energy/power_model.h"

namespace weir::plan::power_cap_test {

using testing::HasSubstr;

// 400, 300 and 200 W while computing; 250 W in collectives, 50 W of the node.
PowerModel Model() {
  PowerModel model;
  model.set_name("test");
  model.mutable_compute_watts()->set_value(400);
  model.mutable_communication_watts()->set_value(250);
  model.mutable_waiting_watts()->set_value(100);
  model.mutable_node_watts()->set_value(50);
  const double clocks[][3] = {{1400, 1, 1}, {1200, 0.9, 0.75}, {800, 0.6, 0.5}};
  for (const auto& [megahertz, speed, power] : clocks) {
    PowerModel::Clock* clock = model.add_clocks();
    clock->set_megahertz(megahertz);
    clock->mutable_speed()->set_value(speed);
    clock->mutable_power()->set_value(power);
  }
  EXPECT_TRUE(ValidatePowerModel("test", model).ok());
  return model;
}

TEST(PowerCapTest, TheHighestClockWithinTheCapIsChosen) {
  struct Case {
    PowerCaps caps;
    double megahertz, speed, compute_watts, node_watts;
  };
  const Case cases[] = {
      {{}, 1400, 1, 400, 8 * 450},
      {{3600, 0, 0}, 1400, 1, 400, 8 * 450},
      {{3599, 0, 0}, 1200, 0.9, 300, 8 * 350},
      {{2800, 0, 0}, 1200, 0.9, 300, 8 * 350},
      // Collectives take 250 W, more than computing at 800 MHz.
      {{2799, 0, 0}, 800, 0.6, 200, 8 * 300},
      {{0, 4 * 3600, 4}, 1400, 1, 400, 8 * 450},
      {{0, 4 * 3600 - 1, 4}, 1200, 0.9, 300, 8 * 350},
      {{2800, 4 * 3600, 4}, 1200, 0.9, 300, 8 * 350},
      {{3600, 4 * 2400, 4}, 800, 0.6, 200, 8 * 300}};
  for (const Case& one : cases) {
    const auto clock = ClockWithinCaps("test", Model(), 8, one.caps);
    ASSERT_TRUE(clock.ok()) << clock.status();
    EXPECT_EQ(clock->megahertz, one.megahertz);
    EXPECT_EQ(clock->speed, one.speed);
    EXPECT_EQ(clock->power.compute_watts().value(), one.compute_watts);
    EXPECT_EQ(clock->node_watts, one.node_watts);
  }
}

TEST(PowerCapTest, CapsBelowTheLowestClockAreRefused) {
  EXPECT_THAT(
      std::string(
          ClockWithinCaps("test", Model(), 8, {2399, 0, 0}).status().message()),
      HasSubstr("a node of 8 GPUs may take 2399 W, but takes 2400 W at "
                "the lowest clock, 800 MHz"));
  PowerModel model = Model();
  model.clear_clocks();
  const auto whole = ClockWithinCaps("test", model, 8, {3600, 0, 0});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->speed, 1);
  EXPECT_THAT(
      std::string(
          ClockWithinCaps("test", model, 8, {3599, 0, 0}).status().message()),
      HasSubstr("or a power model with clocks"));
}

TEST(PowerCapTest, ClocksDescendFromTheWholeSpeed) {
  PowerModel model = Model();
  model.mutable_clocks(1)->mutable_speed()->set_value(1.1);
  model.mutable_clocks(0)->mutable_power()->set_value(0.9);
  const std::string message(ValidatePowerModel("p", model).message());
  EXPECT_THAT(message, HasSubstr("clocks[0].power.value"));
  EXPECT_THAT(message, HasSubstr("clocks[1].speed.value"));
}

}  // namespace weir::plan::power_cap_test
