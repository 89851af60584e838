// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/scenario.pb.h"

namespace weir::plan::fields_test {

using testing::HasSubstr;

std::string ErrorOf(absl::string_view path, absl::string_view value) {
  Scenario scenario;
  scenario.mutable_costs()->add_stages();
  return std::string(SetField(path, value, &scenario).message());
}

TEST(FieldsTest, EveryKindOfFieldIsSet) {
  Scenario scenario;
  ASSERT_TRUE(SetField("parallelism.pipeline", "8", &scenario).ok());
  ASSERT_TRUE(SetField("schedule", "gpipe", &scenario).ok());
  ASSERT_TRUE(SetField("training.dropout", "true", &scenario).ok());
  ASSERT_TRUE(SetField("training.recompute", "full", &scenario).ok());
  ASSERT_TRUE(SetField("training.precision", "mixed-bf16", &scenario).ok());
  ASSERT_TRUE(SetField("communication.bucket_bytes", "1e6", &scenario).ok());
  ASSERT_TRUE(
      SetField("parallelism.blocks_per_stage", "7/8/9", &scenario).ok());
  ASSERT_TRUE(SetField("parallelism.blocks_per_stage[1]", "4", &scenario).ok());
  EXPECT_EQ(scenario.parallelism().pipeline(), 8);
  EXPECT_EQ(scenario.schedule(), "gpipe");
  EXPECT_TRUE(scenario.training().dropout());
  EXPECT_EQ(scenario.training().recompute(), RECOMPUTE_FULL);
  EXPECT_EQ(scenario.training().precision(), MIXED_BF16);
  EXPECT_EQ(scenario.communication().bucket_bytes(), 1e6);
  EXPECT_THAT(scenario.parallelism().blocks_per_stage(),
              testing::ElementsAre(7, 4, 9));
}

TEST(FieldsTest, EveryFieldOfAScenarioHasATypeThatCanBeSet) {
  for (const std::string& path : FieldPaths(*Scenario::descriptor())) {
    Scenario scenario;
    scenario.mutable_costs()->add_stages();
    const absl::Status status = SetField(path, "1", &scenario);
    EXPECT_FALSE(absl::IsUnimplemented(status)) << path << ": " << status;
  }
}

TEST(FieldsTest, AnEntryOfAListOrAllOfThem) {
  Scenario scenario;
  scenario.mutable_costs()->add_stages();
  scenario.mutable_costs()->add_stages();
  ASSERT_TRUE(SetField("costs.stages.forward_seconds", "2", &scenario).ok());
  ASSERT_TRUE(SetField("costs.stages[1].forward_seconds", "3", &scenario).ok());
  EXPECT_EQ(scenario.costs().stages(0).forward_seconds(), 2);
  EXPECT_EQ(scenario.costs().stages(1).forward_seconds(), 3);
}

TEST(FieldsTest, AnUnknownFieldNamesTheNearest) {
  EXPECT_THAT(ErrorOf("paralelism.pipline", "1"),
              HasSubstr("did you mean parallelism.pipeline?"));
  EXPECT_THAT(ErrorOf("pipeline", "1"),
              HasSubstr("did you mean parallelism.pipeline?"));
  EXPECT_THAT(ErrorOf("batch.hop_second", "1"),
              HasSubstr("did you mean costs.hop_seconds?"));
  EXPECT_THAT(ErrorOf("batch", "1"),
              HasSubstr("is a message, expected one of its fields: "
                        "batch.microbatch_size, "));
  EXPECT_THAT(ErrorOf("schedule.name", "1"), HasSubstr("is not a field"));
  EXPECT_THAT(ErrorOf("", "1"), HasSubstr("is not a field"));
}

TEST(FieldsTest, ABadValueSaysWhatIsExpected) {
  EXPECT_EQ(ErrorOf("parallelism.pipeline", "-1"),
            "is \"-1\", expected a whole number from 0 to 2147483647");
  EXPECT_EQ(ErrorOf("costs.hop_seconds", "nan"),
            "is \"nan\", expected a finite number");
  EXPECT_EQ(ErrorOf("training.dropout", "yes"),
            "is \"yes\", expected true or false");
  EXPECT_EQ(ErrorOf("training.recompute", "half"),
            "is \"half\", expected one of RECOMPUTE_NONE, "
            "RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_OPERATORS");
  EXPECT_THAT(ErrorOf("costs.stages[1].forward_seconds", "1"),
              HasSubstr("has no entry stages[1]"));
  EXPECT_THAT(ErrorOf("costs.stages[x].forward_seconds", "1"),
              HasSubstr("expected an index as in stages[0]"));
  EXPECT_THAT(ErrorOf("parallelism[0].pipeline", "1"),
              HasSubstr("parallelism is not a list"));
}

}  // namespace weir::plan::fields_test
