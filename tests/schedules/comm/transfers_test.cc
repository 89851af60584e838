// SPDX-License-Identifier: Apache-2.0
// Tests the matching of sends with receives and the faults of transfers.
#include "schedules/comm/transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_split.h"

namespace weir::schedules::transfers_test {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = TransferFault::Kind;

// Parses a program with one rank per line and actions separated by spaces.
CommProgram ProgramOf(const std::string& text) {
  CommProgram program;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::vector<CommAction>& actions = program.ranks.emplace_back();
    for (const absl::string_view one : absl::StrSplit(line, ' ')) {
      actions.push_back(ParseCommAction(one).value());
    }
  }
  return program;
}

// Kind, action and other action. Actions are "rank.position", or empty.
using Fault = std::tuple<Kind, std::string, std::string>;

std::string TextOf(const Place& place) {
  if (!place.exists()) return "";
  return std::to_string(place.rank) + "." + std::to_string(place.position);
}

std::vector<Fault> FaultsOf(const std::string& text) {
  std::vector<TransferFault> faults;
  LinkProgram(ProgramOf(text), 100, &faults);
  std::vector<Fault> found;
  for (const TransferFault& fault : faults) {
    found.emplace_back(fault.kind, TextOf(fault.place), TextOf(fault.other));
  }
  return found;
}

constexpr char kFirst[] = "0F0 0SEND_F0 0RECV_B0 0B0";
constexpr char kLast[] = "1RECV_F0 1F0 1B0 1SEND_B0";

std::string TwoRanks(const std::string& first, const std::string& last) {
  return first + "\n" + last;
}

TEST(TransfersTest, SendsMeetReceives) {
  std::vector<TransferFault> faults;
  const Links links =
      LinkProgram(ProgramOf(TwoRanks(kFirst, kLast)), 100, &faults);
  EXPECT_TRUE(faults.empty());
  EXPECT_THAT(links.first, ElementsAre(0, 4, 8));
  // 0B0 uses 0RECV_B0, which matches 1SEND_B0, and so on.
  EXPECT_THAT(links.partner, ElementsAre(-1, 4, 7, 2, 1, 4, -1, 2));
  EXPECT_THAT(links.local, ElementsAre(-1, 0, -1, -1, -1, -1, -1, 6));
  EXPECT_EQ(links.PlaceOf(3), (Place{0, 3}));
  EXPECT_EQ(links.PlaceOf(4), (Place{1, 0}));
}

TEST(TransfersTest, OneSideAloneIsUnmatched) {
  EXPECT_THAT(FaultsOf(TwoRanks(kFirst, "1F0 1B0 1SEND_B0")),
              ElementsAre(Fault(Kind::kUnmatched, "0.1", ""),
                          Fault(Kind::kMissing, "1.0", "")));
  EXPECT_THAT(FaultsOf(TwoRanks("0F0 0RECV_B0 0B0", kLast)),
              ElementsAre(Fault(Kind::kUnmatched, "1.0", "")));
}

TEST(TransfersTest, ASecondTimeNamesTheFirst) {
  EXPECT_THAT(FaultsOf(TwoRanks("0F0 0SEND_F0 0SEND_F0 0RECV_B0 0B0", kLast)),
              ElementsAre(Fault(Kind::kTwice, "0.2", "0.1")));
}

TEST(TransfersTest, NothingIsSentBeforeItIsMade) {
  EXPECT_THAT(FaultsOf(TwoRanks("0SEND_F0 0F0 0RECV_B0 0B0", kLast)),
              ElementsAre(Fault(Kind::kNothing, "0.0", "0.1")));
  EXPECT_THAT(FaultsOf(TwoRanks("0SEND_F0 0RECV_B0 0B0", kLast)),
              ElementsAre(Fault(Kind::kNothing, "0.0", "")));
}

TEST(TransfersTest, NothingIsTakenBeforeItIsReceived) {
  EXPECT_THAT(FaultsOf(TwoRanks(kFirst, "1F0 1RECV_F0 1B0 1SEND_B0")),
              ElementsAre(Fault(Kind::kLate, "1.0", "1.1")));
}

TEST(TransfersTest, NothingIsReceivedForNobody) {
  EXPECT_THAT(FaultsOf(TwoRanks("0F0 0SEND_F0 0RECV_B0", kLast)),
              ElementsAre(Fault(Kind::kUnused, "0.2", "")));
}

// Such a transfer has no other side to report.
TEST(TransfersTest, NothingLeavesThePipeline) {
  const std::string first = kFirst, last = kLast;
  EXPECT_THAT(FaultsOf(TwoRanks("0RECV_F0 " + first, last)),
              ElementsAre(Fault(Kind::kNoStage, "0.0", "")));
  EXPECT_THAT(FaultsOf(TwoRanks(first + " 0SEND_B0", last)),
              ElementsAre(Fault(Kind::kNoStage, "0.4", "")));
  EXPECT_THAT(FaultsOf(TwoRanks(first, last + " 1SEND_F0")),
              ElementsAre(Fault(Kind::kNoStage, "1.4", "")));
  EXPECT_THAT(FaultsOf(TwoRanks(first, "1RECV_B0 " + last)),
              ElementsAre(Fault(Kind::kNoStage, "1.0", "")));
}

TEST(TransfersTest, ARankSendsNothingToItself) {
  EXPECT_THAT(FaultsOf("0F0 0SEND_F0 1RECV_F0 1F0 1B0 0B0"),
              ElementsAre(Fault(Kind::kItself, "0.1", "0.2")));
}

// Without tags, the k-th send from one rank to another matches the k-th
// receive. Crossed transfers are reported once per pair of ranks.
TEST(TransfersTest, PairsOfRanksSendInOneOrder) {
  const std::string first =
      "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1";
  EXPECT_THAT(FaultsOf(TwoRanks(first,
                                "1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 1F1 1B1 "
                                "1SEND_B1")),
              IsEmpty());
  EXPECT_THAT(FaultsOf(TwoRanks(first,
                                "1RECV_F1 1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 "
                                "1SEND_B1")),
              ElementsAre(Fault(Kind::kCrossed, "0.1", "1.0")));
}

TEST(TransfersTest, FaultsAreCutOff) {
  std::vector<TransferFault> faults;
  LinkProgram(ProgramOf("0F0 0SEND_F0 0SEND_F1\n1F0 1F1"), 2, &faults);
  EXPECT_EQ(faults.size(), 2);
}

}  // namespace weir::schedules::transfers_test
