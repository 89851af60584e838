// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/device_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/plan/papers/random_work.h"

namespace weir::plan::device_types_test {

using testing::ElementsAre;

// Returns two servers with three devices each.
PlannerWork TwoServers() {
  Random random(1);
  return RandomWork(1, 2, 3, &random);
}

TEST(DeviceTypesTest, AreServersOfEqualDevices) {
  PlannerWork work = TwoServers();
  // A device's bandwidth to itself does not affect its type.
  for (const double itself :
       {0.0, 10.0, std::numeric_limits<double>::infinity()}) {
    for (size_t device = 0; device < 6; ++device) {
      work.bytes_per_second[device][device] = itself;
    }
    const DeviceTypes types = DeviceTypesOf(work);
    EXPECT_THAT(types.devices,
                ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
    EXPECT_EQ(types.num_types(), 2);
    EXPECT_THAT(types.bytes_per_second,
                ElementsAre(ElementsAre(10, 1), ElementsAre(1, 10)));
  }
}

TEST(DeviceTypesTest, AnythingThatDiffersTellsADeviceApart) {
  const auto expect_apart = [](const PlannerWork& work) {
    EXPECT_THAT(
        DeviceTypesOf(work).devices,
        ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3, 4, 5)));
  };
  PlannerWork work = TwoServers();
  work.devices[2].speed = 0.5;
  expect_apart(work);
  work = TwoServers();
  work.devices[2].memory_bytes /= 2;
  expect_apart(work);
  // Bandwidth to or from the other devices of its server.
  for (const bool from : {false, true}) {
    work = TwoServers();
    for (const int other : {0, 1}) {
      (from ? work.bytes_per_second[2][other]
            : work.bytes_per_second[other][2]) = 9;
    }
    expect_apart(work);
    // Bandwidth to or from the other server, whose devices still have one
    // type.
    work = TwoServers();
    for (const int other : {3, 4, 5}) {
      (from ? work.bytes_per_second[2][other]
            : work.bytes_per_second[other][2]) = 2;
    }
    expect_apart(work);
  }
}

}  // namespace weir::plan::device_types_test
