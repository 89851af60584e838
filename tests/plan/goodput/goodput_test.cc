// SPDX-License-Identifier: Apache-2.0
#include "plan/goodput/goodput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "plan/goodput/estimate_runs.h"
#include "plan/goodput/goodput_views.h"
#include "plan/goodput/interval.h"
#include "plan/goodput/investments.h"

namespace weir::plan::goodput_test {

using testing::HasSubstr;
using testing::Not;

GoodputRequest LlamaRequest() {
  GoodputRequest request;
  request.name = "llama";
  request.reliability = *LoadReliability("llama-3-405b");
  request.job = {16384, 2048};
  request.step.seconds = 11;
  request.work_seconds = 54 * 86400.0;
  request.checkpoint.bytes = 405e9 * 14;
  request.checkpoint.storage_bytes_per_second = 500e9;
  request.num_runs = 100;
  return request;
}

GoodputReport Report(const GoodputRequest& request) {
  const auto report = PredictGoodput(request);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.value_or(GoodputReport{});
}

const Investment* Find(const GoodputReport& report, const std::string& what) {
  for (const Investment& each : report.investments) {
    if (each.what == what) return &each;
  }
  return nullptr;
}

TEST(GoodputTest, LlamaThreeReachesNinetyPercentWithinTheImpliedBound) {
  GoodputRequest request = LlamaRequest();
  request.target_goodput = 0.9;
  const GoodputReport report = Report(request);
  EXPECT_NEAR(*report.largest_loss_seconds / 60, 18.56, 0.01);
  EXPECT_LT(report.mean_loss_seconds, *report.largest_loss_seconds);
  EXPECT_GT(report.goodput(), 0.9);
  EXPECT_NEAR(
      report.estimate.num_failures.mean,
      report.estimate.wall_seconds.mean / report.mean_seconds_between_failures,
      5);
  // A recovery that alone takes the bound pushes it below.
  request.reliability.set_restart_seconds(18.6 * 60);
  EXPECT_LT(Report(request).goodput(), 0.9);
}

TEST(GoodputTest, BloomLosesAtMostThreeHoursByAFailure) {
  GoodputRequest request;
  request.reliability = *LoadReliability("bloom-176b");
  request.job = {384, 48};
  request.step.seconds = 105;
  request.checkpoint.bytes = 2.3e12;
  request.checkpoint.storage_bytes_per_second = 2.3e12 / 40;
  request.interval_steps = 100;
  const GoodputReport report = Report(request);
  EXPECT_NEAR(report.checkpoint.stall_seconds, 40, 1e-9);
  EXPECT_NEAR(report.mean_seconds_between_failures, 7 * 86400, 1e-6);
  EXPECT_NEAR(report.most_lost_seconds, 100 * 105 + 40, 1e-6);
  EXPECT_LE(report.most_lost_seconds, 3 * 3600);
  // 100 steps are near the best: Young's interval has 66.
  EXPECT_NEAR(report.young_seconds / 105, 66.2, 0.1);
  EXPECT_GT(report.goodput(), 0.98);
}

TEST(GoodputTest, SimulationAndClosedFormsAgree) {
  GoodputRequest request = LlamaRequest();
  request.num_runs = 400;
  const GoodputReport report = Report(request);
  ASSERT_TRUE(report.expected_goodput.has_value());
  // The closed form counts the last checkpoint like all others.
  EXPECT_NEAR(
      report.goodput(), *report.expected_goodput,
      4 * report.estimate.standard_error / report.estimate.wall_seconds.mean);
  const double exact_steps = report.exact_seconds / request.step.seconds;
  EXPECT_LE(report.flat_from_steps, exact_steps);
  EXPECT_GE(report.flat_to_steps, exact_steps);
  const double at_exact = ExpectedSeconds(
      1, report.exact_seconds, report.checkpoint.stall_seconds,
      RecoverySeconds(request), report.mean_seconds_between_failures);
  EXPECT_NEAR(1 / *report.expected_goodput, at_exact, 2e-3);
}

// A given interval does not move the search for the best one.
TEST(GoodputTest, TheBestIntervalsDoNotDependOnTheGivenOne) {
  GoodputRequest request = LlamaRequest();
  const GoodputReport best = Report(request);
  for (const double factor : {0.02, 30.0}) {
    request.interval_steps = std::round(factor * best.estimate.interval_steps);
    const GoodputReport report = Report(request);
    EXPECT_EQ(report.estimate.interval_steps, request.interval_steps);
    EXPECT_EQ(report.flat_from_steps, best.flat_from_steps);
    EXPECT_EQ(report.flat_to_steps, best.flat_to_steps);
  }
}

TEST(GoodputTest, NoProgressNamesTheTimeBetweenCheckpoints) {
  GoodputRequest request = LlamaRequest();
  request.interval_steps = 1e8;
  EXPECT_THAT(std::string(PredictGoodput(request).status().message()),
              testing::HasSubstr("the time between checkpoints ("));
}

TEST(GoodputTest, TriedIntervalsContainTheBest) {
  const GoodputReport report = Report(LlamaRequest());
  ASSERT_GT(report.tried_intervals.size(), 10);
  double least = report.tried_intervals[0].wall_seconds;
  for (size_t i = 0; i < report.tried_intervals.size(); ++i) {
    const TriedInterval& tried = report.tried_intervals[i];
    least = std::min(least, tried.wall_seconds);
    EXPECT_GT(tried.goodput, 0);
    EXPECT_LT(tried.goodput, 1);
    if (i > 0) {
      EXPECT_GT(tried.steps, report.tried_intervals[i - 1].steps);
    }
  }
  const auto best =
      std::find_if(report.tried_intervals.begin(), report.tried_intervals.end(),
                   [&](const TriedInterval& tried) {
                     return tried.steps == report.estimate.interval_steps;
                   });
  ASSERT_NE(best, report.tried_intervals.end());
  EXPECT_EQ(best->wall_seconds, least);
}

TEST(GoodputTest, SharesAddUp) {
  GoodputRequest request = LlamaRequest();
  request.num_spares = 3;
  const TimeShares shares = Report(request).estimate.shares;
  EXPECT_NEAR(shares.useful + shares.stalls + shares.lost + shares.recovery +
                  shares.waiting + shares.degraded,
              1, 1e-9);
  EXPECT_GT(shares.waiting, 0);
}

TEST(GoodputTest, TheIntervalOfTheStepTimeWidensTheDays) {
  GoodputRequest request = LlamaRequest();
  const Interval90 narrow = Report(request).estimate.wall_seconds;
  request.step.low_seconds = 10;
  request.step.high_seconds = 12;
  const Interval90 wide = Report(request).estimate.wall_seconds;
  EXPECT_LT((narrow.high - narrow.low) / narrow.mean, 0.05);
  EXPECT_NEAR(wide.high / narrow.high, 12.0 / 11, 0.03);
  EXPECT_NEAR(wide.low / narrow.low, 10.0 / 11, 0.03);
}

TEST(GoodputTest, TheMeanOverStepTimesIsThatOfTheirDistribution) {
  GoodputRequest request = LlamaRequest();
  request.reliability.clear_classes();
  request.num_runs = 200;
  FailureClass* rare = request.reliability.add_classes();
  rare->set_name("job");
  rare->set_unit(FailureClass::JOB);
  rare->set_mean_hours_between_failures(1e9);
  request.interval_steps = 10'000;
  request.step.low_seconds = 10;
  request.step.high_seconds = 22;
  const auto half = [](double spread) {
    return std::exp(spread * spread / 2) * std::erfc(-spread / std::sqrt(2)) /
           2;
  };
  const double mean = half(std::log(2.0) / 1.6448536269514722) +
                      half(std::log(10.0 / 11) / 1.6448536269514722);
  const GoodputReport report = Report(request);
  EXPECT_NEAR(report.estimate.shares.useful *
                  report.estimate.wall_seconds.mean / request.work_seconds,
              mean, 2e-3 * mean);
  EXPECT_LT(report.estimate.standard_error,
            2e-3 * report.estimate.wall_seconds.mean);
}

TEST(GoodputTest, StandardErrorsCoverElasticitiesOfOtherSeeds) {
  GoodputRequest request = LlamaRequest();
  request.step.low_seconds = 10;
  request.step.high_seconds = 13;
  request.interval_steps = 60;
  request.work_seconds = 10 * 86400.0;
  std::vector<double> values;
  double squares = 0;
  constexpr int kSeeds = 12;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    request.seed = seed;
    GoodputReport report;
    report.request = request;
    report.estimate = EstimateRuns(request, request.interval_steps);
    report.investments = InvestmentsOf(report);
    const Investment* gpu = Find(report, "time between failures: gpu");
    ASSERT_NE(gpu, nullptr);
    EXPECT_GT(gpu->elasticity_error, 0);
    values.push_back(*gpu->elasticity);
    squares += gpu->elasticity_error * gpu->elasticity_error / kSeeds;
  }
  double mean = 0, spread = 0;
  for (const double value : values) mean += value / kSeeds;
  for (const double value : values) {
    spread += (value - mean) * (value - mean) / (kSeeds - 1);
  }
  // 99.8 % of the chi-squared distribution with 11 degrees of freedom.
  EXPECT_GT(spread / squares, 2.0 / 11);
  EXPECT_LT(spread / squares, 29.6 / 11);
}

