// SPDX-License-Identifier: Apache-2.0
// Invariants of the version table of every kind in the registry, on all small
// shapes that are legal for it.
#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/semantics.h"
#include "schedules/stage_semantics.h"
#include "schedules/validate.h"
#include "tests/schedules/recount.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::semantics_invariants_test {

using testing::Each;

class SemanticsInvariants : public testing::TestWithParam<std::string> {};

std::string Shape(const Schedule& schedule) {
  return absl::StrCat(schedule.name, " p ", schedule.num_ranks, " stages ",
                      schedule.num_stages, " m ", schedule.num_microbatches,
                      " batches ", schedule.num_batches);
}

int NumUpdates(const Schedule& schedule, int stage) {
  if (schedule.forward_only) return 0;
  return schedule.total_microbatches() /
         schedule.microbatches_per_update(stage);
}

// Returns false for the second direction of a bidirectional pipeline with one
// microbatch.
bool MeetsMicrobatches(const Schedule& schedule, int rank, int stage) {
  for (int k = 0; k < schedule.total_microbatches(); ++k) {
    if (schedule.rank_of(stage, k) == rank) return true;
  }
  return false;
}

TEST_P(SemanticsInvariants, SomeShapeIsLegal) {
  EXPECT_GE(SmallSchedules(GetParam()).size(), 3u);
}

TEST_P(SemanticsInvariants, AFlushIsMinibatchSgdWithOneVersion) {
  for (const Schedule& schedule : SmallSchedules(GetParam())) {
    if (!schedule.flush) continue;
    SCOPED_TRACE(Shape(schedule));
    const Semantics semantics = InterpretSchedule(schedule).value();
    EXPECT_EQ(Verdict(schedule, semantics), "equal to minibatch SGD");
    EXPECT_EQ(UpdateRule(schedule, semantics),
              "w(t+1) = w(t) - eta grad f(w(t))");
    EXPECT_THAT(semantics.max_live_versions, Each(1));
    EXPECT_THAT(semantics.max_staleness, Each(0));
  }
}

TEST_P(SemanticsInvariants, EveryRankDoesEveryUpdateOfItsStagesOnce) {
  for (const Schedule& schedule : SmallSchedules(GetParam())) {
    SCOPED_TRACE(Shape(schedule));
    const Semantics semantics = InterpretSchedule(schedule).value();
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      const std::vector<int32_t>& positions = semantics.update_positions[rank];
      EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()));
      std::vector<int> next(schedule.num_stages);
      for (int32_t position : positions) {
        const Action& action = schedule.rank_actions[rank][position];
        EXPECT_TRUE(CompletesGradient(action.op));
        EXPECT_EQ(semantics.uses[action.stage][action.microbatch].update,
                  next[action.stage]++);
      }
      for (int stage : schedule.StagesOf(rank)) {
        if (MeetsMicrobatches(schedule, rank, stage)) {
          EXPECT_EQ(next[stage], NumUpdates(schedule, stage));
        }
      }
    }
  }
}

TEST_P(SemanticsInvariants, VersionsAgreeWithARecount) {
  for (const Schedule& schedule : SmallSchedules(GetParam())) {
    SCOPED_TRACE(Shape(schedule));
    if (schedule.num_ranks * schedule.total_microbatches() > 128) continue;
    const Semantics semantics = InterpretSchedule(schedule).value();
    const Recount recount(schedule);
    std::vector<std::vector<std::pair<int, int>>> versions(schedule.num_stages);
    for (int stage = 0; stage < schedule.num_stages; ++stage) {
      for (int k = 0; k < schedule.total_microbatches(); ++k) {
        const VersionUse& use = semantics.uses[stage][k];
        const int forward = recount.ForwardVersion(stage, k);
        const int backward =
            schedule.forward_only ? 0 : recount.BackwardVersion(stage, k);
        ASSERT_EQ(use.forward_version, forward) << stage << " " << k;
        ASSERT_EQ(use.backward_version, backward) << stage << " " << k;
        ASSERT_EQ(use.update, recount.Update(stage, k)) << stage << " " << k;
        versions[stage].emplace_back(forward, backward);
      }
    }
    std::vector<int> most(schedule.num_stages, 1);
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      const std::vector<Action>& actions = schedule.rank_actions[rank];
      for (int i = 0; i < std::ssize(actions); ++i) {
        if (!IsCompute(actions[i].op)) continue;
        const int live = recount.Live(rank, i, versions);
        ASSERT_EQ(semantics.live_versions[rank][i], live)
            << ToString(actions[i]);
        most[actions[i].stage] = std::max(most[actions[i].stage], live);
      }
    }
    EXPECT_EQ(semantics.max_live_versions, most);
  }
}

TEST_P(SemanticsInvariants, NoPassReadsTheFutureOrIsStalerThanItsUpdate) {
  for (const Schedule& schedule : SmallSchedules(GetParam())) {
    SCOPED_TRACE(Shape(schedule));
    const Semantics semantics = InterpretSchedule(schedule).value();
    for (const std::vector<VersionUse>& uses : semantics.uses) {
      for (const VersionUse& use : uses) {
        ASSERT_GE(use.forward_version, 0);
        ASSERT_LE(use.forward_version, use.backward_version);
        ASSERT_LE(use.backward_version, use.update);
      }
    }
  }
}

TEST_P(SemanticsInvariants, SummaryIsWithinTheTable) {
  for (const Schedule& schedule : SmallSchedules(GetParam())) {
    SCOPED_TRACE(Shape(schedule));
    const Semantics semantics = InterpretSchedule(schedule).value();
    for (const StageSemantics& stage : SummarizeStages(schedule, semantics)) {
      EXPECT_GE(stage.mean_staleness, 0);
      EXPECT_LE(stage.mean_staleness, stage.max_staleness);
      EXPECT_LE(std::abs(stage.mean_disagreement), stage.max_disagreement);
      EXPECT_EQ(stage.ranks, schedule.RanksOf(stage.stage));
    }
  }
}

std::string ParameterName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(EveryKind, SemanticsInvariants,
                         testing::ValuesIn(NamesWithOptions()), ParameterName);

}  // namespace weir::schedules::semantics_invariants_test
