// SPDX-License-Identifier: Apache-2.0
// Properties of every synchronous kind on every legal shape.
#include <numeric>

#include "gmock/gmock.h"
#include "schedules/semantics.h"
#include "tests/schedules/closed_form.h"

namespace weir::schedules::synchronous_test {

template <typename Check>
void ForEveryKindAndShape(const Check& check) {
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    if (!kind.flush) continue;
    for (int p : {1, 2, 3, 4, 6, 8}) {
      for (int m : {1, 2, 3, 4, 6, 8, 12, 13, 16}) {
        for (int chunks : {1, 2, 3, 4}) {
          const ScheduleSpec spec = {p, m, chunks};
          if (!kind.check(spec).ok()) continue;
          SCOPED_TRACE(
              absl::StrCat(kind.name, " p ", p, " m ", m, " chunks ", chunks));
          const Schedule schedule = kind.generate(spec);
          ASSERT_TRUE(ValidateSchedule(schedule).ok())
              << ValidateSchedule(schedule);
          check(schedule);
        }
      }
    }
  }
}

TEST(SynchronousTest, OneWeightVersionAndMinibatchSgd) {
  ForEveryKindAndShape([](const Schedule& schedule) {
    const absl::StatusOr<Semantics> semantics = InterpretSchedule(schedule);
    ASSERT_TRUE(semantics.ok()) << semantics.status();
    EXPECT_EQ(Verdict(schedule, *semantics), "equal to minibatch SGD");
    for (int versions : semantics->max_live_versions) EXPECT_EQ(versions, 1);
    // Every replica of a stage updates once, after its own last backward.
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      std::vector<int> last(schedule.num_stages, -1);
      const std::vector<Action>& actions = schedule.rank_actions[rank];
      for (int i = 0; i < std::ssize(actions); ++i) {
        if (CompletesGradient(actions[i].op)) last[actions[i].stage] = i;
      }
      for (int position : semantics->update_positions[rank]) {
        EXPECT_EQ(last[actions[position].stage], position);
      }
    }
  });
}

TEST(SynchronousTest, EveryRankDoesItsShareOfTheWork) {
  ForEveryKindAndShape([](const Schedule& schedule) {
    const int m = schedule.num_microbatches;
    const PassCosts costs = CostsOf(schedule, {1, 0.7, 0.6});
    const WalkTimes times = TimedWalk(schedule, costs);
    double all = 0;
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      double busy = 0;
      int forwards = 0, inputs = 0, weights = 0;
      for (const Action& action : schedule.rank_actions[rank]) {
        busy += costs.duration(action);
        if (action.op == Op::kForward) forwards += action.num_microbatches;
        if (MakesInputGradient(action.op)) inputs += action.num_microbatches;
        if (CompletesGradient(action.op)) weights += action.num_microbatches;
      }
      EXPECT_EQ(forwards, inputs);
      EXPECT_EQ(forwards, weights);
      EXPECT_GE(times.makespan() + 1e-9, busy);
      if (schedule.num_routes() == 1) {
        EXPECT_EQ(forwards, m * schedule.num_stages / schedule.num_ranks);
      }
      all += busy;
    }
    ExpectClose(all, 2.3 * m * schedule.num_ranks);
  });
}

TEST(SynchronousTest, NothingIsFasterThanTheFirstMicrobatch) {
  ForEveryKindAndShape([](const Schedule& schedule) {
    int hops = 0;
    for (int stage = 1; stage < schedule.num_stages; ++stage) {
      hops += schedule.rank_of(stage, 0) != schedule.rank_of(stage - 1, 0);
    }
    // Counts input gradients only, as the last weight gradient may be another
    // stage's.
    const double critical = schedule.num_ranks * (1 + 0.7) + 2 * hops * 0.3;
    EXPECT_GE(Makespan(schedule, {1, 0.7, 0.6, 0.3}) + 1e-9, critical);
  });
}

}  // namespace weir::schedules::synchronous_test
