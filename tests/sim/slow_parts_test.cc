// SPDX-License-Identifier: Apache-2.0
// A slow GPU, link or leaf switch: closed forms, equality with clusters in
// which everything is as slow, and equality of the three methods.
#include "scenarios/cluster/slow_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/scenario.h"
#include "sim/bounds/bound.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"

namespace weir::sim::slow_parts_test {

using testing::HasSubstr;
using testing::Not;

struct Shape {
  const char* cluster = "dgx-a100";
  int nodes = 1, tensor = 1, pipeline = 1, data = 1;
};

// GPT-2 in microbatches of one sequence; `slow` as in --slow.
absl::StatusOr<scenarios::ResolvedScenario> Resolved(
    const Shape& shape, const std::string& slow,
    const std::vector<std::string>& set = {}) {
  Scenario scenario;
  scenario.set_model("gpt2");
  scenario.set_cluster(shape.cluster);
  scenario.set_num_nodes(shape.nodes);
  scenario.set_schedule("1f1b");
  scenario.set_runtime("none");
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_tensor(shape.tensor);
  parallelism.set_pipeline(shape.pipeline);
  parallelism.set_data(shape.data);
  scenario.mutable_batch()->set_microbatch_size(1);
  scenario.mutable_batch()->set_global_batch_size(8 * shape.data);
  scenario.mutable_batch()->set_sequence_length(512);
  for (const std::string& setting : set) scenario.add_set_figures(setting);
  if (!slow.empty()) {
    const auto parts = scenarios::ParseSlowParts(slow);
    if (!parts.ok()) return parts.status();
    scenario.mutable_slow()->Assign(parts->begin(), parts->end());
  }
  return scenarios::ResolveScenario("test", scenario);
}

Result Simulated(const Shape& shape, const std::string& slow,
                 const std::vector<std::string>& set = {}) {
  const auto scenario = Resolved(shape, slow, set);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (!scenario.ok()) return Result();
  const auto result = Simulate(*scenario);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

TEST(SlowGpuTest, ComputesForLonger) {
  const Shape one;
  const Result fast = Simulated(one, ""), slow = Simulated(one, "gpu0=0.5");
  const StepBreakdown &a = fast.breakdown(), &b = slow.breakdown();
  EXPECT_NEAR(b.compute_seconds(), 2 * a.compute_seconds(),
              1e-9 * b.compute_seconds());
  EXPECT_GT(b.optimizer_seconds(), a.optimizer_seconds());
}

// Replicas compute the same and wait for the slow one.
TEST(SlowGpuTest, OthersWaitForIt) {
  const Shape two = {.data = 2};
  const Result fast = Simulated(two, ""), slow = Simulated(two, "gpu1=0.5");
  const auto step = [](const Result& r) {
    return r.breakdown().optimizer_seconds();
  };
  EXPECT_NEAR(slow.ranks(0).busy_seconds(), fast.ranks(0).busy_seconds(),
              1e-9 * fast.ranks(0).busy_seconds());
  EXPECT_GT(slow.ranks(1).busy_seconds(), 1.9 * fast.ranks(1).busy_seconds());
  EXPECT_NEAR(slow.ranks(1).busy_seconds() + slow.ranks(0).busy_seconds(),
              2 * (slow.breakdown().compute_seconds() + step(slow)),
              1e-9 * slow.batch_seconds());
  EXPECT_GT(slow.batch_seconds(), 1.5 * fast.batch_seconds());
}

// The same as a profile whose kernels all take twice as long.
TEST(SlowGpuTest, AllOfThemAreASlowKind) {
  const Shape shape = {.tensor = 2, .pipeline = 2};
  const Result slow = Simulated(shape, "gpu0=0.5,gpu1=0.5,gpu2=0.5,gpu3=0.5");
  const auto plain = Resolved(shape, "");
  ASSERT_TRUE(plain.ok());
  const double factor = plain->device.has_training_slowdown()
                            ? plain->device.training_slowdown().value()
                            : 1;
  const Result kind =
      Simulated(shape, "", {absl::StrCat("training_slowdown=", 2 * factor)});
  EXPECT_NEAR(slow.batch_seconds(), kind.batch_seconds(),
              1e-9 * kind.batch_seconds());
}

// A lower clock of all GPUs is no leaf switch.
TEST(SlowGpuTest, ALowerClockIsNamed) {
  const Result slow = Simulated(Shape(), "gpus=0.9");
  EXPECT_THAT(slow.limit(),
              HasSubstr("slow: gpus x0.9 (on the critical path)"));
  EXPECT_THAT(slow.limit(), Not(HasSubstr("leaf")));
}

// The same as a cluster whose adapters all have half of the rate.
TEST(SlowLinkTest, AllOfThemAreSlowAdapters) {
  const Shape shape = {"p3-16xlarge", 2, 1, 2, 8};
  const Result fast = Simulated(shape, "");
  const Result slow =
      Simulated(shape, "link:node0.nic0=0.5,link:node1.nic0=0.5");
  const Result set = Simulated(
      shape, "", {"cluster.groups[0].node.nics[].bytes_per_second=1.5625e9"});
  EXPECT_NEAR(slow.batch_seconds(), set.batch_seconds(),
              1e-9 * set.batch_seconds());
  EXPECT_GT(slow.batch_seconds(), fast.batch_seconds());
}

TEST(SlowLinkTest, OnlyItsRateChanges) {
  const auto plain = scenarios::LoadCluster("dgx-h100", 4);
  ASSERT_TRUE(plain.ok());
  Cluster cluster = *plain;
  const auto parts =
      scenarios::ParseSlowParts("link:node3.nic2=0.5,link:node0.nic1.tx=0.25");
  ASSERT_TRUE(parts.ok());
  cluster.mutable_slow()->Assign(parts->begin(), parts->end());
  ASSERT_TRUE(scenarios::ValidateCluster("test", cluster).ok());
  const scenarios::Network before(*plain), after(cluster);
  ASSERT_EQ(before.links().size(), after.links().size());
  for (size_t i = 0; i < after.links().size(); ++i) {
    const std::string& name = after.links()[i].name;
    double speed = 1;
    if (name == "node3.nic2.tx" || name == "node3.nic2.rx") speed = 0.5;
    if (name == "node0.nic1.tx") speed = 0.25;
    EXPECT_EQ(after.links()[i].bytes_per_second,
              speed * before.links()[i].bytes_per_second)
        << name;
  }
}

// A leaf at half speed has the uplinks of a 2:1 oversubscribed one.
TEST(SlowLeafTest, IsOversubscribed) {
  auto slow = scenarios::LoadCluster("dgx-h100", 4);
  ASSERT_TRUE(slow.ok());
  slow->mutable_fabric()->set_nodes_per_leaf(2);
  Cluster narrow = *slow;
  narrow.mutable_fabric()->set_oversubscription(2);
  const auto parts = scenarios::ParseSlowParts("leaf:1=0.5");
  ASSERT_TRUE(parts.ok());
  slow->mutable_slow()->Assign(parts->begin(), parts->end());
  ASSERT_TRUE(scenarios::ValidateCluster("test", *slow).ok());
  const scenarios::Network a(*slow), b(narrow);
  ASSERT_EQ(a.links().size(), b.links().size());
  int num_slow = 0;
  for (size_t i = 0; i < a.links().size(); ++i) {
    const std::string& name = a.links()[i].name;
    const bool leaf0 = name.find("leaf0") != std::string::npos;
    num_slow += name.find("leaf1") != std::string::npos;
    EXPECT_EQ(a.links()[i].bytes_per_second,
              (leaf0 ? 2 : 1) * b.links()[i].bytes_per_second)
        << name;
  }
  EXPECT_GT(num_slow, 1);
}

// The fast method is exact, and bounds are not exceeded.
TEST(SlowPartsTest, MethodsAgree) {
  const Shape shape = {"dgx-h100", 2, 2, 4, 2};
  constexpr const char* kSlow[] = {
      "gpu3=0.8", "gpu0=0.5,gpu9=0.9", "link:node1.nic2=0.5",
      "link:node0.gpu3.nvlink=0.3", "gpu15=0.7,link:node0.nic0.tx=0.1"};
  // A process that has a FastSimulator cannot run Simulate.
  const double plain = Simulated(shape, "").batch_seconds();
  std::vector<double> full;
  for (const char* slow : kSlow) {
    full.push_back(Simulated(shape, slow).batch_seconds());
    EXPECT_GE(full.back(), plain * (1 - 1e-9)) << slow;
  }
  FastSimulator simulator;
  for (size_t i = 0; i < std::size(kSlow); ++i) {
    SCOPED_TRACE(kSlow[i]);
    const auto scenario = Resolved(shape, kSlow[i]);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const auto fast = simulator.Estimate(*scenario);
    const auto bound = BoundOf(*scenario);
    ASSERT_TRUE(fast.ok() && bound.ok()) << fast.status() << bound.status();
    EXPECT_NEAR(fast->batch_seconds, full[i], 1e-9 * full[i]);
    EXPECT_LE(bound->batch_seconds, full[i] * (1 + 1e-9));
  }
}

TEST(SlowPartsTest, MessagesNameThePart) {
  const Shape shape = {"dgx-h100", 2, 1, 1, 1};
  const auto message = [&](const char* slow) {
    return std::string(Resolved(shape, slow).status().message());
  };
  EXPECT_THAT(message("gpu16=0.5"),
              HasSubstr("slow[0].gpu is 16, expected 0 to 15"));
  EXPECT_THAT(message("link:node1.nick2=0.5"),
              HasSubstr("did you mean node1.nic2?"));
  EXPECT_THAT(message("leaf:0=0.5"), HasSubstr("one leaf switch"));
  EXPECT_THAT(message("gpu1=1.5"), HasSubstr("expected a speed above 0"));
  EXPECT_THAT(message("gpu=0.5"), HasSubstr("expected gpu17=0.8"));
  EXPECT_THAT(message("nic2=0.5"), HasSubstr("expected gpu17=0.8"));
}

}  // namespace weir::sim::slow_parts_test
