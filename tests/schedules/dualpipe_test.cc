// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "tests/schedules/closed_form.h"

namespace weir::schedules::dualpipe_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct Seconds {
  double forward = 1, backward_input = 1, backward_weight = 1, pair = 3;

  double backward() const { return backward_input + backward_weight; }
};

// Returns the times of one stage. A rank of DualPipe runs each microbatch in
// one of its two stages.
PassCosts StageCosts(const Seconds& seconds) {
  StagePassCosts stage;
  stage.forward = seconds.forward;
  stage.backward_input = seconds.backward_input;
  stage.backward_weight = seconds.backward_weight;
  stage.overlapped = seconds.pair;
  return {{stage}};
}

double BusySeconds(const Schedule& schedule, const PassCosts& costs, int rank) {
  const std::vector<Action>& actions = schedule.rank_actions[rank];
  double busy = 0;
  for (size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].overlaps_next) {
      busy += costs.overlapped(actions[i], actions[i + 1]);
      ++i;
    } else {
      busy += costs.duration(actions[i]);
    }
  }
  return busy;
}

double MostIdleSeconds(const Schedule& schedule, const Seconds& seconds) {
  const PassCosts costs = StageCosts(seconds);
  const double makespan = TimedWalk(schedule, costs).makespan();
  double idle = 0;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    idle = std::max(idle, makespan - BusySeconds(schedule, costs, rank));
  }
  return idle;
}

// The formula of DualPipe's README. `half` is the number of ranks in one
// direction.
double Bubble(int half, const Seconds& seconds) {
  return (half - 1) *
         (seconds.pair + seconds.backward() - 3 * seconds.backward_weight);
}

struct Shape {
  const char* kind;
  int ranks, microbatches, chunks, half;
};

template <typename Check>
void ForAllShapes(const Check& check) {
  for (int p : {2, 4, 6, 8, 16}) {
    for (int m : {2 * p, 2 * p + 2, 3 * p + 4, 6 * p}) {
      check(Shape{"dualpipe", p, m, 1, p / 2});
    }
  }
  for (int p : {1, 2, 3, 4, 8}) {
    for (int m : {2 * p, 2 * p + 1, 3 * p + 4, 6 * p}) {
      check(Shape{"dualpipe-v", p, m, 2, p});
    }
  }
}

Schedule ValidOf(const Shape& shape) {
  return Valid(shape.kind, {shape.ranks, shape.microbatches, shape.chunks});
}

TEST(DualPipeTest, TheEightStepsInTheSmallestV) {
  const Schedule schedule = Valid("dualpipe-v", {2, 4, 2});
  EXPECT_EQ(RowOf(schedule, 0),
            "0F0 0F1 0F2 3F0 3I0 3W0 3F1 (0F3;3B1) (3F2;0B0) 3B2 (3F3;0B1) "
            "3B3 0I2 0W2 0I3 0W3");
  EXPECT_EQ(RowOf(schedule, 1),
            "1F0 2F0 1F1 2F1 1F2 2B0 (2F2;1B0) (1F3;2B1) (2F3;1B1) 2B2 1B2 2I3 "
            "1I3 2W3 1W3");
}

TEST(DualPipeTest, TheSecondHalfSwapsDirections) {
  const Schedule schedule = Valid("dualpipe", {4, 8});
  EXPECT_THAT(schedule.routes,
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(3, 2, 1, 0)));
  EXPECT_EQ(schedule.microbatches_per_route_turn, 4);
  EXPECT_EQ(RowOf(schedule, 0),
            "0F0 0F1 0F2 3F4 3I4 3W4 3F5 (0F3;3B5) (3F6;0B0) 3B6 (3F7;0B1) "
            "3B7 0I2 0W2 0I3 0W3");
  EXPECT_EQ(RowOf(schedule, 3),
            "0F4 0F5 0F6 3F0 3I0 3W0 3F1 (0F7;3B1) (3F2;0B4) 3B2 (3F3;0B5) "
            "3B3 0I6 0W6 0I7 0W7");
}

TEST(DualPipeTest, EqualPassesTakeThePapersTime) {
  ForAllShapes([](const Shape& shape) {
    const Seconds seconds;
    const double makespan =
        TimedWalk(ValidOf(shape), StageCosts(seconds)).makespan();
    ExpectClose(makespan, 3.0 * shape.microbatches * shape.chunks +
                              Bubble(shape.half, seconds));
  });
}

TEST(DualPipeTest, BubbleIsExactWhileForwardEqualsInputGradient) {
  ForAllShapes([](const Shape& shape) {
    const Schedule schedule = ValidOf(shape);
    for (double w : {0.5, 0.8, 1.0}) {
      const Seconds seconds = {1, 1, w, 2 + w};
      ExpectClose(MostIdleSeconds(schedule, seconds),
                  Bubble(shape.half, seconds));
    }
  });
}

TEST(DualPipeTest, LongerInputGradientsStayBelowTheFormulaShorterDoNot) {
  ForAllShapes([](const Shape& shape) {
    const Schedule schedule = ValidOf(shape);
    const Seconds longer = {1, 1.2, 0.8, 2.6};
    EXPECT_LE(MostIdleSeconds(schedule, longer),
              Bubble(shape.half, longer) + 1e-9);
    const Seconds shorter = {1, 0.6, 0.6, 2.2};
    EXPECT_GE(MostIdleSeconds(schedule, shorter),
              Bubble(shape.half, shorter) - 1e-9);
  });
  EXPECT_NEAR(MostIdleSeconds(Valid("dualpipe", {8, 16}), {1, 1.2, 0.8, 2.6}),
              6.0, 1e-9);
  EXPECT_NEAR(Bubble(4, {1, 1.2, 0.8, 2.6}), 6.6, 1e-9);
  const Seconds shorter = {1, 0.6, 0.6, 2.2};
  EXPECT_GT(MostIdleSeconds(Valid("dualpipe", {8, 16}), shorter),
            Bubble(4, shorter) + 0.1);
}

TEST(DualPipeTest, KeepsOneStageMoreThanThereAre) {
  ForAllShapes([](const Shape& shape) {
    const Schedule schedule = ValidOf(shape);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      EXPECT_EQ(PeakActivations(schedule, rank), schedule.num_stages + 1);
    }
  });
}

TEST(DualPipeTest, IllegalShapesAreNamed) {
  EXPECT_THAT(
      ErrorOf("dualpipe", {3, 5, 2, 2}),
      AllOf(HasSubstr("pipeline is 3, expected an even number"),
            HasSubstr("num_microbatches is 5, expected an even number"),
            HasSubstr("num_microbatches is 5, expected at least 6, twice "
                      "pipeline"),
            HasSubstr("chunks is 2, expected 1"),
            HasSubstr("num_batches is 2, expected 1")));
  EXPECT_THAT(ErrorOf("DualPipeV", {4, 7, 3}),
              AllOf(HasSubstr("num_microbatches is 7, expected at least 8"),
                    HasSubstr("chunks is 3, expected 2")));
}

}  // namespace weir::schedules::dualpipe_test
