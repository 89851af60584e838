// SPDX-License-Identifier: Apache-2.0
#include "schedules/repeat_batch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/registry.h"
#include "schedules/semantics.h"
#include "schedules/validate.h"

namespace weir::schedules::repeat_batch_test {

using testing::HasSubstr;

Schedule Generate(absl::string_view name) {
  ScheduleSpec spec;
  spec.num_ranks = 4;
  spec.num_microbatches = 8;
  spec.num_chunks = name == "zb-v" || name == "dualpipe-v" ? 2 : 1;
  auto schedule = GenerateSchedule(name, spec);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *schedule : Schedule();
}

TEST(RepeatBatchTest, RepeatsTheOrderOfEveryRank) {
  const Schedule batch = Generate("zb-h1");
  const auto repeated = RepeatBatch(batch, 3);
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_TRUE(repeated->overlaps_batches());
  EXPECT_FALSE(batch.overlaps_batches());
  EXPECT_EQ(repeated->total_microbatches(), 24);
  for (int rank = 0; rank < 4; ++rank) {
    const auto& once = batch.rank_actions[rank];
    const auto& all = repeated->rank_actions[rank];
    ASSERT_EQ(all.size(), 3 * once.size());
    for (size_t i = 0; i < all.size(); ++i) {
      Action action = once[i % once.size()];
      action.microbatch += static_cast<int>(i / once.size()) * 8;
      EXPECT_EQ(all[i], action);
    }
  }
}

// Weight versions are those of a schedule with a flush.
TEST(RepeatBatchTest, KeepsTheSemanticsOfAFlush) {
  for (const char* name :
       {"gpipe", "1f1b", "zb-h1", "zb-h2", "zb-v", "dualpipe-v", "chimera"}) {
    const auto repeated = RepeatBatch(Generate(name), 3);
    ASSERT_TRUE(repeated.ok()) << repeated.status();
    EXPECT_TRUE(ValidateSchedule(*repeated).ok())
        << ValidateSchedule(*repeated);
    const auto semantics = InterpretSchedule(*repeated);
    ASSERT_TRUE(semantics.ok()) << semantics.status();
    EXPECT_EQ(Verdict(*repeated, *semantics), "equal to minibatch SGD");
    for (int stage = 0; stage < repeated->num_stages; ++stage) {
      EXPECT_EQ(semantics->max_live_versions[stage], 1) << name;
      for (int k = 0; k < 24; ++k) {
        EXPECT_EQ(semantics->uses[stage][k].forward_version, k / 8) << name;
        EXPECT_EQ(semantics->uses[stage][k].staleness(), 0) << name;
      }
    }
  }
}

TEST(RepeatBatchTest, RefusesBatchesThatTakeOtherRoutes) {
  Schedule batch = Generate("chimera");
  batch.num_microbatches = 7;
  EXPECT_THAT(RepeatBatch(batch, 2).status().message(),
              HasSubstr("has 7 microbatches on 2 routes, expected a multiple"));
}

TEST(RepeatBatchTest, ValidationRefusesBatchesThatMixOnARank) {
  Schedule repeated = *RepeatBatch(Generate("1f1b"), 2);
  std::swap(repeated.rank_actions[0][15], repeated.rank_actions[0][16]);
  EXPECT_THAT(ValidateSchedule(repeated).message(),
              HasSubstr("rank 0: 0B7 belongs to batch 0, expected no earlier "
                        "batch than 1"));
}

}  // namespace weir::schedules::repeat_batch_test
