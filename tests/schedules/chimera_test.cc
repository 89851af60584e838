// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "gmock/gmock.h"
#include "tests/schedules/closed_form.h"

namespace weir::schedules::chimera_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kForward = 1.0;
constexpr double kBackwards[] = {1, 1.5, 2, 2.7};
constexpr absl::string_view kDoubling =
    "chimera:concatenation=forward-doubling";

TEST(ChimeraTest, MergesTwoOppositeOneFOneBs) {
  const Schedule schedule = Valid("chimera", {4, 4});
  EXPECT_EQ(RowOf(schedule, 0), "0F0 0F1 3F2 3B2 3F3 3B3 0B0 0B1");
  EXPECT_EQ(RowOf(schedule, 1), "1F0 2F2 1F1 2F3 2B2 1B0 2B3 1B1");
  EXPECT_EQ(RowOf(schedule, 2), "1F2 2F0 1F3 2F1 2B0 1B2 2B1 1B3");
  EXPECT_EQ(RowOf(schedule, 3), "0F2 0F3 3F0 3B0 3F1 3B1 0B2 0B3");
  EXPECT_THAT(schedule.routes,
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(3, 2, 1, 0)));
  EXPECT_EQ(schedule.microbatches_per_route_turn, 2);
}

TEST(ChimeraTest, ForwardDoublingTakesTwoForwardsAtOnce) {
  const Schedule schedule = Valid(kDoubling, {4, 8});
  EXPECT_EQ(RowOf(schedule, 0),
            "0F0-1 0F2-3 3F4-5 3B4 3F6-7 3B5 0B0 3B6 0B1 3B7 0B2 0B3");
  EXPECT_EQ(RowOf(Valid("chimera:concatenation=backward-halving", {4, 8}), 0),
            RowOf(schedule, 0));
}

// For F = B, the idle time is D-2 forwards for any number of microbatches. A
// longer backward adds a gap between the units of D microbatches.
TEST(ChimeraTest, DirectConcatenationTakesThePapersTime) {
  for (int d = 2; d <= 16; d += 2) {
    for (int units = 1; units <= 8; ++units) {
      const int n = units * d;
      const Schedule schedule = Valid("chimera", {d, n});
      for (double b : kBackwards) {
        ExpectClose(
            Makespan(schedule, kForward, b),
            n * (kForward + b) + (d - 2) * (b + (units - 1) * (b - kForward)));
      }
      ExpectClose(Makespan(schedule, 1, 1), 2 * n + d - 2);
      ExpectClose(Makespan(schedule, 1, 2),
                  3 * n + 2 * (d - 2) + (units - 1) * (d - 2));
    }
  }
}

TEST(ChimeraTest, MorePipelinesDivideTheIdleTime) {
  for (int d : {4, 8, 12, 16, 24}) {
    for (int f = 1; f <= d / 2; ++f) {
      if (d / 2 % f != 0) continue;
      const std::string name = absl::StrCat("chimera:pipelines=", 2 * f);
      for (int units = 1; units <= 4; ++units) {
        const int n = units * d;
        const int num_idle = d / f - 2;
        const Schedule schedule = Valid(name, {d, n});
        EXPECT_EQ(schedule.num_routes(), 2 * f);
        for (double b : kBackwards) {
          ExpectClose(Makespan(schedule, kForward, b),
                      n * (kForward + b) +
                          num_idle * (b + (units - 1) * (b - kForward)));
        }
      }
    }
  }
}

// Forwards of two microbatches take as long as one backward, so units of 2D
// microbatches have no gap in between. D remaining microbatches run one by one.
TEST(ChimeraTest, ForwardDoublingClosesTheGapsBetweenUnits) {
  for (int d = 2; d <= 16; d += 2) {
    for (int units = 2; units <= 9; ++units) {
      const int n = units * d;
      ExpectClose(Makespan(Valid(kDoubling, {d, n}), 1, 2),
                  3 * n + (units % 2 == 0 ? 2 : 3) * (d - 2));
    }
  }
}

TEST(ChimeraTest, ActivationsAreBalanced) {
  for (int d = 2; d <= 16; d += 2) {
    for (int units = 1; units <= 4; ++units) {
      const Schedule schedule = Valid("chimera", {d, units * d});
      for (int rank = 0; rank < d; ++rank) {
        EXPECT_EQ(PeakActivations(schedule, rank),
                  d / 2 + 1 + std::min(rank, d - 1 - rank));
      }
    }
  }
}

TEST(ChimeraTest, EveryRankHoldsAStageOfEachPipeline) {
  for (int pipelines : {2, 4, 8}) {
    const Schedule schedule =
        Valid(absl::StrCat("chimera:pipelines=", pipelines), {8, 8});
    for (int stage = 0; stage < 8; ++stage) {
      EXPECT_EQ(schedule.RanksOf(stage).size(), pipelines);
      EXPECT_EQ(schedule.StagesOf(stage).size(), pipelines);
    }
  }
}

TEST(ChimeraTest, AnyNumberOfMicrobatchesIsSharedOutEvenly) {
  for (int d : {2, 4, 6}) {
    for (int n = 1; n <= 4 * d + 1; ++n) {
      for (absl::string_view name : {absl::string_view("chimera"), kDoubling}) {
        if (n < (name == kDoubling && n % 2 == 1 ? 3 : 2)) continue;
        const Schedule schedule = Valid(name, {d, n});
        int down = 0;
        for (int k = 0; k < n; ++k) down += schedule.route_of(k) == 0;
        const int most_apart = name == kDoubling ? 2 : 1;
        EXPECT_LE(std::abs(2 * down - n), most_apart) << name << d << n;
        EXPECT_GE(Makespan(schedule, 1, 2) + 1e-9, 3 * n);
      }
    }
  }
}

TEST(ChimeraTest, IllegalShapesAreNamed) {
  EXPECT_THAT(ErrorOf("chimera", {5, 4, 2, 2}),
              AllOf(HasSubstr("pipeline is 5, expected an even number"),
                    HasSubstr("chunks is 2, expected 1"),
                    HasSubstr("num_batches is 2, expected 1")));
  EXPECT_THAT(ErrorOf("chimera:pipelines=3", {6, 6}),
              HasSubstr("pipelines is 3, expected an even divisor of pipeline, "
                        "which is 6"));
  EXPECT_THAT(ErrorOf("chimera:pipelines=4", {6, 6}),
              HasSubstr("pipelines is 4, expected an even divisor"));
  EXPECT_THAT(ErrorOf("chimera:pipelines=4", {8, 3}),
              HasSubstr("num_microbatches is 3, expected at least 4 for "
                        "pipelines 4"));
  EXPECT_THAT(
      ErrorOf("chimera:pipelines=4:concatenation=forward-doubling", {8, 5}),
      HasSubstr("num_microbatches is 5, expected at least 7 for "
                "pipelines 4"));
  EXPECT_THAT(ErrorOf("chimera:concatenation=tripling", {4, 4}),
              HasSubstr("concatenation is 'tripling', expected direct or "
                        "forward-doubling or backward-halving"));
}

}  // namespace weir::schedules::chimera_test
