// SPDX-License-Identifier: Apache-2.0
// Compares EdgePipe and AccEPT with all cuts on all orders of all subsets of
// devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "plan/papers/accept.h"
#include "plan/papers/device_types.h"
#include "plan/papers/edgepipe.h"
#include "tests/plan/papers/random_work.h"

namespace weir::plan::edge_planners_test {

using testing::ElementsAre;
using testing::HasSubstr;

using Stages = std::vector<PlannedStage>;

// Returns the smallest cost of all plans with one device per stage. Plans with
// infinite cost are infeasible.
double BruteForce(const PlannerWork& work,
                  const std::function<double(const Stages&)>& cost) {
  const int num_layers = static_cast<int>(work.layers.size());
  std::vector<int> devices(work.devices.size());
  std::iota(devices.begin(), devices.end(), 0);
  double best = std::numeric_limits<double>::infinity();
  do {
    for (int p = 1; p <= std::min<int>(num_layers, devices.size()); ++p) {
      ForEachCut(num_layers, p, [&](const std::vector<int>& first) {
        Stages stages;
        for (int s = 0; s < p; ++s) {
          stages.push_back(Stage(first[s], first[s + 1], {devices[s]}));
        }
        best = std::min(best, cost(stages));
      });
    }
  } while (std::next_permutation(devices.begin(), devices.end()));
  return best;
}

TEST(DeviceTypesTest, ServersAreTypesAndEqualDevicesAreOne) {
  Random random(1);
  PlannerWork work = RandomWork(3, 2, 3, &random);
  EXPECT_THAT(DeviceTypesOf(work).devices,
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
  work.devices[1].speed = 2;
  EXPECT_THAT(
      DeviceTypesOf(work).devices,
      ElementsAre(ElementsAre(0, 2), ElementsAre(1), ElementsAre(3, 4, 5)));
  work.devices[1].speed = 1;
  work.bytes_per_second[4][0] = 3;
  EXPECT_THAT(DeviceTypesOf(work).devices,
              ElementsAre(ElementsAre(0), ElementsAre(1, 2), ElementsAre(3, 5),
                          ElementsAre(4)));
}

TEST(EdgePipeTest, IsBruteForceWithinMemory) {
  Random random(2);
  int num_none = 0;
  for (int i = 0; i < 300; ++i) {
    PlannerWork work =
        RandomWork(Whole(1, 6, &random), 1, Whole(1, 4, &random), &random);
    MakeUnlike(&random, &work);
    for (PlannerDevice& device : work.devices) {
      device.memory_bytes = Whole(0, 1, &random) == 0 ? 12 : 25;
    }
    const auto fits = [&](const PlannedStage& stage) {
      return EdgePipeMemoryBytes(work, stage.first_layer, stage.end_layer) <
             work.devices[stage.devices[0]].memory_bytes;
    };
    const double best = BruteForce(work, [&](const Stages& stages) {
      return std::all_of(stages.begin(), stages.end(), fits)
                 ? EdgePipeSeconds(work, stages)
                 : std::numeric_limits<double>::infinity();
    });
    const auto plan = PlanEdgePipe(work);
    if (best == std::numeric_limits<double>::infinity()) {
      ++num_none;
      EXPECT_EQ(plan.status().code(), absl::StatusCode::kNotFound);
      continue;
    }
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_DOUBLE_EQ(plan->objective_seconds, best);
    EXPECT_DOUBLE_EQ(EdgePipeSeconds(work, plan->stages), best);
    EXPECT_TRUE(std::all_of(plan->stages.begin(), plan->stages.end(), fits));
  }
  EXPECT_GT(num_none, 10);
  EXPECT_LT(num_none, 200);
}

TEST(EdgePipeTest, MemoryIsWeightsBuffersAndWhatIsWorkedOn) {
  Random random(3);
  PlannerWork work = RandomWork(3, 1, 1, &random);
  for (PlannerLayer& layer : work.layers) {
    layer.parameter_bytes = 100;
    layer.output_bytes = 10;
  }
  work.layers[0].input_bytes = 7;
  EXPECT_DOUBLE_EQ(EdgePipeMemoryBytes(work, 0, 2), 200 + 7 + 10 + 20);
  EXPECT_DOUBLE_EQ(EdgePipeMemoryBytes(work, 1, 3), 200 + 10 + 10 + 20 + 20);
  EXPECT_DOUBLE_EQ(EdgePipeMemoryBytes(work, 1, 3, {0, 1}), 200 + 20 + 10);
}

TEST(EdgePipeTest, PlansAHundredLayersOnSixtyFourDevicesOfTwoTypes) {
  Random random(4);
  const PlannerWork work = RandomWork(100, 2, 32, &random);
  const auto plan = PlanEdgePipe(work);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_DOUBLE_EQ(EdgePipeSeconds(work, plan->stages),
                   plan->objective_seconds);
}

TEST(EdgePipeTest, RefusesTooManyTypesAndSaysHowMany) {
  Random random(5);
  const auto plan = PlanEdgePipe(RandomWork(100, 8, 8, &random));
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(plan.status().message(), HasSubstr("8 types of devices"));
}

TEST(AcceptTest, IsBruteForceWithinMemory) {
  Random random(6);
  int num_none = 0;
  for (int i = 0; i < 300; ++i) {
    PlannerWork work =
        RandomWork(Whole(1, 6, &random), 1, Whole(1, 4, &random), &random);
    MakeUnlike(&random, &work);
    work.num_microbatches = Whole(1, 9, &random);
    for (PlannerDevice& device : work.devices) {
      device.memory_bytes = Whole(0, 1, &random) == 0 ? 30 : 60;
    }
    const AcceptOptions options = {Uniform(0.1, 1, &random), 20, 30};
    const auto fits = [&](const Stages& stages) {
      for (size_t s = 0; s < stages.size(); ++s) {
        double bytes = 0;
        const int kept = std::min<int>(work.num_microbatches,
                                       static_cast<int>(stages.size() - s));
        for (int l = stages[s].first_layer; l < stages[s].end_layer; ++l) {
          bytes += work.layers[l].state_bytes +
                   kept * work.layers[l].activation_bytes;
        }
        if (bytes > work.devices[stages[s].devices[0]].memory_bytes) {
          return false;
        }
      }
      return true;
    };
    const double best = BruteForce(work, [&](const Stages& stages) {
      return fits(stages) ? AcceptSeconds(work, stages, options)
                          : std::numeric_limits<double>::infinity();
    });
    const auto plan = PlanAccept(work, options);
    if (best == std::numeric_limits<double>::infinity()) {
      ++num_none;
      EXPECT_EQ(plan.status().code(), absl::StatusCode::kNotFound);
      continue;
    }
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_NEAR(plan->objective_seconds, best, 1e-9 * best);
    EXPECT_NEAR(AcceptSeconds(work, plan->stages, options), best, 1e-9 * best);
    EXPECT_TRUE(fits(plan->stages));
  }
  EXPECT_GT(num_none, 10);
  EXPECT_LT(num_none, 250);
}

TEST(AcceptTest, RespectsTheLowerBoundsOfAPipeline) {
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    PlannerWork work = RandomWork(6, 1, 3, &random);
    MakeUnlike(&random, &work);
    const auto plan = PlanAccept(work);
    ASSERT_TRUE(plan.ok());
    double first = 0;
    for (const PlannedStage& stage : plan->stages) {
      double busy = 0;
      for (int l = stage.first_layer; l < stage.end_layer; ++l) {
        busy +=
            (work.layers[l].forward_seconds + work.layers[l].backward_seconds) /
            work.devices[stage.devices[0]].speed;
      }
      first += busy;
      EXPECT_GE(plan->objective_seconds * (1 + 1e-12),
                work.num_microbatches * busy);
    }
    EXPECT_GE(plan->objective_seconds * (1 + 1e-12), first);
  }
}

TEST(AcceptTest, ATransferIsCompressedBytesAndBothCodecs) {
  EXPECT_DOUBLE_EQ(AcceptTransferSeconds(100, 10, {}), 10);
  EXPECT_DOUBLE_EQ(AcceptTransferSeconds(100, 10, {0.25, 50, 200}),
                   2.5 + 2 + 0.5);
}

TEST(AcceptTest, RefusesARatioBelowZero) {
  Random random(8);
  EXPECT_THAT(PlanAccept(RandomWork(2, 1, 2, &random), {-1}).status().message(),
              HasSubstr("compression_ratio"));
}

}  // namespace weir::plan::edge_planners_test
