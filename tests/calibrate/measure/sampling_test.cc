// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace weir::calibrate::sampling_test {

// A workload whose batches are a function of the seconds run so far.
class Scripted : public PreparedWorkload {
 public:
  explicit Scripted(std::function<LaunchBatch(double)> batch)
      : batch_(std::move(batch)) {}

  absl::StatusOr<double> Verify() override { return 0; }
  absl::StatusOr<LaunchBatch> Run(int num_launches) override {
    const LaunchBatch batch = batch_(now);
    now += batch.seconds * num_launches;
    launches += num_launches;
    ++batches;
    return batch;
  }

  double now = 0;
  int64_t launches = 0;
  int batches = 0;

 private:
  std::function<LaunchBatch(double)> batch_;
};

WorkloadResult Sample(Scripted* workload) {
  WorkloadResult result;
  const auto seconds = SampleWorkload(workload, SamplingOptions(), {}, &result);
  EXPECT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_NEAR(*seconds, workload->now, 1e-9);
  return result;
}

LaunchBatch Of(double seconds) {
  LaunchBatch batch;
  batch.seconds = seconds;
  return batch;
}

TEST(SamplingTest, SteadyWorkTakesThirtySamplesAfterTheWarmUp) {
  Scripted steady([](double) { return Of(1e-5); });
  const WorkloadResult result = Sample(&steady);
  EXPECT_EQ(result.seconds().num_samples(), 30);
  EXPECT_DOUBLE_EQ(result.seconds().p50(), 1e-5);
  EXPECT_FALSE(result.unsettled());
  // 0.2 s of warm-up and 30 samples of 2 ms; a group may overshoot.
  EXPECT_NEAR(steady.now, 0.2 + 30 * 2e-3, 5e-3);
}

TEST(SamplingTest, LongLaunchesStillWarmUpThreeTimes) {
  Scripted slow([](double) { return Of(0.4); });
  const WorkloadResult result = Sample(&slow);
  EXPECT_GE(slow.launches, 3 + 7);
  // 3 s pass before 30 samples are taken.
  EXPECT_EQ(result.seconds().num_samples(), 8);
}

TEST(SamplingTest, WarmUpLastsUntilTheClocksSettle) {
  // 30 % slower at first, within 0.1 % of the final value after 0.7 s.
  Scripted ramp(
      [](double now) { return Of(1e-4 * (1 + 0.3 * std::exp(-now / 0.12))); });
  const WorkloadResult result = Sample(&ramp);
  EXPECT_FALSE(result.unsettled());
  EXPECT_NEAR(result.seconds().p50(), 1e-4, 1e-6);
}

TEST(SamplingTest, ClocksThatNeverSettleAreBoundedAndSaid) {
  bool slow = false;
  int batches = 0;
  Scripted swings([&](double) {
    if (batches++ % 5 == 0) slow = !slow;
    return Of(slow ? 1.2e-3 : 1e-3);
  });
  const WorkloadResult result = Sample(&swings);
  EXPECT_TRUE(result.unsettled());
  EXPECT_LT(swings.now, 2 + 3 + 0.1);
}

TEST(SamplingTest, NoiseTakesMoreSamplesUntilTheMedianIsKnown) {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> noise(0, 0.05);
  Scripted noisy([&](double) { return Of(1e-3 * noise(random)); });
  const WorkloadResult result = Sample(&noisy);
  EXPECT_GT(result.seconds().num_samples(), 100);
  EXPECT_LT(result.seconds().relative_ci(), 0.01);
  EXPECT_NEAR(result.seconds().p50(), 1e-3, 1e-5);
}

// Stopping when the interval happens to be narrow reduces its coverage below 95
// %.
TEST(SamplingTest, IntervalHoldsTheMedianThoughItDecidesWhenToStop) {
  std::mt19937_64 random(11);
  std::lognormal_distribution<double> noise(0, 0.04);
  SamplingOptions options;
  options.min_warmup_seconds = 0.01;
  options.group_seconds = 0;
  int held = 0;
  constexpr int kSeries = 500;
  for (int i = 0; i < kSeries; ++i) {
    Scripted noisy([&](double) { return Of(2e-3 * noise(random)); });
    WorkloadResult result;
    ASSERT_TRUE(SampleWorkload(&noisy, options, {}, &result).ok());
    const Quantiles& q = result.seconds();
    held += std::abs(q.p50() / 2e-3 - 1) <= q.relative_ci();
  }
  EXPECT_GT(held / double{kSeries}, 0.91);
}

TEST(SamplingTest, SamplesUnderThePowerLimitAndHeatAreCounted) {
  Scripted hot([](double now) {
    LaunchBatch batch = Of(1e-3);
    batch.state.power_capped = now > 0.2;
    batch.state.thermal_slowdown = now > 0.25;
    batch.state.multiprocessor_hertz = 1.5e9;
    batch.state.watts = 700;
    return batch;
  });
  const WorkloadResult result = Sample(&hot);
  EXPECT_GE(result.num_power_capped(), 29);
  EXPECT_LT(result.num_slowed_by_heat(), result.num_power_capped());
  EXPECT_GT(result.num_slowed_by_heat(), 0);
  EXPECT_DOUBLE_EQ(result.multiprocessor_hertz(), 1.5e9);
  EXPECT_DOUBLE_EQ(result.watts(), 700);
}

TEST(SamplingTest, StopEndsItBetweenBatches) {
  Scripted steady([](double) { return Of(1e-3); });
  WorkloadResult result;
  const auto seconds = SampleWorkload(
      &steady, SamplingOptions(), [&] { return steady.batches == 7; }, &result);
  EXPECT_TRUE(absl::IsCancelled(seconds.status())) << seconds.status();
  EXPECT_EQ(steady.batches, 7);
}

TEST(SamplingTest, TimeThatIsNoneIsAnError) {
  Scripted broken([](double) { return Of(std::nan("")); });
  WorkloadResult result;
  EXPECT_TRUE(absl::IsInternal(
      SampleWorkload(&broken, SamplingOptions(), {}, &result).status()));
}

TEST(SampleSustainedTest, TheFirstAndTheLastPartAreKeptApart) {
  // Clocks fall from 0.3 s on and settle after 10 s.
  Scripted cooling([](double now) {
    LaunchBatch batch = Of(now < 0.3 ? 1.4e-3 : now < 10 ? 1.45e-3 : 1.5e-3);
    batch.state.watts = now < 10 ? 500 : 690;
    batch.state.multiprocessor_hertz = 1.6e9;
    batch.state.celsius = 60;
    return batch;
  });
  const auto result = SampleSustained(&cooling, 20, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_DOUBLE_EQ(result->first_seconds(), 1.4e-3);
  EXPECT_DOUBLE_EQ(result->last_seconds(), 1.5e-3);
  EXPECT_NEAR(result->watts(), 690, 1e-9);
  EXPECT_NEAR(result->busy_seconds(), 20, 0.15);
  EXPECT_NEAR(cooling.now, result->busy_seconds(), 1e-9);
}

TEST(SampleSustainedTest, ItStopsAndReportsFailures) {
  int batches = 0;
  Scripted steady([&](double) {
    ++batches;
    return Of(1e-3);
  });
  EXPECT_TRUE(absl::IsCancelled(
      SampleSustained(&steady, 20, [&] { return batches == 7; }).status()));
  EXPECT_EQ(batches, 7);
  Scripted long_launch([](double) { return Of(30); });
  EXPECT_FALSE(SampleSustained(&long_launch, 20, {}).ok());
}

}  // namespace weir::calibrate::sampling_test
