// SPDX-License-Identifier: Apache-2.0
#include "scenarios/vocabulary_parallel.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/scenarios/small_scenarios.h"

namespace weir::scenarios::vocabulary_parallel_test {

using testing::HasSubstr;

Scenario With(VocabularyParallel mode, const char* schedule = "1f1b") {
  Scenario scenario = Small();
  scenario.mutable_parallelism()->set_vocabulary_parallel(mode);
  scenario.set_schedule(schedule);
  return scenario;
}

TEST(VocabularyParallelTest, EachBarrierRunsOneForwardAhead) {
  EXPECT_EQ(ResolveScenario("s", Small())->scenario.schedule(), "1f1b");
  EXPECT_EQ(
      ResolveScenario("s", With(VOCABULARY_ONE_BARRIER))->scenario.schedule(),
      "1f1b:ahead=1");
  EXPECT_EQ(
      ResolveScenario("s", With(VOCABULARY_TWO_BARRIERS))->scenario.schedule(),
      "1f1b:ahead=2");
  EXPECT_TRUE(
      ResolveScenario("s", With(VOCABULARY_ONE_BARRIER, "1f1b:ahead=3")).ok());
}

TEST(VocabularyParallelTest, OtherSchedulesAndModelsAreRefused) {
  EXPECT_THAT(MessageOf(With(VOCABULARY_TWO_BARRIERS, "1f1b:ahead=1")),
              HasSubstr("parallelism.vocabulary_parallel is "
                        "VOCABULARY_TWO_BARRIERS, expected the schedule "
                        "1f1b:ahead=2 or more, found 1f1b:ahead=1"));
  EXPECT_THAT(MessageOf(With(VOCABULARY_ONE_BARRIER, "gpipe")),
              HasSubstr("found gpipe"));
  Scenario bert = With(VOCABULARY_ONE_BARRIER);
  bert.set_model("bert-base-uncased");
  EXPECT_THAT(MessageOf(bert), HasSubstr("expected none: "));
  Scenario mtp = With(VOCABULARY_ONE_BARRIER);
  mtp.mutable_training()->set_mtp_num_layers(1);
  EXPECT_THAT(MessageOf(mtp), HasSubstr("MTP modules pass through the head"));
}

}  // namespace weir::scenarios::vocabulary_parallel_test
