// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explicit_none.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "scenarios/scenario.pb.h"

namespace weir::scenarios {
namespace {

Scenario Parse(const std::string& text) {
  Scenario scenario;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &scenario));
  return scenario;
}

TEST(ExplicitNoneTest, IsClearedAndTheRestIsKept) {
  Scenario scenario = Parse(
      "parallelism { pipeline: 4 vocabulary_parallel: VOCABULARY_NOT_SHARDED }"
      "batch { packed_sequences { one_document: true } global_batch_size: 8 }"
      "training { lora { rank: 0 } dropout: true }");
  ClearExplicitNone(&scenario);
  EXPECT_EQ(scenario.DebugString(),
            Parse("parallelism { pipeline: 4 } batch { global_batch_size: 8 }"
                  "training { dropout: true }")
                .DebugString());
}

TEST(ExplicitNoneTest, OtherSettingsAreKept) {
  const std::string text =
      "parallelism { vocabulary_parallel: VOCABULARY_ONE_BARRIER }"
      "batch { packed_sequences { fixed: 512 } }"
      "training { lora { rank: 0 target_modules: LINEAR_QKV } }";
  Scenario scenario = Parse(text);
  ClearExplicitNone(&scenario);
  EXPECT_EQ(scenario.DebugString(), Parse(text).DebugString());
}

}  // namespace
}  // namespace weir::scenarios
