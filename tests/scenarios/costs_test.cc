// SPDX-License-Identifier: Apache-2.0
#include "scenarios/costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "scenarios/scenario.h"

namespace weir::scenarios::costs_test {

using ::testing::HasSubstr;

std::string Message(const absl::StatusOr<GivenCosts>& costs) {
  EXPECT_EQ(costs.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(costs.status().message());
}

TEST(CostsTest, FusedBackwardIsOneNumber) {
  const auto costs = ParseCosts("f=1,b=2");
  ASSERT_TRUE(costs.ok()) << costs.status();
  ASSERT_EQ(costs->stages_size(), 1);
  EXPECT_EQ(costs->stages(0).forward_seconds(), 1);
  EXPECT_EQ(costs->stages(0).backward_seconds(), 2);
  EXPECT_FALSE(costs->stages(0).has_backward_input_seconds());
  EXPECT_FALSE(costs->stages(0).has_backward_weight_seconds());
  EXPECT_EQ(costs->hop_seconds(), 0);
}

TEST(CostsTest, SplitBackwardIsTwoNumbers) {
  const auto costs = ParseCosts(" c=0.5 , w=3,i=2, f=1");
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_EQ(costs->stages(0).forward_seconds(), 1);
  EXPECT_EQ(costs->stages(0).backward_input_seconds(), 2);
  EXPECT_EQ(costs->stages(0).backward_weight_seconds(), 3);
  EXPECT_FALSE(costs->stages(0).has_backward_seconds());
  EXPECT_EQ(costs->hop_seconds(), 0.5);
}

TEST(CostsTest, UnitsAreSeconds) {
  const auto costs = ParseCosts("f=20ms,b=1.5s,c=30us");
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_DOUBLE_EQ(costs->stages(0).forward_seconds(), 0.02);
  EXPECT_DOUBLE_EQ(costs->stages(0).backward_seconds(), 1.5);
  EXPECT_DOUBLE_EQ(costs->hop_seconds(), 30e-6);
}

TEST(CostsTest, AListHasOneEntryPerStage) {
  const auto costs = ParseCosts("f=1/2ms/3,b=4,c=0.5");
  ASSERT_TRUE(costs.ok()) << costs.status();
  ASSERT_EQ(costs->stages_size(), 3);
  EXPECT_DOUBLE_EQ(costs->stages(1).forward_seconds(), 2e-3);
  EXPECT_EQ(costs->stages(2).forward_seconds(), 3);
  EXPECT_EQ(costs->stages(2).backward_seconds(), 4);
  EXPECT_THAT(Message(ParseCosts("f=1/2,b=1/2/3")),
              HasSubstr("expected one for each stage"));
  EXPECT_THAT(Message(ParseCosts("f=1,b=1,c=1/2")),
              HasSubstr("c is a list, expected one number for all hops"));
  EXPECT_THAT(Message(ParseCosts("f=1//2,b=1")), HasSubstr("f is \"1//2\""));
}

TEST(CostsTest, EveryBadEntryIsNamedAtOnce) {
  const std::string message =
      Message(ParseCosts("f=-1,b=nan,i=inf,w=,c=1h,x=1,f=1,f=2"));
  EXPECT_THAT(message, HasSubstr("--costs: f is \"-1\""));
  EXPECT_THAT(message, HasSubstr("--costs: b is \"nan\""));
  EXPECT_THAT(message, HasSubstr("--costs: i is \"inf\""));
  EXPECT_THAT(message, HasSubstr("--costs: w is \"\""));
  EXPECT_THAT(message, HasSubstr("--costs: c is \"1h\""));
  EXPECT_THAT(message, HasSubstr("--costs: \"x=1\" is unknown"));
  EXPECT_THAT(message, HasSubstr("--costs: f is given twice"));
}

TEST(CostsTest, WhatIsMissingOrTooMuchIsNamed) {
  EXPECT_EQ(Message(ParseCosts("b=2")), "--costs: f is missing");
  const std::string no_backward =
      "--costs: the backward is missing, expected b or both i and w";
  EXPECT_EQ(Message(ParseCosts("f=2")), no_backward);
  EXPECT_EQ(Message(ParseCosts("f=2,i=1")), no_backward);
  EXPECT_EQ(Message(ParseCosts("f=2,w=1")), no_backward);
  EXPECT_EQ(Message(ParseCosts("f=2,b=1,i=1,w=1")),
            "--costs: b is given with i or w, expected b or both i and w");
}

TEST(CostsTest, NonsenseIsRefused) {
  for (const char* text :
       {"", ",", "=", "f", "f=", "f=1,", "f=1,b=2,", "f=1;b=2", "f==1,b=2",
        "f=1=1,b=2", "F=1,B=2", "f=0,b=0", "f=1e300,b=1", "f=1 s,b=2x", "fb=1",
        "f=\xff,b=1"}) {
    EXPECT_EQ(ParseCosts(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

class CostsFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<GivenCosts> Load(const std::string& text) {
    EXPECT_TRUE(WriteFile(path_, text).ok());
    auto costs = LoadCosts(path_);
    unlink(path_.c_str());
    return costs;
  }

  const std::string path_ =
      absl::StrCat(::testing::TempDir(), "costs", getpid(), ".textproto");
};

TEST_F(CostsFileTest, TableHasOneEntryPerStage) {
  const auto costs = Load(R"(
    stages { forward_seconds: 1 backward_seconds: 2 }
    stages { forward_seconds: 3 backward_input_seconds: 4
             backward_weight_seconds: 0 } hop_seconds: 5)");
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_EQ(costs->stages_size(), 2);
  EXPECT_EQ(costs->stages(1).forward_seconds(), 3);
  EXPECT_EQ(costs->hop_seconds(), 5);
}

TEST_F(CostsFileTest, EveryBadStageIsNamedAtOnce) {
  const std::string message = Message(Load(R"(
    stages { backward_seconds: 2 }
    stages { forward_seconds: 1 backward_input_seconds: -1 }
    stages { forward_seconds: 1 backward_seconds: 1
             backward_weight_seconds: 1 }
    hop_seconds: nan)"));
  EXPECT_THAT(message, HasSubstr("stages[0].forward_seconds is missing"));
  EXPECT_THAT(message, HasSubstr("stages[1] has no backward time"));
  EXPECT_THAT(message, HasSubstr("stages[1].backward_input_seconds is -1"));
  EXPECT_THAT(message,
              HasSubstr("stages[2] has both backward_seconds and its parts"));
  EXPECT_THAT(message, HasSubstr("hop_seconds is nan"));
}

TEST_F(CostsFileTest, EmptyTableIsRefused) {
  EXPECT_THAT(Message(Load("")), HasSubstr("stages is empty"));
}

TEST_F(CostsFileTest, MissingFileIsNotFound) {
  EXPECT_EQ(LoadCosts("/nowhere.textproto").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(CostsTest, MemoryIsInBytesAndKnownToGenerators) {
  const auto costs = ParseCosts("f=1,i=1,w=1,a=4e9,g=1e9");
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_EQ(costs->stages(0).activation_bytes(), 4e9);
  const schedules::PassCosts passes = PassCostsOf(*costs);
  EXPECT_EQ(passes.of(0).activation, 4e9);
  EXPECT_EQ(passes.of(0).weight_gradient_inputs, 1e9);
  const schedules::PassCosts alone =
      PassCostsOf(*ParseCosts("f=1,b=4,c=2,a=7"));
  EXPECT_EQ(alone.of(3).weight_gradient_inputs, 7);
  EXPECT_EQ(alone.of(3).backward_input, 2);
  EXPECT_EQ(alone.hop, 2);
  EXPECT_EQ(PassCostsOf(*ParseCosts("f=1,b=4")).of(0).activation, 1);
}

TEST(CostsTest, MemoryMustBeANumberOfBytes) {
  EXPECT_EQ(Message(ParseCosts("f=1,b=1,a=3s")),
            "--costs: a is \"3s\", expected bytes from 0 to 1e15");
  EXPECT_EQ(Message(ParseCosts("f=1,b=1,g=5")),
            "--costs: stages[0].activation_bytes is missing, expected it "
            "together with weight_gradient_bytes");
}

}  // namespace weir::scenarios::costs_test
