// SPDX-License-Identifier: Apache-2.0
#include "results/compare/quantities.h"

#include <gtest/gtest.h>

namespace weir::results::quantities_test {

Result Step() {
  Result result;
  result.set_tensor_parallel(2);
  result.set_pipeline_parallel(4);
  result.set_data_parallel(1);
  result.set_batch_seconds(2);
  result.set_global_batch_size(16);
  result.set_sequence_length(128);
  result.set_samples_per_second(8);
  result.set_tokens_per_second(1024);
  result.set_peak_memory_bytes(7e9);
  for (const double activations : {3e9, 1e9}) {
    RankResult& rank = *result.add_ranks();
    rank.set_peak_memory_bytes(activations + 4e9);
    for (const auto& [name, bytes] :
         {std::pair("activations", activations), std::pair("weights", 3e9),
          std::pair("reserved", 1e9)}) {
      MemoryClass& memory = *rank.add_peak_memory_classes();
      memory.set_name(name);
      memory.set_bytes(bytes);
    }
  }
  return result;
}

double Predict(absl::string_view name, const FlopsBasis& basis = {}) {
  const Quantity* quantity = FindQuantity(name);
  EXPECT_NE(quantity, nullptr) << name;
  const auto value = quantity->predict(Step(), basis);
  EXPECT_TRUE(value.ok()) << value.status();
  return value.value_or(0) / quantity->unit;
}

TEST(QuantitiesTest, TimesRatesAndSharesOfAGpu) {
  EXPECT_DOUBLE_EQ(Predict("step_seconds"), 2);
  EXPECT_DOUBLE_EQ(Predict("step_ms"), 2000);
  EXPECT_DOUBLE_EQ(Predict("samples_per_second"), 8);
  EXPECT_DOUBLE_EQ(Predict("samples_per_second_per_gpu"), 1);
  EXPECT_DOUBLE_EQ(Predict("tokens_per_second_per_gpu"), 128);
}

TEST(QuantitiesTest, MemoryWholeAndOfTheAllocatorAndActivationsAlone) {
  EXPECT_DOUBLE_EQ(Predict("peak_memory_gb"), 7);
  EXPECT_DOUBLE_EQ(Predict("peak_allocated_gb"), 6);
  EXPECT_DOUBLE_EQ(Predict("least_allocated_mib"), 4e9 / (1 << 20));
  EXPECT_DOUBLE_EQ(Predict("block_activation_gib"), 3e9 / (1 << 30));
}

TEST(QuantitiesTest, FlopFormulasAreThoseOfThePapers) {
  // 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)) and 72 ... V / (12 l h), with B
  // = 16, s = 128, l = 4, h = 64, V = 768.
  const double tokens = 16 * 128, lh2 = 4 * 64 * 64;
  FlopsBasis basis{FlopsFormula::kMegatron96, 4, 64, 768};
  EXPECT_DOUBLE_EQ(FlopsOfStep(basis, Step()).value(),
                   96 * tokens * lh2 * (1 + 1.0 / 3 + 768.0 / 4096));
  EXPECT_DOUBLE_EQ(Predict("tflops_per_gpu", basis),
                   FlopsOfStep(basis, Step()).value() / (2 * 8 * 1e12));
  basis.formula = FlopsFormula::kModel72;
  EXPECT_DOUBLE_EQ(FlopsOfStep(basis, Step()).value(),
                   72 * tokens * lh2 * (1 + 1.0 / 3 + 768.0 / 3072));
}

TEST(QuantitiesTest, FormulasOfTheResultApplyToFlopsAndUtilization) {
  Result result = Step();
  result.set_model_flops_utilization(0.4);
  result.mutable_flops_per_batch()->set_model(1e15);
  result.mutable_flops_per_batch()->set_palm(1.1e15);
  const FlopsBasis palm{FlopsFormula::kPalm, 4, 64, 768};
  const auto tflops = FindQuantity("tflops_per_gpu")->predict(result, palm);
  ASSERT_TRUE(tflops.ok()) << tflops.status();
  EXPECT_DOUBLE_EQ(*tflops, 1.1e15 / (2 * 8));
  EXPECT_DOUBLE_EQ(FindQuantity("mfu")->predict(result, palm).value(), 0.44);
  EXPECT_DOUBLE_EQ(FindQuantity("mfu")->predict(result, {}).value(), 0.4);
  const FlopsBasis hardware{FlopsFormula::kHardware, 4, 64, 768};
  EXPECT_FALSE(FindQuantity("mfu")->predict(result, hardware).ok());
}

TEST(QuantitiesTest, WhatAResultDoesNotHaveIsAnError) {
  Result given;
  given.set_batch_seconds(1);
  EXPECT_FALSE(FindQuantity("samples_per_second")->predict(given, {}).ok());
  EXPECT_FALSE(FindQuantity("mfu")->predict(given, {}).ok());
  EXPECT_FALSE(FindQuantity("tflops_per_gpu")->predict(Step(), {}).ok());
}

}  // namespace weir::results::quantities_test
