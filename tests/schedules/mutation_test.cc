// SPDX-License-Identifier: Apache-2.0
// Checks that every small error in a schedule is detected by the validator or
// changes the version table.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/semantics.h"
#include "schedules/stage_semantics.h"
#include "schedules/validate.h"
#include "tests/schedules/recount.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::mutation_test {

std::vector<Schedule> AllKinds() {
  std::vector<Schedule> schedules;
  for (const std::string& name : NamesWithOptions()) {
    schedules.push_back(MutationSchedule(name));
  }
  return schedules;
}

// Returns the schedules whose weights change while microbatches are in flight.
std::vector<Schedule> KindsWithoutFlush() {
  std::vector<Schedule> schedules = AllKinds();
  schedules.erase(std::remove_if(schedules.begin(), schedules.end(),
                                 [](const Schedule& schedule) {
                                   return schedule.flush ||
                                          schedule.forward_only;
                                 }),
                  schedules.end());
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

// Returns the versions of the predicted weights that passes use.
std::vector<double> Predicted(const Schedule& schedule,
                              const Semantics& semantics) {
  std::vector<double> predicted;
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    for (const VersionUse& use : semantics.uses[stage]) {
      predicted.push_back(PredictedForward(schedule, stage, use));
      predicted.push_back(PredictedBackward(schedule, stage, use));
    }
  }
  return predicted;
}

// Returns true if the validator or the version table distinguishes `mutant`
// from `original`.
bool IsCaught(const Schedule& original, const Schedule& mutant) {
  if (IsInvalid(mutant)) return true;
  absl::StatusOr<Semantics> changed = InterpretSchedule(mutant);
  if (!changed.ok()) return true;
  const Semantics expected = InterpretSchedule(original).value();
  return !SameUses(expected, *changed) ||
         Predicted(original, expected) != Predicted(mutant, *changed) ||
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

// With an update after every backward, every swap is detected, except that of
// two forwards that read the same version. That is another order of the same
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

// Moves the last backward of an update to a later position.
TEST(ScheduleMutationTest, SwapAcrossAnUpdateIsCaughtWithoutFlush) {
  for (const Schedule& schedule : KindsWithoutFlush()) {
    SCOPED_TRACE(schedule.name);
    const Semantics semantics = InterpretSchedule(schedule).value();
    int num_swaps = 0;
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      for (int position : semantics.update_positions[rank]) {
        const auto& actions = schedule.rank_actions[rank];
        for (size_t later = position + 1; later < actions.size(); ++later) {
          Schedule mutant = schedule;
          std::swap(mutant.rank_actions[rank][position],
                    mutant.rank_actions[rank][later]);
          ++num_swaps;
          EXPECT_TRUE(IsCaught(schedule, mutant))
              << ToString(actions[position]) << " and "
              << ToString(actions[later]);
        }
      }
    }
    EXPECT_GT(num_swaps, 0);
  }
}

// For any two swapped actions of a rank, either the order is refused, or the
// version table is that of the changed order according to an independent
// recount.
TEST(ScheduleMutationTest, EverySwapIsRefusedOrCountedAnew) {
  for (const Schedule& schedule : AllKinds()) {
    SCOPED_TRACE(schedule.name);
    int num_refused = 0;
    int num_changed = 0;
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      const auto& actions = schedule.rank_actions[rank];
      for (size_t i = 0; i < actions.size(); ++i) {
        for (size_t j = i + 1; j < actions.size(); ++j) {
          Schedule mutant = schedule;
          std::swap(mutant.rank_actions[rank][i], mutant.rank_actions[rank][j]);
          absl::StatusOr<Semantics> changed =
              IsInvalid(mutant) ? absl::InvalidArgumentError("")
                                : InterpretSchedule(mutant);
          if (!changed.ok()) {
            ++num_refused;
            continue;
          }
          num_changed += IsCaught(schedule, mutant) ? 1 : 0;
          const Recount recount(mutant);
          for (int stage : mutant.StagesOf(rank)) {
            for (int k = 0; k < mutant.total_microbatches(); ++k) {
              if (mutant.rank_of(stage, k) != rank) continue;
              const VersionUse& use = changed->uses[stage][k];
              ASSERT_EQ(use.forward_version, recount.ForwardVersion(stage, k));
              if (mutant.forward_only) continue;
              ASSERT_EQ(use.backward_version,
                        recount.BackwardVersion(stage, k));
            }
          }
        }
      }
    }
    EXPECT_GT(num_refused + (schedule.forward_only ? 1 : 0), 0);
    if (!schedule.flush && !schedule.forward_only) {
      EXPECT_GT(num_changed, 0);
    }
  }
}

