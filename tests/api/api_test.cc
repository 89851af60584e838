// SPDX-License-Identifier: Apache-2.0
// The public library gives the numbers of the simulator, and exceptions that
// name fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weir/weir.h"

namespace weir::api::api_test {

using testing::Contains;
using testing::HasSubstr;

constexpr double kTolerance = 1e-9;

Scenario OneSecondPasses(const PipelineShape& shape) {
  return Scenario::FromCosts(shape, [](const StageOfPipeline&) {
    return StageCosts{.forward_seconds = 1,
                      .backward_input_seconds = 1,
                      .backward_weight_seconds = 1};
  });
}

// Returns the problems that the function throws.
template <typename Function>
std::vector<Problem> ProblemsOf(Function function,
                                Error::Kind kind = Error::Kind::kInvalidInput) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.problems();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// GPipe: (m + p - 1) (F + B), of which p - 1 are idle.
TEST(ApiTest, GivenCostsTakeTheTimeOfTheClosedForm) {
  const int p = 4, m = 8;
  const Scenario scenario = OneSecondPasses(
      {.num_ranks = p, .num_microbatches = m, .schedule = "gpipe"});
  const Result result = Simulate(scenario);
  EXPECT_NEAR(result.step_seconds, 3 * (m + p - 1), kTolerance);
  EXPECT_NEAR(result.idle_ratio, (p - 1.0) / (m + p - 1), kTolerance);
  EXPECT_EQ(result.num_microbatches, m);
  ASSERT_EQ(result.gpus.size(), 4u);
  for (const Gpu& gpu : result.gpus) {
    EXPECT_NEAR(gpu.busy_seconds, 3 * m, kTolerance);
    EXPECT_NEAR(gpu.busy_seconds + gpu.idle_seconds, result.makespan_seconds,
                kTolerance);
  }
  EXPECT_TRUE(result.passes.empty());
  EXPECT_NEAR(Estimate(scenario).step_seconds, result.step_seconds, kTolerance);
}

TEST(ApiTest, ResultOfAPresetIsConsistent) {
  Scenario scenario = Scenario::Load("llama-3-70b-64-h100");
  const Result result = Simulate(scenario);
  EXPECT_EQ(result.gpus.size(), 64u);
  EXPECT_LT(result.step_seconds_low, result.step_seconds);
  EXPECT_GT(result.step_seconds_high, result.step_seconds);
  const Breakdown& parts = result.breakdown;
  const double sum =
      parts.compute_seconds + parts.tensor_communication_seconds +
      parts.expert_communication_seconds + parts.context_communication_seconds +
      parts.pipeline_transfer_seconds + parts.data_communication_seconds +
      parts.optimizer_seconds + parts.bubble_seconds + parts.rollback_seconds;
  EXPECT_NEAR(sum / result.step_seconds, 1, 1e-6);

  const FastEstimate estimate = Estimate(scenario);
  EXPECT_NEAR(estimate.step_seconds / result.step_seconds, 1, kTolerance);
  double peak_bytes = 0;
  for (double bytes : estimate.rank_peak_memory_bytes) {
    peak_bytes = std::max(peak_bytes, bytes);
  }
  EXPECT_NEAR(peak_bytes / result.peak_memory_bytes, 1, kTolerance);
  EXPECT_EQ(estimate.fits_memory, result.fits_memory);

  // After a fast estimate, and another schedule.
  scenario.SetSchedule("zb-h1");
  EXPECT_LT(Simulate(scenario).idle_ratio, result.idle_ratio);
}

TEST(ApiTest, TimelineHasEveryPass) {
  const Result result =
      Simulate(OneSecondPasses({.num_ranks = 2, .num_microbatches = 3}),
               {.timeline = true});
  ASSERT_EQ(result.passes.size(), 2u * 3 * 2);
  double seconds = 0;
  for (const PassTime& pass : result.passes) {
    EXPECT_TRUE(pass.pass.op == Op::kForward || pass.pass.op == Op::kBackward);
    seconds += pass.end_seconds - pass.start_seconds;
  }
  EXPECT_NEAR(seconds, 2 * 3 * 3, kTolerance);
}

TEST(ApiTest, SetReplacesFieldsAndLists) {
  Scenario scenario = Scenario::Parse(
      "model: 'gpt2' parallelism { pipeline: 2 blocks_per_stage: [6, 6] }");
  const Scenario before = scenario;
  scenario.Set("parallelism { blocks_per_stage: [5, 7] }");
  EXPECT_THAT(scenario.text(), HasSubstr("pipeline: 2"));
  EXPECT_THAT(scenario.text(),
              HasSubstr("blocks_per_stage: 5\n  blocks_per_stage: 7\n}"));
  EXPECT_THAT(before.text(), HasSubstr("blocks_per_stage: 6"));
  EXPECT_EQ(Scenario::Parse(R"({"model": "gpt2"})").text(),
            "model: \"gpt2\"\n");
}

TEST(ApiTest, ErrorsNameFields) {
  Scenario scenario = Scenario::Load("llama-3-70b-64-h100");
  scenario.Set("parallelism { tensor: 7 } batch { microbatch_size: 4000000 }");
  const std::vector<Problem> problems = ProblemsOf([&] { Simulate(scenario); });
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0].file, "llama-3-70b-64-h100");
  EXPECT_FALSE(problems[0].expected.empty()) << problems[0].message;
  EXPECT_THAT(ProblemsOf([] { Scenario::Load("no-such-preset"); })[0].message,
              HasSubstr("no-such-preset"));
  EXPECT_THAT(
      ProblemsOf([] { Scenario::Parse("no_such_field: 1"); })[0].message,
      HasSubstr("no_such_field"));
}

