// SPDX-License-Identifier: Apache-2.0
// Checks that in a simulated timeline every transfer has a flow from its
// producer to its consumer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "results/store.h"
#include "results/trace/trace.h"
#include "sim/simulate.h"
#include "tests/results/trace/trace_stats.h"
#include "tests/sim/given_scenario.h"

namespace weir::results::simulated_trace_test {

struct Case {
  const char* schedule;
  int num_chunks;
  double hop_seconds;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.schedule << " hop " << c.hop_seconds;
}

class SimulatedTraceTest : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Schedules, SimulatedTraceTest,
                         ::testing::Values(Case{"gpipe", 1, 0.25},
                                           Case{"1f1b", 1, 0.25},
                                           Case{"interleaved-1f1b", 2, 0.1},
                                           Case{"pipedream", 1, 0.25},
                                           Case{"pipedream", 1, 3}));

TEST_P(SimulatedTraceTest, EveryTransferFlowsFromProducerToConsumer) {
  sim::GivenScenario given;
  given.schedule = GetParam().schedule;
  given.num_chunks = GetParam().num_chunks;
  given.hop_seconds = GetParam().hop_seconds;
  sim::SimulateOptions options;
  options.keep_timeline = true;
  const auto result = sim::Simulate(sim::Resolve(given), options);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto bytes = PerfettoTrace(*result);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const ReadTrace trace = ReadPerfetto(*bytes);
  EXPECT_THAT(trace.errors, ::testing::IsEmpty());
  EXPECT_GT(trace.flows.size(), 0u);
  EXPECT_EQ(
      trace.flows.size(),
      static_cast<size_t>(result->timeline().transfers().from_gpu_size()));
  for (const auto& [id, slices] : trace.flows) {
    EXPECT_EQ(slices.size(), 3u) << trace.DescribeFlow(id);
  }
  Results results;
  *results.add_results() = *result;
  EXPECT_TRUE(ParseResults("simulated", results.SerializeAsString()).ok());
}

}  // namespace weir::results::simulated_trace_test
