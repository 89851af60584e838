// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explicit_none.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "scenarios/scenario.pb.h"

namespace weir::scenarios::explicit_none_test {

Scenario Read(const std::string& text) {
  Scenario scenario;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &scenario));
  return scenario;
}

TEST(ExplicitNoneTest, IsClearedAndTheRestIsKept) {
  Scenario scenario = Read(
      "parallelism { pipeline: 4 vocabulary_parallel: VOCABULARY_NOT_SHARDED }"
      "batch { packed_sequences { one_document: true } global_batch_size: 8 }"
      "training { lora { rank: 0 } dropout: true }");
  ClearExplicitNone(&scenario);
  EXPECT_EQ(scenario.DebugString(),
            Read("parallelism { pipeline: 4 } batch { global_batch_size: 8 }"
                 "training { dropout: true }")
                .DebugString());
}

TEST(ExplicitNoneTest, OtherSettingsAreKept) {
  const std::string text =
      "parallelism { vocabulary_parallel: VOCABULARY_ONE_BARRIER }"
      "batch { packed_sequences { fixed: 512 } }"
      "training { lora { rank: 0 target_modules: LINEAR_QKV } }";
  Scenario scenario = Read(text);
  ClearExplicitNone(&scenario);
  EXPECT_EQ(scenario.DebugString(), Read(text).DebugString());
}

}  // namespace weir::scenarios::explicit_none_test
