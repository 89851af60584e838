// SPDX-License-Identifier: Apache-2.0
// Every small mistake in a schedule is seen by the validator or changes what
// the schedule does to the weights.
#include <algorithm>

#include "gtest/gtest.h"
#include "schedules/semantics.h"
#include "schedules/validate.h"
#include "tests/schedules/test_schedules.h"

namespace weir {
namespace {

std::vector<Schedule> AllKinds() {
  std::vector<Schedule> schedules;
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    schedules.push_back(kind.generate(LegalSpec(kind)));
  }
  return schedules;
}

bool IsInvalid(const Schedule& schedule) {
  return !ValidateSchedule(schedule).ok();
}

bool SameUses(const Semantics& a, const Semantics& b) {
  auto same = [](const VersionUse& x, const VersionUse& y) {
    return x.forward_version == y.forward_version &&
           x.backward_version == y.backward_version && x.update == y.update;
  };
  return std::equal(a.uses.begin(), a.uses.end(), b.uses.begin(), b.uses.end(),
                    [&](const auto& x, const auto& y) {
                      return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                                        same);
                    });
}

// Whether the validator or the version table tells `mutant` from `original`.
bool IsCaught(const Schedule& original, const Schedule& mutant) {
  if (IsInvalid(mutant)) return true;
  absl::StatusOr<Semantics> changed = InterpretSchedule(mutant);
  if (!changed.ok()) return true;
  const Semantics expected = InterpretSchedule(original).value();
  return !SameUses(expected, *changed) ||
         expected.live_versions != changed->live_versions ||
         expected.update_positions != changed->update_positions;
}

// Calls check(schedule, rank, position) for every action of every kind.
template <typename Check>
void ForEveryAction(const Check& check) {
  for (const Schedule& schedule : AllKinds()) {
    ASSERT_FALSE(IsInvalid(schedule)) << schedule.name;
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      const int size = static_cast<int>(schedule.rank_actions[rank].size());
      for (int position = 0; position < size; ++position) {
        SCOPED_TRACE(schedule.name + " " +
                     ToString(schedule.rank_actions[rank][position]));
        check(schedule, rank, position);
      }
    }
  }
}

TEST(ScheduleMutationTest, DroppedActionIsInvalid) {
  ForEveryAction([](Schedule schedule, int rank, int position) {
    auto& actions = schedule.rank_actions[rank];
    actions.erase(actions.begin() + position);
    EXPECT_TRUE(IsInvalid(schedule));
  });
}

TEST(ScheduleMutationTest, RepeatedActionIsInvalidAnywhereOnItsRank) {
  ForEveryAction([](const Schedule& schedule, int rank, int position) {
    for (size_t to = 0; to <= schedule.rank_actions[rank].size(); ++to) {
      Schedule mutant = schedule;
      auto& actions = mutant.rank_actions[rank];
      const Action action = actions[position];
      actions.insert(actions.begin() + to, action);
      EXPECT_TRUE(IsInvalid(mutant));
    }
  });
}

TEST(ScheduleMutationTest, ActionOnAnotherRankIsInvalid) {
  ForEveryAction([](const Schedule& schedule, int rank, int position) {
    for (int to = 0; to < schedule.num_ranks; ++to) {
      if (to == rank) continue;
      Schedule mutant = schedule;
      auto& actions = mutant.rank_actions[rank];
      mutant.rank_actions[to].push_back(actions[position]);
      actions.erase(actions.begin() + position);
      EXPECT_TRUE(IsInvalid(mutant));
    }
  });
}

TEST(ScheduleMutationTest, AnotherStageMicrobatchOrOpIsInvalid) {
  ForEveryAction([](const Schedule& schedule, int rank, int position) {
    for (const Action& change :
         {Action{Op::kForward, 1, 0}, Action{Op::kForward, 0, 1},
          Action{Op::kBackward, 0, 0}}) {
      Schedule mutant = schedule;
      Action& action = mutant.rank_actions[rank][position];
      action.stage = (action.stage + change.stage) % schedule.num_stages;
      action.microbatch = (action.microbatch + change.microbatch) %
                          schedule.total_microbatches();
      if (change.op == Op::kBackward) {
        action.op = action.op == Op::kForward ? Op::kBackward : Op::kForward;
      }
      EXPECT_TRUE(IsInvalid(mutant));
    }
  });
}