TEST(GoodputTest, ElasticitiesBelowTheirErrorAreNotShown) {
  GoodputReport report = Report(LlamaRequest());
  report.investments = {{"a", "x 2", -0.25, 0.125, 1}, {"b", "x 2", 0.1, 0.2}};
  const std::string table = GoodputTable(report);
  EXPECT_THAT(table, HasSubstr("-0.25 +- 0.1"));
  EXPECT_THAT(table, Not(HasSubstr("+- 0.2")));
  const auto json = nlohmann::json::parse(GoodputJson(report));
  EXPECT_EQ(json["investments"][0]["elasticity_standard_error"], 0.125);
}

TEST(GoodputTest, UnknownFieldsAreLeftOutOfTheConfiguration) {
  const auto json =
      nlohmann::json::parse(GoodputConfigJson(Report(LlamaRequest())));
  for (const char* key : {"num_spares", "step_seconds_low", "tokens",
                          "tokens_per_step", "price_per_gpu_hour"}) {
    EXPECT_FALSE(json.contains(key)) << key;
  }
  GoodputRequest request = LlamaRequest();
  request.num_spares = 0;
  EXPECT_EQ(
      nlohmann::json::parse(GoodputConfigJson(Report(request)))["num_spares"],
      0);
}

TEST(GoodputTest, LargeNumbersOfStepsHaveSeparators) {
  GoodputRequest request = LlamaRequest();
  request.job = {1, 1};
  request.step.seconds = 0.01;
  request.interval_steps = 161'321;
  const std::string table = GoodputTable(Report(request));
  EXPECT_THAT(table, HasSubstr("every 161,300 steps"));
  EXPECT_THAT(table, HasSubstr("1 GPU, 1 node\n"));
}

