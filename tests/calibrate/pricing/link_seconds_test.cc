// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pricing/link_seconds.h"

#include <gtest/gtest.h>

namespace weir::calibrate::link_seconds_test {

LinkClass Link(LinkClass::Distance distance) {
  LinkClass link;
  link.set_distance(distance);
  return link;
}

void AddPiece(double from_bytes, double latency, double rate, LinkClass* link) {
  TransferPiece* piece = link->add_pieces();
  piece->set_from_bytes(from_bytes);
  piece->set_latency_seconds(latency);
  piece->set_bytes_per_second(rate);
}

TEST(LinkSecondsTest, ThePieceThatHoldsTheSizeCounts) {
  LinkClass link = Link(LinkClass::SAME_SWITCH);
  AddPiece(0, 10e-6, 10e9, &link);
  AddPiece(1e6, 85e-6, 40e9, &link);  // both pieces take 110 us at 1 MB
  EXPECT_DOUBLE_EQ(LinkTimeOf(link, 0).Seconds(), 10e-6);
  EXPECT_DOUBLE_EQ(LinkTimeOf(link, 0.5e6).Seconds(), 60e-6);
  EXPECT_DOUBLE_EQ(LinkTimeOf(link, 1e6).Seconds(), 110e-6);
  EXPECT_DOUBLE_EQ(LinkTimeOf(link, 5e6).Seconds(), 210e-6);
  EXPECT_DOUBLE_EQ(LinkTimeOf(link, 5e6).latency_seconds, 85e-6);
}

TEST(LinkSecondsTest, ALineThatMeetsTheAxisBelowZeroIsAllLinks) {
  LinkClass link = Link(LinkClass::SAME_SWITCH);
  AddPiece(0, 1e-6, 1e9, &link);
  AddPiece(1e6, -999e-6, 0.5e9, &link);
  const LinkTime time = LinkTimeOf(link, 2e6);
  EXPECT_EQ(time.latency_seconds, 0);
  EXPECT_DOUBLE_EQ(time.Seconds(), 3001e-6);
}

TEST(LinkSecondsTest, NodesWithoutKnownLeavesStandForOneLeafNotTheOtherWay) {
  DeviceProfile profile;
  *profile.add_links() = Link(LinkClass::SAME_SWITCH);
  EXPECT_EQ(FindLink(profile, LinkClass::SAME_LEAF), nullptr);
  *profile.add_links() = Link(LinkClass::ACROSS_SPINES);
  EXPECT_EQ(FindLink(profile, LinkClass::SAME_LEAF), &profile.links(1));
  *profile.add_links() = Link(LinkClass::SAME_LEAF);
  EXPECT_EQ(FindLink(profile, LinkClass::SAME_LEAF), &profile.links(2));
  profile.mutable_links()->DeleteSubrange(1, 1);
  EXPECT_EQ(FindLink(profile, LinkClass::ACROSS_SPINES), nullptr);
  EXPECT_EQ(FindLink(profile, LinkClass::SAME_NODE), nullptr);
}

}  // namespace weir::calibrate::link_seconds_test