TEST(ApiTest, ImpossibleCostsAreRefused) {
  const double bad_costs[] = {-1, std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity()};
  for (const double seconds : bad_costs) {
    ProblemsOf([&] {
      Scenario::FromCosts({}, [&](const StageOfPipeline&) {
        return StageCosts{.forward_seconds = seconds};
      });
    });
  }
  ProblemsOf([] { OneSecondPasses({.num_ranks = 0}); });
  ProblemsOf([] { OneSecondPasses({.num_ranks = 1 << 20, .num_chunks = 2}); });
}

// Runs the microbatches one after the other.
Schedule OneByOne(const ScheduleShape& shape) {
  if (shape.num_chunks != 1) throw std::invalid_argument("expected one chunk");
  Schedule schedule;
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    schedule.stage_ranks.push_back(rank);
    std::vector<Pass>& passes = schedule.rank_passes.emplace_back();
    for (int i = 0; i < shape.num_microbatches; ++i) {
      passes.push_back({Op::kForward, rank, i});
      passes.push_back({Op::kBackward, rank, i});
    }
  }
  return schedule;
}

TEST(ApiScheduleTest, RegisteredSchedulesRunLikeOthers) {
  RegisterSchedule("one-by-one", "no overlap", false, OneByOne);
  EXPECT_THAT(ScheduleNames(), Contains("one-by-one"));
  const Scenario scenario = OneSecondPasses(
      {.num_ranks = 3, .num_microbatches = 5, .schedule = "one-by-one"});
  EXPECT_NEAR(Simulate(scenario).step_seconds, 5 * 3 * 3, kTolerance);
  EXPECT_NEAR(Estimate(scenario).step_seconds, 5 * 3 * 3, kTolerance);
  EXPECT_THAT(
      ProblemsOf([] { RegisterSchedule("One_By_One", "", false, OneByOne); })[0]
          .message,
      HasSubstr("one-by-one"));
  ProblemsOf([] { RegisterSchedule("1f1b", "", false, OneByOne); });
  ProblemsOf([] { RegisterSchedule("a:b", "", false, OneByOne); });
  EXPECT_THAT(ProblemsOf([] {
                Simulate(OneSecondPasses({.num_ranks = 2,
                                          .num_chunks = 2,
                                          .num_microbatches = 4,
                                          .schedule = "one-by-one"}));
              })[0]
                  .message,
              HasSubstr("expected one chunk"));
}

TEST(ApiScheduleTest, WrongSchedulesAreRefused) {
  RegisterSchedule("too-short", "", false, [](const ScheduleShape& shape) {
    Schedule schedule = OneByOne(shape);
    schedule.rank_passes[0].pop_back();
    return schedule;
  });
  RegisterSchedule("reversed", "", false, [](const ScheduleShape& shape) {
    Schedule schedule = OneByOne(shape);
    std::reverse(schedule.rank_passes[0].begin(),
                 schedule.rank_passes[0].end());
    return schedule;
  });
  RegisterSchedule("no-ranks", "", false,
                   [](const ScheduleShape&) { return Schedule(); });
  for (const char* name : {"too-short", "reversed", "no-ranks"}) {
    try {
      Simulate(OneSecondPasses(
          {.num_ranks = 2, .num_microbatches = 2, .schedule = name}));
      ADD_FAILURE() << name << " was accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(name));
      EXPECT_NE(error.kind(), Error::Kind::kInternal) << error.what();
    }
  }
}

TEST(ApiScheduleTest, SchedulesOfWeirArePlainData) {
  const Schedule schedule =
      GenerateSchedule("zb-h1", {.num_ranks = 2, .num_microbatches = 3});
  ASSERT_EQ(schedule.rank_passes.size(), 2u);
  EXPECT_EQ(schedule.stage_ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(schedule.rank_passes[0].size(), 3u * 3);  // F, I and W
  ProblemsOf([] {
    GenerateSchedule("pipedream", {.num_ranks = 2, .num_microbatches = 3});
  });
}

TEST(ApiTest, ThreadsWaitForEachOther) {
  const Scenario scenario = OneSecondPasses(
      {.num_ranks = 4, .num_microbatches = 8, .hop_seconds = 0.1});
  const double expected = Simulate(scenario).step_seconds;
  std::vector<double> seconds(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < seconds.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 5; ++k) {
        seconds[i] = i % 2 == 0 ? Simulate(scenario).step_seconds
                                : Estimate(scenario).step_seconds;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (double found : seconds) EXPECT_NEAR(found, expected, kTolerance * 100);
}

}  // namespace weir::api::api_test
