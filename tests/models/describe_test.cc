// SPDX-License-Identifier: Apache-2.0
#include "models/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "models/model.h"

namespace weir::models::describe_test {

using testing::HasSubstr;

WorkSpec Spec() {
  WorkSpec spec;
  spec.sequence_length = 512;
  return spec;
}

TEST(DescribeTest, OneTableWithEqualLayersInOneRow) {
  const std::string text = DescribeModel(*LoadModel("gpt-2.2b"), Spec());
  EXPECT_THAT(text, HasSubstr("gpt-2.2b: 2,156,"));
  EXPECT_THAT(text, HasSubstr("microbatch of 1 x 512 tokens, 16-bit"));
  EXPECT_THAT(text, HasSubstr(" 1 x embedding"));
  EXPECT_THAT(text, HasSubstr("32 x block"));
  EXPECT_THAT(text, HasSubstr(" 1 x head"));
  EXPECT_THAT(text, HasSubstr("total"));
}

TEST(DescribeTest, SaysHowTheLayersAreRun) {
  WorkSpec spec = Spec();
  spec.tensor_parallel = 8;
  spec.sequence_parallel = true;
  spec.flash_attention = true;
  spec.dropout = true;
  spec.recompute = RECOMPUTE_FULL;
  EXPECT_THAT(
      DescribeModel(*LoadModel("gpt-2.2b"), spec),
      HasSubstr("16-bit, per GPU of 8 (tensor and sequence\n  parallel), "
                "fused attention, dropout, full recomputation\n"));
}

TEST(DescribeTest, MeasuredLayersShowTheirSeconds) {
  const Model model =
      *ParseModel("m",
                  "measured { layers { name: 'conv' forward_seconds: 0.002 "
                  "backward_seconds: 0.004 parameter_bytes: 4000 } }");
  const std::string text = DescribeModel(model, WorkSpec());
  EXPECT_THAT(text, HasSubstr("m: 1,000 parameters"));
  EXPECT_THAT(text, HasSubstr("1 x conv"));
  EXPECT_THAT(text, HasSubstr("2.00 ms"));
}

TEST(ModelJsonTest, NumbersAreNumbers) {
  const Model model = *LoadModel("gpt-2.2b");
  const auto json = nlohmann::json::parse(ModelJson(model, Spec()));
  EXPECT_TRUE(json["parameters"].is_number_integer());
  EXPECT_EQ(json["parameters"].get<double>(), CountParameters(model));
  EXPECT_EQ(json["layers"].size(), 3u);
  EXPECT_EQ(json["layers"][1]["count"], 32);
  EXPECT_EQ(json["model_flops"].get<double>(),
            ModelFlops(LayersOf(model, Spec()), 1));
  EXPECT_EQ(json["recompute"], "none");
}

TEST(ModelJsonTest, BytesThatAreNotTextAreReplaced) {
  Model model = *LoadModel("gpt2");
  model.set_name("\xff");
  EXPECT_TRUE(nlohmann::json::accept(ModelJson(model, Spec())));
}

}  // namespace weir::models::describe_test
