// SPDX-License-Identifier: Apache-2.0
#include "results/flops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir::results::flops_test {

using testing::HasSubstr;
using testing::Not;

TEST(FlopsTest, NamesAreParsedAndPrinted) {
  for (const char* name : {"model", "model-causal", "megatron", "palm",
                           "palm-causal", "hardware"}) {
    const auto formula = ParseReportedFormula(name);
    ASSERT_TRUE(formula.ok()) << formula.status();
    EXPECT_EQ(NameOf(*formula), name);
  }
  for (const char* name : {"megatron96", "model72"}) {
    EXPECT_TRUE(ParseFlopsFormula(name).ok());
    EXPECT_FALSE(ParseReportedFormula(name).ok());
  }
  const std::string message(ParseFlopsFormula("x").status().message());
  EXPECT_THAT(message, HasSubstr("is \"x\", expected one of: model, "));
  EXPECT_THAT(message, HasSubstr("model72"));
  EXPECT_THAT(std::string(ParseReportedFormula("x").status().message()),
              Not(HasSubstr("model72")));
}

TEST(FlopsTest, UtilizationScalesWithTheFormula) {
  Result result;
  result.set_batch_seconds(2);
  result.set_tensor_parallel(2);
  result.set_pipeline_parallel(4);
  result.set_data_parallel(1);
  result.set_model_flops_utilization(0.4);
  EXPECT_EQ(UtilizationOf(result, FlopsFormula::kModel), 0.4);  // old results
  EXPECT_FALSE(UtilizationOf(result, FlopsFormula::kPalm).has_value());
  result.mutable_flops_per_batch()->set_model(1e15);
  result.mutable_flops_per_batch()->set_hardware(1.5e15);
  EXPECT_DOUBLE_EQ(*UtilizationOf(result, FlopsFormula::kHardware), 0.6);
  EXPECT_DOUBLE_EQ(*FlopsPerGpu(result, FlopsFormula::kHardware), 1.5e15 / 16);
  EXPECT_FALSE(FlopsPerGpu(result, FlopsFormula::kPalm).has_value());
  EXPECT_EQ(FormulaOf(result), FlopsFormula::kModel);
  result.set_flops_formula("palm");
  EXPECT_EQ(FormulaOf(result), FlopsFormula::kPalm);
}

// 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)), and 72 ... V / (12 l h).
TEST(FlopsTest, EquationThreeOfNarayananEtAl) {
  const double b = 16, s = 128, l = 4, h = 64, v = 768;
  EXPECT_DOUBLE_EQ(
      MegatronFlops(b, s, l, h, v, 4),
      96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h)));
  EXPECT_DOUBLE_EQ(
      MegatronFlops(b, s, l, h, v, 3),
      72 * b * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h)));
  EXPECT_DOUBLE_EQ(3 * MegatronFlops(b, s, l, h, v, 1),
                   MegatronFlops(b, s, l, h, v, 3));
}

}  // namespace weir::results::flops_test