TEST(GoodputTest, ElasticitiesAreThoseOfTheClosedForm) {
  GoodputRequest request = LlamaRequest();
  request.num_runs = 400;
  const GoodputReport report = Report(request);
  const double interval = report.estimate.interval_steps * request.step.seconds;
  const double mean = report.mean_seconds_between_failures;
  const auto expected = [&](double gpu_factor, double restart) {
    // GPUs cause 268 of 419 failures.
    const double rate = (151 + 268 / gpu_factor) / 419 / mean;
    return ExpectedSeconds(1, interval, report.checkpoint.stall_seconds,
                           restart, 1 / rate);
  };
  const double recovery = RecoverySeconds(request);
  const Investment* gpu = Find(report, "time between failures: gpu");
  ASSERT_NE(gpu, nullptr);
  EXPECT_NEAR(
      *gpu->elasticity,
      std::log(expected(1.1, recovery) / expected(1, recovery)) / std::log(1.1),
      0.003);
  const Investment* restart = Find(report, "restart");
  ASSERT_NE(restart, nullptr);
  EXPECT_NEAR(*restart->elasticity,
              std::log(expected(1, recovery - 300 + 300 / 1.1) /
                       expected(1, recovery)) /
                  std::log(1 / 1.1),
              0.002);
  const auto first = std::find_if(
      report.investments.begin(), report.investments.end(),
      [](const Investment& each) { return each.elasticity.has_value(); });
  EXPECT_EQ(&*first, gpu);
  for (size_t i = 1; i < report.investments.size(); ++i) {
    EXPECT_GE(report.investments[i - 1].saved_seconds,
              report.investments[i].saved_seconds);
  }
  EXPECT_EQ(Find(report, "repair time"), nullptr);  // spares are enough
}