TEST(ScheduleMutationTest, BackwardBeforeItsForwardIsInvalid) {
  ForEveryAction([](const Schedule& schedule, int rank, int position) {
    const auto& actions = schedule.rank_actions[rank];
    if (actions[position].op != Op::kForward) return;
    const Action& forward = actions[position];
    const auto at =
        std::find_if(actions.begin(), actions.end(), [&](const Action& other) {
          return MakesInputGradient(other.op) && other.stage == forward.stage &&
                 other.microbatch <= forward.microbatch &&
                 forward.microbatch <= other.last_microbatch();
        });
    if (at == actions.end()) return;  // inference
    Schedule mutant = schedule;
    std::swap(mutant.rank_actions[rank][position],
              mutant.rank_actions[rank][at - actions.begin()]);
    EXPECT_TRUE(IsInvalid(mutant));
  });
}

// With an update after every backward every exchange shows, except that of
// forwards that read the same version: that is another order of the same
// training.
TEST(ScheduleMutationTest, EverySwapInPipeDreamIsCaughtUnlessVersionsAgree) {
  const Schedule schedule = Generated("pipedream", {4, 5, 1, 2});
  const Semantics semantics = InterpretSchedule(schedule).value();
  int num_caught = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const auto& actions = schedule.rank_actions[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      for (size_t j = i + 1; j < actions.size(); ++j) {
        Schedule mutant = schedule;
        std::swap(mutant.rank_actions[rank][i], mutant.rank_actions[rank][j]);
        const auto& uses = semantics.uses[rank];
        const bool same_version =
            actions[i].op == Op::kForward && actions[j].op == Op::kForward &&
            uses[actions[i].microbatch].forward_version ==
                uses[actions[j].microbatch].forward_version;
        EXPECT_EQ(IsCaught(schedule, mutant), !same_version)
            << ToString(actions[i]) << " and " << ToString(actions[j]);
        num_caught += same_version ? 0 : 1;
      }
    }
  }
  EXPECT_EQ(num_caught, 750);
}

TEST(ScheduleMutationTest, SwapAcrossAnUpdateOf2BWIsCaught) {
  const Schedule schedule = Generated("2bw", {4, 4, 1, 3});
  const Semantics semantics = InterpretSchedule(schedule).value();
  for (int rank = 0; rank < 4; ++rank) {
    for (int position : semantics.update_positions[rank]) {
      const auto& actions = schedule.rank_actions[rank];
      for (size_t later = position + 1; later < actions.size(); ++later) {
        Schedule mutant = schedule;
        std::swap(mutant.rank_actions[rank][position],
                  mutant.rank_actions[rank][later]);
        EXPECT_TRUE(IsCaught(schedule, mutant))
            << ToString(actions[position]) << " and "
            << ToString(actions[later]);
      }
    }
  }
}

TEST(ScheduleMutationTest, AnotherUpdatePeriodIsCaught) {
  for (const Schedule& schedule : AllKinds()) {
    for (int period = 1; period <= schedule.total_microbatches(); ++period) {
      if (period == schedule.weights.microbatches_per_update) continue;
      Schedule mutant = schedule;
      mutant.weights.microbatches_per_update = period;
      EXPECT_TRUE(IsCaught(schedule, mutant)) << schedule.name << period;
    }
  }
}

TEST(ScheduleMutationTest, AnotherReadPolicyIsCaughtWithoutFlush) {
  for (const Schedule& schedule : AllKinds()) {
    if (schedule.flush) continue;
    Schedule mutant = schedule;
    mutant.weights.backward = WeightPolicy::BackwardRead::kLatest;
    EXPECT_TRUE(IsCaught(schedule, mutant)) << schedule.name;
    mutant = schedule;
    mutant.weights.forward =
        schedule.weights.forward == WeightPolicy::ForwardRead::kLatest
            ? WeightPolicy::ForwardRead::kDelayed
            : WeightPolicy::ForwardRead::kLatest;
    EXPECT_TRUE(IsCaught(schedule, mutant)) << schedule.name;
    mutant = schedule;
    mutant.weights.forward = WeightPolicy::ForwardRead::kDelayed;
    mutant.weights.delay_updates = 2;
    EXPECT_TRUE(IsCaught(schedule, mutant)) << schedule.name;
  }
}

}  // namespace
}  // namespace weir
