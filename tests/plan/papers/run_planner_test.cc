// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/run_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/plan/search/small_requests.h"

namespace weir::plan::run_planner_test {

using testing::HasSubstr;

Scenario SmallScenario() {
  Scenario scenario = SmallRequest(4, 4, 16).scenario();
  scenario.mutable_batch()->set_microbatch_size(1);
  return scenario;
}

scenarios::ResolvedScenario Given(int num_gpus = 0,
                                  double memory_limit_bytes = 0) {
  const auto given =
      GivenForPlanners("test", SmallScenario(), num_gpus, memory_limit_bytes);
  EXPECT_TRUE(given.ok()) << given.status();
  return *given;
}

double MemoryOf(const DeviceProfile& device) {
  return device.memory_bytes().value();
}

// Returns a planner that finds a plan if every device has `bytes` of memory.
PaperPlanner NeedsBytes(double bytes) {
  PaperPlanner planner;
  planner.name = "needs-bytes";
  planner.plan = [bytes](const scenarios::ResolvedScenario& given,
                         SharedFacts*) -> absl::StatusOr<PlannedPipeline> {
    bool fits = MemoryOf(given.device) >= bytes;
    for (const DeviceProfile& other : given.other_devices) {
      fits = fits && MemoryOf(other) >= bytes;
    }
    if (!fits) return absl::NotFoundError("nothing fits");
    return PlannedPipeline();
  };
  return planner;
}

// The result is never too small and at most 1 % too large.
TEST(EnoughMemoryTest, IsWhatThePlannerNeeds) {
  const scenarios::ResolvedScenario given = Given();
  const double memory = MostMemoryBytes(given);
  for (const double times : {1.001, 1.5, 2.0, 2.001, 77.7, 1024.0}) {
    const double enough = EnoughMemoryBytes(NeedsBytes(times * memory), given);
    EXPECT_GE(enough, times * memory) << times;
    EXPECT_LE(enough, times * memory * 1.01) << times;
  }
}

TEST(EnoughMemoryTest, IsZeroWhereAThousandfoldWouldNotDo) {
  const scenarios::ResolvedScenario given = Given();
  const double memory = MostMemoryBytes(given);
  EXPECT_EQ(EnoughMemoryBytes(NeedsBytes(1025 * memory), given), 0);
}

// The memory of different devices grows by the same factor. The result is the
// memory of the largest device.
TEST(EnoughMemoryTest, CountsTheDeviceThatHasMost) {
  scenarios::ResolvedScenario given = Given();
  const double memory = MostMemoryBytes(given);
  given.other_devices = {given.device, given.device};
  given.other_devices[0].mutable_memory_bytes()->set_value(3 * memory);
  given.other_devices[1].mutable_memory_bytes()->set_value(2 * memory);
  EXPECT_EQ(MostMemoryBytes(given), 3 * memory);
  const double enough = EnoughMemoryBytes(NeedsBytes(5 * memory), given);
  EXPECT_GE(enough, 3 * 5 * memory);
  EXPECT_LE(enough, 3 * 5 * memory * 1.01);
}

TEST(GivenForPlannersTest, LeavesOutWhatAPlannerDecides) {
  Scenario scenario = SmallScenario();
  scenario.set_schedule("gpipe");
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_tensor(2);
  parallelism.set_data(2);
  parallelism.set_pipeline(2);
  parallelism.set_order("tp-pp-dp");
  const auto given = GivenForPlanners("test", scenario, 4);
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->scenario.schedule(), "1f1b");
  const Parallelism& left = given->scenario.parallelism();
  EXPECT_EQ(left.tensor(), 2);
  EXPECT_LE(left.data(), 1);
  EXPECT_LE(left.pipeline(), 1);
  EXPECT_NE(left.order(), "tp-pp-dp");
  EXPECT_THAT(left.gpus(), testing::ElementsAre(0, 1, 2, 3));
}

TEST(GivenForPlannersTest, ListsGpusOnlyWhereThereAreMore) {
  EXPECT_EQ(Given(0).scenario.parallelism().gpus_size(), 0);
  EXPECT_EQ(Given(7).scenario.parallelism().gpus_size(), 7);
  EXPECT_EQ(Given(8).scenario.parallelism().gpus_size(), 0);
}

TEST(GivenForPlannersTest, ShowsNoMoreMemoryThanTheLimit) {
  const double memory = MostMemoryBytes(Given());
  EXPECT_EQ(MostMemoryBytes(Given(0, memory / 2)), memory / 2);
  EXPECT_EQ(MostMemoryBytes(Given(0, memory * 2)), memory);
}

TEST(GivenForPlannersTest, RefusesGpusThatCannotBeHad) {
  Scenario scenario = SmallScenario();
  scenario.mutable_parallelism()->set_tensor(2);
  for (const int num_gpus : {3, 10}) {
    const auto given = GivenForPlanners("test", scenario, num_gpus);
    EXPECT_TRUE(absl::IsInvalidArgument(given.status()));
    EXPECT_THAT(std::string(given.status().message()),
                HasSubstr(absl::StrCat("gpus is ", num_gpus,
                                       ", expected at most the cluster's 8, a "
                                       "multiple of tensor, which is 2")));
  }
}

TEST(PlansOfTest, AreThoseThatRunAndTrain) {
  std::vector<PlannerResult> answers(3);
  for (int i = 0; i < 3; ++i) {
    answers[i].algorithm = std::string(1, static_cast<char>('a' + i));
    answers[i].batch_seconds = 10 + i;
    answers[i].samples_per_second = 20 + i;
    answers[i].peak_memory_bytes = 30 + i;
    answers[i].scenario.set_model("gpt2");
    answers[i].scenario.mutable_parallelism()->set_data(3);
    answers[i].scenario.mutable_parallelism()->set_pipeline(5);
  }
  answers[0].simulated = absl::NotFoundError("nothing fits");
  answers[1].trains = false;
  std::vector<Plan> plans = PlansOf(answers);
  ASSERT_EQ(plans.size(), 1);
  EXPECT_EQ(plans[0].source(), "c");
  EXPECT_EQ(plans[0].scenario().model(), "gpt2");
  EXPECT_EQ(plans[0].batch_seconds(), 12);
  EXPECT_EQ(plans[0].samples_per_second(), 22);
  EXPECT_EQ(plans[0].peak_memory_bytes(), 32);
  EXPECT_EQ(plans[0].num_gpus(), 3 * 5);  // tensor 0 means 1
  answers[2].scenario.mutable_parallelism()->set_tensor(2);
  EXPECT_EQ(PlansOf(answers)[0].num_gpus(), 2 * 3 * 5);
}

}  // namespace weir::plan::run_planner_test