TEST(GoodputTest, AsynchronousAndInMemoryCheckpointsStallLess) {
  GoodputRequest request = LlamaRequest();
  const GoodputReport sync = Report(request);
  request.checkpoint.mode = CheckpointMode::kAsync;
  const GoodputReport async = Report(request);
  request.checkpoint.mode = CheckpointMode::kInMemory;
  const GoodputReport memory = Report(request);
  EXPECT_LT(sync.goodput(), async.goodput());
  EXPECT_LT(async.goodput(), memory.goodput());
  const double stall = 405e9 * 14 / 16384 / 10e9;
  EXPECT_NEAR(async.checkpoint.stall_seconds, stall, 1e-9);
  EXPECT_NEAR(async.checkpoint.safe_seconds, stall + 405e9 * 14 / 500e9, 1e-9);
  EXPECT_NEAR(memory.checkpoint.safe_seconds, stall + 405e9 * 14 / 2048 / 25e9,
              1e-9);
  // A checkpoint is safe before the next one is.
  EXPECT_GE(async.estimate.interval_steps * 11, 405e9 * 14 / 500e9);
  const Investment* change = Find(sync, "checkpoints");
  ASSERT_NE(change, nullptr);
  EXPECT_EQ(change->change, "in-memory");
}

TEST(GoodputTest, TokensGiveTheLengthOfTheRun) {
  GoodputRequest request = LlamaRequest();
  request.tokens_per_step = 16e6;
  request.tokens = 15.6e12;
  request.price_per_gpu_hour = 2;
  const GoodputReport report = Report(request);
  EXPECT_NEAR(report.work_seconds, 975000 * 11.0, 1e-6);
  const auto json = nlohmann::json::parse(GoodputJson(report));
  EXPECT_NEAR(json["cost"]["mean"].get<double>(),
              report.estimate.wall_seconds.mean / 3600 * 16384 * 2, 1);
  EXPECT_NEAR(json["goodput"].get<double>(), report.goodput(), 1e-12);
  EXPECT_NO_THROW(nlohmann::json::parse(GoodputConfigJson(report)));
  EXPECT_THAT(GoodputTable(report), HasSubstr("time between failures: gpu"));
}

TEST(GoodputTest, TheSameSeedGivesTheSameReport) {
  GoodputRequest request = LlamaRequest();
  const std::string first = GoodputJson(Report(request));
  EXPECT_EQ(first, GoodputJson(Report(request)));
  request.seed = 2;
  EXPECT_NE(first, GoodputJson(Report(request)));
}

TEST(GoodputTest, BadRequestsAreRefused) {
  const auto message = [](const GoodputRequest& request) {
    return std::string(PredictGoodput(request).status().message());
  };
  GoodputRequest request = LlamaRequest();
  request.checkpoint.bytes = 0;
  request.tokens = 1e12;
  request.num_runs = 1;
  EXPECT_THAT(message(request), HasSubstr("--checkpoint-bytes is 0"));
  EXPECT_THAT(message(request), HasSubstr("--tokens-per-step"));
  EXPECT_THAT(message(request), HasSubstr("--runs"));
  request = LlamaRequest();
  request.reliability.set_restart_seconds(1e5);
  EXPECT_THAT(message(request), HasSubstr("makes no progress"));
  request = LlamaRequest();
  request.checkpoint.mode = CheckpointMode::kAsync;
  request.interval_steps = 1;
  EXPECT_THAT(message(request), HasSubstr("--interval-steps is 1, expected 2"));
  request = LlamaRequest();
  request.work_seconds = 1e10;
  EXPECT_THAT(message(request), HasSubstr("failures, expected at most 100 k"));
  request = LlamaRequest();
  request.num_elastic_replicas = 4;
  EXPECT_THAT(message(request), HasSubstr("--spares"));
}

}  // namespace weir::plan::goodput_test
