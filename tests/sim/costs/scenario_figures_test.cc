// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/scenario_figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "sim/simulate.h"

namespace weir::sim::scenario_figures_test {

scenarios::ResolvedScenario Small() {
  auto scenario = scenarios::LoadScenario("pipedream-flush-gpt-2.2b");
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  auto resolved = scenarios::ResolveScenario("test", *scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *std::move(resolved);
}

int Find(const std::vector<ScenarioFigure>& figures, const std::string& path) {
  for (size_t i = 0; i < figures.size(); ++i) {
    if (absl::StrContains(figures[i].path, path)) return static_cast<int>(i);
  }
  ADD_FAILURE() << path;
  return 0;
}

TEST(ScenarioFiguresTest, ChangesOneFigureAndNothingElse) {
  const scenarios::ResolvedScenario scenario = Small();
  const auto figures = FiguresOf(scenario);
  for (size_t i = 0; i < figures.size(); ++i) {
    const auto changed =
        FiguresOf(WithFigure(scenario, static_cast<int>(i), 2));
    ASSERT_EQ(changed.size(), figures.size());
    for (size_t k = 0; k < figures.size(); ++k) {
      EXPECT_EQ(changed[k].value, figures[k].value * (k == i ? 2 : 1))
          << figures[k].path;
    }
  }
}

TEST(ScenarioFiguresTest, CountsAreNoFigureToFollow) {
  for (const ScenarioFigure& figure : FiguresOf(Small())) {
    EXPECT_FALSE(absl::StrContains(figure.path, "num_")) << figure.path;
  }
}

TEST(ScenarioFiguresTest, LinksOfOneKindAreOneFigure) {
  const scenarios::ResolvedScenario scenario = Small();
  const auto figures = FiguresOf(scenario);
  const int nic = Find(figures, "nics[].bytes_per_second");
  EXPECT_EQ(figures[nic].kind, Figure::DATASHEET);
  const scenarios::ResolvedScenario changed = WithFigure(scenario, nic, 2);
  for (const Nic& one : changed.cluster.groups(0).node().nics()) {
    EXPECT_EQ(one.bytes_per_second(), 2 * figures[nic].value);
  }
}

TEST(ScenarioFiguresTest, FiguresOfMemoryLeaveTheTime) {
  const scenarios::ResolvedScenario scenario = Small();
  const auto figures = FiguresOf(scenario);
  const auto result = Simulate(scenario);
  ASSERT_TRUE(result.ok()) << result.status();
  const double seconds = result->batch_seconds();
  const auto of = [&](const char* path) {
    return Simulate(WithFigure(scenario, Find(figures, path), 1.01))
        ->batch_seconds();
  };
  EXPECT_EQ(of("collectives.memory.once_bytes"), seconds);
  EXPECT_EQ(of("reserved_bytes"), seconds);
  EXPECT_NE(of("gemm.matrix_rate"), seconds);
  EXPECT_NE(of("nics[].bytes_per_second"), seconds);
  EXPECT_NE(of("update_seconds"), seconds);
}

// Times depend only on times and rates: doubling all times and halving all
// rates doubles the result (Euler: the sum of the elasticities of times minus
// that of rates is 1).
TEST(ScenarioFiguresTest, AllTimesAndRatesTogetherAreTheWholeTime) {
  scenarios::ResolvedScenario scenario = Small();
  const auto before = Simulate(scenario);
  const auto figures = FiguresOf(scenario);
  for (size_t i = 0; i < figures.size(); ++i) {
    const std::string& path = figures[i].path;
    const bool rate = absl::StrContains(path, "per_second") ||
                      absl::EndsWith(path, "peak_flops");
    if (!rate && !absl::EndsWith(path, "_seconds")) continue;
    scenario = WithFigure(scenario, static_cast<int>(i), rate ? 0.5 : 2);
  }
  const auto after = Simulate(scenario);
  ASSERT_TRUE(before.ok() && after.ok()) << before.status() << after.status();
  EXPECT_NEAR(after->batch_seconds(), 2 * before->batch_seconds(),
              1e-9 * after->batch_seconds());
}

}  // namespace weir::sim::scenario_figures_test