TEST(ScheduleMutationTest, AnotherUpdatePeriodIsCaught) {
  for (const Schedule& schedule : AllKinds()) {
    if (schedule.forward_only) continue;
    for (int period = 1; period <= schedule.total_microbatches(); ++period) {
      if (period == schedule.weights.microbatches_per_update) continue;
      Schedule mutant = schedule;
      mutant.weights.microbatches_per_update = period;
      EXPECT_TRUE(IsCaught(schedule, mutant)) << schedule.name << period;
    }
  }
}

// Checks kinds with and without a stash of old versions.
TEST(ScheduleMutationTest, AnotherBackwardReadIsCaughtWithoutFlush) {
  for (const Schedule& schedule : KindsWithoutFlush()) {
    Schedule mutant = schedule;
    mutant.weights.backward =
        schedule.weights.backward == WeightPolicy::BackwardRead::kLatest
            ? WeightPolicy::BackwardRead::kSameAsForward
            : WeightPolicy::BackwardRead::kLatest;
    EXPECT_TRUE(IsCaught(schedule, mutant)) << schedule.name;
  }
}

bool ReadsOneVersionPerUpdate(const Schedule& schedule) {
  const Semantics semantics = InterpretSchedule(schedule).value();
  for (const std::vector<VersionUse>& uses : semantics.uses) {
    for (size_t k = 1; k < uses.size(); ++k) {
      if (uses[k].update == uses[k - 1].update &&
          uses[k].forward_version != uses[k - 1].forward_version) {
        return false;
      }
    }
  }
  return true;
}

// The kinds include vertical sync and the bellwether's reuse.
TEST(ScheduleMutationTest, AnotherForwardReadIsCaughtWithoutFlush) {
  using ForwardRead = WeightPolicy::ForwardRead;
  for (const Schedule& schedule : KindsWithoutFlush()) {
    for (const ForwardRead forward :
         {ForwardRead::kLatest, ForwardRead::kDelayed, ForwardRead::kFirstStage,
          ForwardRead::kFirstOfUpdate}) {
      if (forward == schedule.weights.forward) continue;
      // If all microbatches of an update read one version, it is the first
      // one's.
      if (forward == ForwardRead::kFirstOfUpdate &&
          ReadsOneVersionPerUpdate(schedule)) {
        continue;
      }
      Schedule mutant = schedule;
      mutant.weights.forward = forward;
      EXPECT_TRUE(IsCaught(schedule, mutant))
          << schedule.name << " " << static_cast<int>(forward);
    }
    Schedule mutant = schedule;
    mutant.weights.forward = ForwardRead::kDelayed;
    mutant.weights.delay_updates = schedule.weights.delay_updates + 4;
    EXPECT_TRUE(IsCaught(schedule, mutant)) << schedule.name;
  }
}

// The table changes, and F and B no longer agree as in the verdict.
TEST(ScheduleMutationTest, AWrongPredictionDistanceIsCaught) {
  int num_kinds = 0;
  for (const Schedule& schedule : AllKinds()) {
    if (schedule.weights.prediction == WeightPolicy::Prediction::kNone) {
      continue;
    }
    ++num_kinds;
    const std::string verdict =
        Verdict(schedule, InterpretSchedule(schedule).value());
    EXPECT_THAT(verdict,
                testing::HasSubstr("; after prediction F and B agree"));
    for (auto distance :
         {&WeightPolicy::forward_distance, &WeightPolicy::backward_distance}) {
      for (size_t stage = 0; stage < (schedule.weights.*distance).size();
           ++stage) {
        Schedule mutant = schedule;
        (mutant.weights.*distance)[stage] += 1;
        EXPECT_TRUE(IsCaught(schedule, mutant)) << schedule.name << stage;
        EXPECT_NE(Verdict(mutant, InterpretSchedule(mutant).value()), verdict)
            << schedule.name << stage;
      }
    }
  }
  EXPECT_GE(num_kinds, 4);
}

}  // namespace weir::schedules::mutation_test
