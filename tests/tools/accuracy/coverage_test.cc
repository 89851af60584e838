// SPDX-License-Identifier: Apache-2.0
// Checks that 90 % intervals contain 90 % of the rows, and the order of
// systems.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tools/accuracy/row_errors.h"

namespace weir::coverage_test {

// Rows whose logarithms are off by 1 %, 2 %, ... 20 %, all with the same
// claimed deviation.
RowErrors Rows(double deviation) {
  RowErrors rows;
  for (int i = 1; i <= 20; ++i) {
    rows.lines.push_back(i);
    rows.names.push_back("x");
    rows.predicted.push_back(10);
    rows.measured.push_back(10 * std::exp(i % 2 == 0 ? 0.01 * i : -0.01 * i));
    rows.low.push_back(10 * std::exp(-1.6448536269514722 * deviation));
    rows.high.push_back(10 * std::exp(1.6448536269514722 * deviation));
  }
  return rows;
}

TEST(CoverageTest, CountsRowsInsideTheirIntervals) {
  const RowErrors rows = Rows(0.105 / 1.6448536269514722);
  EXPECT_EQ(PartInside(rows, rows), 0.5);
  RowErrors none = rows;
  none.low.clear();
  none.high.clear();
  EXPECT_LT(PartInside(rows, none), 0);
}

// The costs alone have an error of 0.03. The step residual adds the rest to
// reach the error of 0.18 that includes 90 % of the rows.
TEST(CoverageTest, TheStepResidualBringsNineOfTenInside) {
  const double costs = 0.03, before = 0.04;
  const RowErrors rows = Rows(std::hypot(costs, before));
  const double residual = StepResidual(rows, rows, before);
  const double all = 0.18 / 1.6448536269514722;
  EXPECT_NEAR(residual, std::sqrt(all * all - costs * costs), 1e-9);
  const RowErrors after = Rows(std::hypot(costs, residual) * (1 + 1e-9));
  EXPECT_EQ(PartInside(after, after), 0.9);
}

// Names without a group, such as those of single runs, are not compared.
TEST(CoverageTest, ComparesTheOrderInsideGroupsOnly) {
  RowErrors rows;
  rows.names = {"m=8: a", "m=8: b", "m=16: a", "m=16: b", "c", "d"};
  rows.measured = {1, 2, 3, 4, 5, 6};
  rows.predicted = {1, 2, 4, 3, 6, 5};
  const Order order = CompareOrder(rows);
  EXPECT_EQ(order.num_pairs, 2);
  EXPECT_EQ(order.wrong,
            std::vector<std::string>{"m=16: a is not below m=16: b"});
}

}  // namespace weir::coverage_test
