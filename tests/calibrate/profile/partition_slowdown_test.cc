// SPDX-License-Identifier: Apache-2.0
// Profiles of GPU partitions: validation, reading, printing and comparison.
#include "calibrate/profile/partition_slowdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/textproto.h"
#include "calibrate/describe/describe_profile.h"
#include "calibrate/profile/device_profile.h"
#include "tests/toy_profile.h"

namespace weir::calibrate::partition_slowdown_test {

using testing::ElementsAre;
using testing::HasSubstr;

// Returns the toy profile as a quarter of a GPU, measured with up to four
// active partitions.
DeviceProfile Quarter() {
  DeviceProfile profile = ToyProfile();
  EXPECT_TRUE(ParseTextProto("x", R"(
    num_partitions: 4 multiprocessors: 24
    slowdowns { pass: "forward" active: 2 factor: 1.1 }
    slowdowns { pass: "forward" active: 4 factor: 1.5 }
    slowdowns { pass: "backward_input" active: 2 factor: 1.2 }
    slowdowns { pass: "backward_weight" active: 4 factor: 1.3 })",
                             profile.mutable_partition_slowdown())
                  .ok());
  return profile;
}

TEST(PartitionSlowdownTest, BetweenNumbersOfPartsItIsLinear) {
  PartitionSlowdown share = Quarter().partition_slowdown();
  EXPECT_THAT(SharingCurve(share, "forward"), ElementsAre(1, 1.1, 1.3, 1.5));
  EXPECT_THAT(SharingCurve(share, "backward_input"),
              ElementsAre(1, 1.2, 1.2, 1.2));  // the value of the last point
  const auto weight = SharingCurve(share, "backward_weight");
  EXPECT_NEAR(weight[1], 1.1, 1e-12);  // between one partition and four
  EXPECT_THAT(SharingCurve(share, "optimizer"), ElementsAre(1, 1, 1, 1));
}

TEST(PartitionSlowdownTest, AllThatIsWrongIsSaidAtOnce) {
  DeviceProfile profile = Quarter();
  EXPECT_TRUE(ValidateDeviceProfile("x", profile).ok());
  PartitionSlowdown& share = *profile.mutable_partition_slowdown();
  share.set_num_partitions(1);
  share.set_multiprocessors(0);
  share.mutable_slowdowns(0)->set_pass("sideways");
  share.mutable_slowdowns(1)->set_active(1);
  share.mutable_slowdowns(1)->set_factor(0);
  *share.add_slowdowns() = share.slowdowns(2);
  share.mutable_slowdowns(2)->set_factor(1.0 / 0.0);
  share.mutable_slowdowns(3)->set_active(9);
  const std::string message(ValidateDeviceProfile("x", profile).message());
  for (const char* problem :
       {"x: partition_slowdown.num_partitions is 1, expected 2 to 1024",
        "x: partition_slowdown.multiprocessors is 0, expected 1 to 100000",
        "x: partition_slowdown.slowdowns[0].pass is \"sideways\", expected one "
        "of: "
        "forward, backward_input, backward_weight, optimizer",
        "x: partition_slowdown.slowdowns[1].active is 1, expected 2 to 2",
        "x: partition_slowdown.slowdowns[1].factor is 0, expected 0.001 to "
        "1000",
        "x: partition_slowdown.slowdowns[2].factor is inf, expected 0.001 to "
        "1000",
        "x: partition_slowdown.slowdowns[3].active is 9, expected 2 to 2",
        "x: partition_slowdown.slowdowns[4].active is 2 after 2 of the same "
        "pass, "
        "expected ascending numbers"}) {
    EXPECT_THAT(message, HasSubstr(problem));
  }
}

TEST(PartitionSlowdownTest, ComesBackFromText) {
  const DeviceProfile profile = Quarter();
  DeviceProfile again;
  ASSERT_TRUE(ParseTextProto("x", PrintTextProto(profile), &again).ok());
  EXPECT_EQ(again.SerializeAsString(), profile.SerializeAsString());
}

TEST(PartitionSlowdownTest, IsShownAsATableAndAsJson) {
  EXPECT_THAT(
      DescribeProfile(Quarter()),
      HasSubstr("\none of 4 partitions of a GPU, 24 multiprocessors each\n"
                "busy partitions  forward  backward_input  "
                "backward_weight  optimizer\n"
                "2                  1.100           1.200"
                "                -          -\n"
                "4                  1.500               -"
                "            1.300          -\n"));
  EXPECT_EQ(ProfileJson(Quarter())["partition_slowdown"]["num_partitions"], 4);
  EXPECT_TRUE(ProfileJson(ToyProfile())["partition_slowdown"].is_null());
}

TEST(PartitionSlowdownTest, DifferencesAreFigures) {
  DeviceProfile other = Quarter();
  other.mutable_partition_slowdown()->mutable_slowdowns(1)->set_factor(1.8);
  const ProfileDifference difference = DiffProfiles(Quarter(), other);
  ASSERT_EQ(difference.figures.size(), 1);
  EXPECT_EQ(difference.figures[0].path, "partition_slowdown.forward[4]");
  EXPECT_NEAR(difference.Largest(), 0.2, 1e-12);
  // A profile of a whole GPU differs infinitely.
  EXPECT_EQ(DiffProfiles(Quarter(), ToyProfile()).figures.size(), 6);
  EXPECT_GT(DiffProfiles(Quarter(), ToyProfile()).Largest(), 1e300);
}

}  // namespace weir::calibrate::partition_slowdown_test
