// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/cross_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/error_statistics.h"

namespace weir::calibrate::cross_validation_test {

using testing::ElementsAre;

TEST(CrossValidationTest, NoFitSeesARowOfTheGroupItPredicts) {
  const std::vector<int> groups = {7, 3, 7, 5, 3};
  int num_calls = 0;
  const auto predicted = CrossValidate(
      groups, [&](absl::Span<const int> fitted, absl::Span<const int> left) {
        ++num_calls;
        EXPECT_EQ(fitted.size() + left.size(), groups.size());
        std::vector<double> values;
        for (int row : left) {
          EXPECT_EQ(groups[row], groups[left[0]]);
          values.push_back(row * 10);
        }
        for (int row : fitted) EXPECT_NE(groups[row], groups[left[0]]);
        return values;
      });
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_THAT(*predicted, ElementsAre(0, 10, 20, 30, 40));
  EXPECT_EQ(num_calls, 3);
}

TEST(CrossValidationTest, TheMeanOfTheOthersIsAllThatAFitCanKnow) {
  const std::vector<double> values = {1, 2, 6};
  const auto predicted = CrossValidate(
      RowFolds(3, 3), [&](absl::Span<const int> fitted, absl::Span<const int>) {
        double sum = 0;
        for (int row : fitted) sum += values[row];
        return std::vector<double>{sum / static_cast<double>(fitted.size())};
      });
  EXPECT_THAT(*predicted, ElementsAre(4, 3.5, 1.5));
}

TEST(CrossValidationTest, ErrorsOfAFitComeBack) {
  const auto failing = [](absl::Span<const int>, absl::Span<const int>) {
    return absl::StatusOr<std::vector<double>>(
        absl::InvalidArgumentError("no fit"));
  };
  EXPECT_EQ(CrossValidate(RowFolds(3, 2), failing).status().message(),
            "no fit");
  const auto short_of_one = [](absl::Span<const int>, absl::Span<const int>) {
    return std::vector<double>();
  };
  EXPECT_EQ(CrossValidate(RowFolds(3, 2), short_of_one).status().code(),
            absl::StatusCode::kInternal);
}

TEST(CrossValidationTest, GroupsFollowTheKeys) {
  EXPECT_THAT(GroupsOf(std::vector<std::string>{"b", "a", "b"}),
              ElementsAre(0, 1, 0));
  EXPECT_THAT(RowFolds(5, 2), ElementsAre(0, 1, 0, 1, 0));
}

TEST(ErrorStatisticsTest, KeepsSignsAndNamesTheWorst) {
  const ErrorStatistics statistics =
      SummarizeErrors({1.1, 0.8, 1.0}, {1, 1, 1});
  EXPECT_EQ(statistics.num_rows, 3);
  EXPECT_NEAR(statistics.mean_absolute, 0.1, 1e-12);
  EXPECT_NEAR(statistics.bias, -0.1 / 3, 1e-12);
  EXPECT_NEAR(statistics.percentile_90, 0.18, 1e-12);
  EXPECT_NEAR(statistics.worst, -0.2, 1e-12);
  EXPECT_EQ(statistics.worst_row, 1);
  EXPECT_EQ(SummarizeErrors({}, {}).worst_row, -1);
}

}  // namespace weir::calibrate::cross_validation_test
