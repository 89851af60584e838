// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "tests/schedules/closed_form.h"

namespace weir::schedules::two_stage_backward_test {

using testing::AllOf;
using testing::HasSubstr;

constexpr double kForward = 1.0, kInput = 1.2, kWeight = 0.9;
constexpr RankSeconds kSeconds = {kForward, kInput, kWeight};
constexpr absl::string_view kKinds[] = {"2bp-naive", "2bp-gpipe", "2bp-1f1b-1",
                                        "2bp-1f1b-2"};

// Returns a legal number of microbatches for the kind: any, p or 2p.
int Microbatches(absl::string_view kind, int p, int any) {
  return kind == "2bp-1f1b-1" ? p : kind == "2bp-1f1b-2" ? 2 * p : any;
}

TEST(TwoStageBackwardTest, WeightGradientsFillTheDrain) {
  const Schedule schedule = Valid("2bp-1f1b-1", {3, 3});
  EXPECT_EQ(RowOf(schedule, 0), "0F0 0F1 0F2 0I0 0W0 0I1 0W1 0I2 0W2");
  EXPECT_EQ(RowOf(schedule, 1), "1F0 1F1 1I0 1F2 1I1 1W0 1I2 1W1 1W2");
  EXPECT_EQ(RowOf(schedule, 2), "2F0 2I0 2F1 2I1 2F2 2I2 2W0 2W1 2W2");
}

TEST(TwoStageBackwardTest, WhatIsLeftCanBeOneAction) {
  EXPECT_EQ(RowOf(Valid("2bp-1f1b-1:concatenate=yes", {3, 3}), 1),
            "1F0 1F1 1I0 1F2 1I1 1W0 1I2 1W1-2");
  EXPECT_EQ(RowOf(Valid("2bp-gpipe:concatenate=yes", {2, 4}), 0),
            "0F0 0F1 0F2 0F3 0I3 0I2 0I1 0I0 0W0-3");
  EXPECT_EQ(
      RowOf(Valid("2bp-1f1b-1:backward-p2=end:concatenate=yes", {3, 3}), 0),
      "0F0 0F1 0F2 0I0 0I1 0I2 0W0-2");
}

TEST(TwoStageBackwardTest, NaiveUsesTheTimeThatOthersCompute) {
  const Schedule schedule = Valid("2bp-naive", {2, 3});
  EXPECT_EQ(RowOf(schedule, 0), "0F0 0I0 0F1 0W0 0I1 0F2 0W1 0I2 0W2");
  EXPECT_EQ(RowOf(schedule, 1), "1F0 1I0 1W0 1F1 1I1 1W1 1F2 1I2 1W2");
}

TEST(TwoStageBackwardTest, WithAllAtTheEndNothingIsFilled) {
  for (int p = 1; p <= 16; ++p) {
    for (int any : {1, 2, 3, p, p + 1, 2 * p, 4 * p}) {
      for (absl::string_view kind : kKinds) {
        const int m = Microbatches(kind, p, any);
        for (const char* concatenate : {"no", "yes"}) {
          const Schedule schedule = Valid(
              absl::StrCat(kind, kind == "2bp-gpipe" ? "" : ":backward-p2=end",
                           ":concatenate=", concatenate),
              {p, m});
          const int passes = kind == "2bp-naive" ? m * p : m + p - 1;
          ExpectClose(Makespan(schedule, kSeconds),
                      passes * (kForward + kInput) + m * kWeight);
          for (int rank = 0; rank < p; ++rank) {
            EXPECT_EQ(PeakDeferredWeights(schedule, rank), m);
          }
        }
      }
    }
  }
}

// Stage s finishes its input gradients s input gradients before stage 0 and has
// p-1-s fewer weight gradients left, with which it filled its drain. W fits
// between two input gradients while W <= F.
TEST(TwoStageBackwardTest, OneFOneBFillsItsDrain) {
  for (int p = 1; p <= 16; ++p) {
    for (int per_rank : {1, 2}) {
      const int m = per_rank * p;
      const Schedule schedule =
          Valid(absl::StrCat("2bp-1f1b-", per_rank), {p, m});
      for (double f : {0.9, 1.0, 1.5}) {
        for (double i : {0.5, 1.0, 1.5}) {
          for (double w : {0.3, 0.9}) {
            double expected = 0;
            for (int s : {0, p - 1}) {
              expected = std::max(expected, (m + p - 1) * (f + i) - s * i +
                                                (m - (p - 1 - s)) * w);
            }
            ExpectClose(Makespan(schedule, {f, i, w}), expected);
          }
        }
      }
      // With equal passes, the makespan is that of Zero Bubble's H1.
      ExpectClose(Makespan(schedule, {1, 1, 1}), 3 * m + p - 1);
      for (int rank = 0; rank < p; ++rank) {
        EXPECT_EQ(PeakDeferredWeights(schedule, rank), m - (p - 1 - rank));
      }
    }
  }
}

// The makespan is between that of Zero Bubble's H1, which fills every gap that
// fits a W, and that with all weight gradients at the end, which fills none.
TEST(TwoStageBackwardTest, OneFOneBIsBetweenH1AndNothingFilled) {
  for (int p = 1; p <= 12; ++p) {
    for (int per_rank : {1, 2}) {
      const int m = per_rank * p;
      const std::string kind = absl::StrCat("2bp-1f1b-", per_rank);
      for (double f : {0.9, 1.0, 1.5}) {
        for (double i : {0.9, 1.0, 1.5}) {
          for (double w : {0.3, 0.9}) {
            const RankSeconds seconds = {f, i, w};
            const double makespan = Makespan(Valid(kind, {p, m}), seconds);
            EXPECT_GE(makespan + 1e-9,
                      Makespan(Valid("zb-h1", {p, m}), seconds))
                << p << " " << m << " " << f << " " << i << " " << w;
            EXPECT_LE(makespan, (m + p - 1) * (f + i) + m * w + 1e-9);
          }
        }
      }
    }
  }
}

TEST(TwoStageBackwardTest, NaiveHidesAllButTheLast) {
  for (int p = 2; p <= 8; ++p) {
    for (int m = 1; m <= 8; ++m) {
      const Schedule schedule = Valid("2bp-naive", {p, m});
      for (double w : {0.3, 0.9, kForward + kInput}) {
        ExpectClose(Makespan(schedule, {kForward, kInput, w}),
                    m * p * (kForward + kInput) + w);
      }
      for (int rank = 0; rank < p; ++rank) {
        EXPECT_EQ(PeakDeferredWeights(schedule, rank), 1);
      }
    }
  }
}

TEST(TwoStageBackwardTest, IllegalShapesAreNamed) {
  EXPECT_THAT(ErrorOf("2bp-1f1b-1", {4, 5}),
              HasSubstr("num_microbatches is 5, expected 4 for pipeline 4"));
  EXPECT_THAT(
      ErrorOf("2bp-1f1b-2", {4, 4, 2, 2}),
      AllOf(HasSubstr("num_microbatches is 4, expected 8 for pipeline 4"),
            HasSubstr("chunks is 2, expected 1"),
            HasSubstr("num_batches is 2, expected 1")));
  EXPECT_THAT(ErrorOf("2bp-naive:backward-p2=never", {4, 4}),
              HasSubstr("backward-p2 is 'never', expected idle or end"));
  EXPECT_THAT(ErrorOf("2bp-gpipe:backward-p2=end", {4, 4}),
              HasSubstr("option 'backward-p2' is unknown"));
}

}  // namespace weir::schedules::two_stage_backward_test
