// SPDX-License-Identifier: Apache-2.0
#include "models/layout.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir::models::layout_test {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(absl::string_view text) {
  return std::string(ParseLayout("layout", text).status().message());
}

std::vector<LayerWork> Layers(int num_blocks) {
  std::vector<LayerWork> layers(num_blocks + 2);
  for (int i = 0; i < num_blocks; ++i) {
    layers[i + 1].name = absl::StrCat("block ", i);
  }
  layers.front().role = LayerRole::kEmbedding;
  layers.back().role = LayerRole::kHead;
  layers.back().name = "head";
  return layers;
}

TEST(LayoutTest, GroupsAndCountsAreWrittenOut) {
  EXPECT_THAT(*ParseLayout("layout", "Et*3|(tt|)*2,m|L"),
              ElementsAre("Ettt", "tt", "tt", "m", "L"));
  EXPECT_THAT(*ParseLayout("layout", "E|(t|)*3,m|m||L"),
              ElementsAre("E", "t", "t", "t", "m", "m", "", "L"));
  EXPECT_THAT(*ParseLayout("layout", "((t*2|)*2t)*2 | L"),
              ElementsAre("tt", "tt", "ttt", "tt", "t", "L"));
  EXPECT_THAT(*ParseLayout("layout", ""), ElementsAre(""));
  EXPECT_THAT(*ParseLayout("layout", "t*0L"), ElementsAre("L"));
}

// The layout of Megatron-LM's guide for DeepSeek-V3: 61 layers and one MTP on
// 16 ranks with two chunks.
TEST(LayoutTest, DeepSeekV3) {
  const StageLayout layout = *ParseLayout("layout", "Et*3|(tt|)*29,m|L");
  EXPECT_EQ(layout.size(), 32);
  EXPECT_EQ(CountBlocks(layout), 61);
}

TEST(LayoutTest, ErrorsNameTheColumn) {
  EXPECT_THAT(ErrorOf("Et*3|x"), HasSubstr("layout:6: 'x' is unknown"));
  EXPECT_THAT(ErrorOf("E(tt|"), HasSubstr("layout:2: '(' is not closed"));
  EXPECT_THAT(ErrorOf("Et)"),
              HasSubstr("layout:3: ')' without a matching '('"));
  EXPECT_THAT(ErrorOf("Et*|L"), HasSubstr("layout:4: expected a count"));
  EXPECT_THAT(ErrorOf("t*99999999999"), HasSubstr("makes more than"));
  EXPECT_THAT(ErrorOf("((t*1000)*1000)*1000"), HasSubstr("makes more than"));
  EXPECT_THAT(ErrorOf(std::string(100, '(')), HasSubstr("nested too deeply"));
}

TEST(LayoutTest, LayersFallWhereTheLayoutSays) {
  EXPECT_THAT(
      PartitionByLayout(Layers(4), *ParseLayout("layout", "E|tt||ttL"))->first,
      ElementsAre(0, 1, 3, 3, 6));
}

TEST(LayoutTest, OtherLayersThanTheModelsAreRefused) {
  const auto error = [](absl::string_view text) {
    return std::string(
        PartitionByLayout(Layers(2), *ParseLayout("layout", text))
            .status()
            .message());
  };
  EXPECT_THAT(error("E|t|L"), HasSubstr("stage 2 has 'L', expected 't'"));
  EXPECT_THAT(error("E|ttt|L"), HasSubstr("stage 1 has 't', expected 'L'"));
  EXPECT_THAT(error("E|tt|mL"), HasSubstr("stage 2 has 'm'"));
  EXPECT_THAT(error("tE|tL"), HasSubstr("stage 0 has 't', expected 'E'"));
  EXPECT_THAT(error("Ett|"), HasSubstr("holds 3 layers, expected the 4"));
  EXPECT_THAT(error("EttL|t"), HasSubstr("expected no more layers"));
}

TEST(LayoutTest, TextHasTheModulesAtTheEnd) {
  EXPECT_EQ(LayoutText({3, 1, 0}), "Et*3|t|L");
  EXPECT_EQ(LayoutText({3, 1, 0}, 1), "Et*3|t|mL");
  EXPECT_EQ(LayoutText({3, 1, 0}, 2, true), "Et*3|tm*2|L");
  EXPECT_EQ(LayoutText({4}, 1, true), "Et*4mL");
}

TEST(LayoutTest, ModulesHaveAnyOneStage) {
  std::vector<LayerWork> layers = Layers(6);
  for (int i : {5, 6}) layers[i].role = LayerRole::kMtp;
  const auto first = [&](absl::string_view text) {
    return PartitionByLayout(layers, *ParseLayout("layout", text))->first;
  };
  EXPECT_THAT(first("Ett|tt|mmL"), ElementsAre(0, 3, 5, 8));
  EXPECT_THAT(first("Ett|tt|mm|L"), ElementsAre(0, 3, 5, 7, 8));
  EXPECT_THAT(first("Ett|ttm*2|L"), ElementsAre(0, 3, 7, 8));
  const auto error = [&](absl::string_view text) {
    return std::string(PartitionByLayout(layers, *ParseLayout("layout", text))
                           .status()
                           .message());
  };
  EXPECT_THAT(
      error("Ett|tt|m|mL"),
      HasSubstr("has MTP modules (m) in 2 stages, expected all in one"));
  EXPECT_THAT(error("Ett|tt|L"), HasSubstr("stage 2 has 'L', expected 'm'"));
}

}  // namespace weir::models::layout_test
