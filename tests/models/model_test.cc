// SPDX-License-Identifier: Apache-2.0
#include "models/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "base/assets.h"
#include "base/textproto.h"

namespace weir::models::model_test {

using testing::AllOf;
using testing::HasSubstr;

struct Published {
  const char* preset;
  double parameters;
};
void PrintTo(const Published& published, std::ostream* out) {
  *out << published.preset;
}

class PresetTest : public testing::TestWithParam<Published> {};

TEST_P(PresetTest, CountsThePublishedParameters) {
  const auto model = LoadModel(GetParam().preset);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(CountParameters(*model), GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(
    All, PresetTest,
    testing::Values(Published{"gpt2", 124439808},
                    Published{"gpt2-medium", 354823168},
                    Published{"gpt2-large", 774030080},
                    Published{"gpt2-xl", 1557611200},
                    Published{"bert-base-uncased", 109514298},
                    Published{"llama-2-7b", 6738415616},
                    Published{"llama-2-70b", 68976648192},
                    Published{"llama-3-70b", 70553706496},
                    Published{"llama-3.1-405b", 405853388800},
                    Published{"llama-3.1-8b", 8030261248},
                    Published{"mistral-7b-v0.1", 7241732096},
                    Published{"mixtral-8x7b", 46702792704}));

TEST(ModelTest, EveryPresetLoadsWithItsDefaultsFilledIn) {
  const std::vector<std::string> presets = ListAssets("models/presets");
  EXPECT_GE(presets.size(), 10u);
  for (const std::string& name : presets) {
    const auto model = LoadModel(name);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->name(), name);
    EXPECT_GT(model->transformer().num_kv_heads(), 0u) << name;
    EXPECT_GT(model->transformer().head_size(), 0u) << name;
    EXPECT_GT(model->transformer().feed_forward_size(), 0u) << name;
    EXPECT_GT(DefaultSequenceLength(*model), 0u) << name;
  }
}

TEST(ModelTest, SizesInTheNamesOfPresetsAreRight) {
  EXPECT_NEAR(CountParameters(*LoadModel("gpt-2.2b")), 2.2e9, 0.06e9);
  EXPECT_NEAR(CountParameters(*LoadModel("gpt3-175b")), 175e9, 0.5e9);
}

TEST(ModelTest, NativeFormRoundTrips) {
  for (const std::string& name : ListAssets("models/presets")) {
    const auto model = LoadModel(name);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto again = ParseModel("again", PrintTextProto(*model));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(PrintTextProto(*again), PrintTextProto(*model));
  }
}

TEST(ModelTest, NativeFormFillsDefaults) {
  const auto model = ParseModel("some/tiny.textproto", R"pb(
    transformer {
      num_layers: 2
      hidden_size: 64
      num_heads: 4
      vocabulary_size: 100
    })pb");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->name(), "tiny");
  EXPECT_EQ(model->transformer().head_size(), 16u);
  EXPECT_EQ(model->transformer().num_kv_heads(), 4u);
  EXPECT_EQ(model->transformer().feed_forward_size(), 256u);
  EXPECT_EQ(DefaultSequenceLength(*model), 2048u);
}

TEST(ModelTest, NativeFormReportsAllProblemsAtOnce) {
  const auto model = ParseModel("x.textproto", R"pb(
    transformer {
      num_layers: 1000000000
      hidden_size: 65
      num_heads: 4
      num_kv_heads: 3
      num_positions: 10
      default_sequence_length: 11
    })pb");
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(model.status().message()),
      AllOf(HasSubstr("x.textproto: transformer.num_layers is 1000000000, "
                      "expected 1 to 10000"),
            HasSubstr("transformer.vocabulary_size is 0"),
            HasSubstr("transformer.num_kv_heads is 3, expected a divisor of "
                      "transformer.num_heads (4)"),
            HasSubstr("transformer.hidden_size is 65, expected a multiple"),
            HasSubstr("transformer.default_sequence_length is 11")));
}

TEST(ModelTest, TextThatIsNoModelIsRefused) {
  for (const char* text : {"", "  \n", "{", "[]", "name: \"x\"", "transformer",
                           "measured {}", "node", "nonsense", "{}{"}) {
    EXPECT_FALSE(ParseModel("x", text).ok()) << text;
  }
}

TEST(ModelTest, NeitherKindSaysSo) {
  EXPECT_EQ(ParseModel("x", "name: 'y'").status().message(),
            "x: has neither transformer nor measured");
}

TEST(ModelTest, MeasuredModelRefusesImpossibleCosts) {
  const auto model = ParseModel("x", R"pb(
    measured {
      layers { name: "a" forward_seconds: -1 }
      layers { name: "b" parameter_bytes: inf }
      layers { name: "c" backward_seconds: nan }
    })pb");
  EXPECT_THAT(std::string(model.status().message()),
              AllOf(HasSubstr("measured.layers[0].forward_seconds is -1"),
                    HasSubstr("measured.layers[1].parameter_bytes is inf"),
                    HasSubstr("measured.layers[2].backward_seconds is nan")));
}

TEST(ModelTest, MeasuredModelCountsFourByteParameters) {
  const auto model = ParseModel("x",
                                "measured { layers { parameter_bytes: 40 } "
                                "layers { parameter_bytes: 8 } }");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(CountParameters(*model), 12);
  EXPECT_EQ(model->measured().microbatch_size(), 1u);
  EXPECT_EQ(DefaultSequenceLength(*model), 0u);
}

TEST(ModelTest, UnknownNameListsThePresets) {
  EXPECT_THAT(std::string(LoadModel("gpt7").status().message()),
              HasSubstr("llama-2-7b, llama-3-70b"));
}

}  // namespace weir::models::model_test
