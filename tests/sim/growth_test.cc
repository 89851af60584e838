// SPDX-License-Identifier: Apache-2.0
// Counts the bytes that runs allocate: four times the size needs at most about
// four times as many. Times are measured by tests/bench/scaling_bench.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>
#include <vector>

#include "sim/bounds/bound.h"
#include "sim/engine/longest_path.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"
#include "tests/sim/given_scenario.h"

namespace {
std::atomic<double> num_bytes{0};
}  // namespace

// NOLINTNEXTLINE
void* operator new(size_t size) {
  num_bytes = num_bytes + static_cast<double>(size);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  num_bytes = num_bytes + static_cast<double>(size);
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace weir::sim {
namespace {

// Allows for n log n and for vectors that double their capacity.
constexpr double kMostGrowth = 4 * 1.5;

template <typename Run>
double BytesOf(const GivenScenario& given, Run run) {
  const scenarios::ResolvedScenario scenario = Resolve(given);
  const double before = num_bytes;
  run(scenario);
  return num_bytes - before;
}

void Rank(const scenarios::ResolvedScenario& scenario) {
  ASSERT_TRUE(FastSimulator().Estimate(scenario).ok());
}
void Full(const scenarios::ResolvedScenario& scenario) {
  ASSERT_TRUE(Simulate(scenario).ok());
}
void Bound(const scenarios::ResolvedScenario& scenario) {
  ASSERT_TRUE(Bounder().Bound(scenario).ok());
}

template <typename Run>
double GrowthWithStages(Run run) {
  GivenScenario given;
  given.num_microbatches = 4;
  given.num_ranks = 1024;
  const double one = BytesOf(given, run);
  given.num_ranks = 4096;
  return BytesOf(given, run) / one;
}

template <typename Run>
double GrowthWithMicrobatches(Run run) {
  GivenScenario given;
  given.schedule = "1f1b";
  given.num_microbatches = 4096;
  const double one = BytesOf(given, run);
  given.num_microbatches = 16384;
  return BytesOf(given, run) / one;
}

TEST(GrowthTest, FastRunsGrowWithTheirStages) {
  EXPECT_LT(GrowthWithStages(Rank), kMostGrowth);
}
TEST(GrowthTest, FullRunsGrowWithTheirStages) {
  EXPECT_LT(GrowthWithStages(Full), kMostGrowth);
}
TEST(GrowthTest, BoundsGrowWithTheirStages) {
  EXPECT_LT(GrowthWithStages(Bound), kMostGrowth);
}
TEST(GrowthTest, FastRunsGrowWithTheirMicrobatches) {
  EXPECT_LT(GrowthWithMicrobatches(Rank), kMostGrowth);
}
TEST(GrowthTest, FullRunsGrowWithTheirMicrobatches) {
  EXPECT_LT(GrowthWithMicrobatches(Full), kMostGrowth);
}

// Returns flows that run one after another over one link.
TaskGraph ChainOfFlows(int32_t num_tasks) {
  TaskGraph graph;
  graph.pairs = {{0, 1, {{0}, 0}}};
  for (int32_t task = 0; task < num_tasks; ++task) {
    graph.AddFlow(0, 1);
    if (task > 0) graph.AddEdge(task - 1, task);
  }
  graph.Finish();
  return graph;
}

// The fast method must not need more memory than the full method, which runs
// the engine in another process.
TEST(GrowthTest, LongestPathTakesNoMemoryBesideItsTimes) {
  const std::vector<scenarios::Link> links = {{"link", 1}};
  const TaskGraph graph = ChainOfFlows(100'000);
  double before = num_bytes;
  const auto path = LongestPath(graph, links);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_LT(num_bytes - before, 100'000);
  EXPECT_EQ(path->end_seconds().back(), 100'000);
  before = num_bytes;
  EXPECT_EQ(FirstSharedTime(graph, links, *path),
            std::numeric_limits<double>::infinity());
  // One interval per flow.
  EXPECT_LT(num_bytes - before, 25 * 100'000);
}

}  // namespace
}  // namespace weir::sim
