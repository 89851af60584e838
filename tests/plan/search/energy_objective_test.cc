// SPDX-License-Identifier: Apache-2.0
// Energy as the objective of a search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plan/energy/power_model.h"
#include "plan/energy/step_energy.h"
#include "plan/search/joint_search.h"
#include "scenarios/scenario.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"
#include "tests/plan/search/small_searches.h"

namespace weir::plan::energy_objective_test {

using testing::HasSubstr;

PlanRequest Request(Objective objective, const std::string& power) {
  PlanRequest request;
  Scenario& scenario = *request.mutable_scenario();
  scenario.set_model("gpt2");
  scenario.set_cluster("dgx-h100");
  scenario.set_num_nodes(1);
  scenario.mutable_batch()->set_global_batch_size(16);
  scenario.mutable_batch()->set_sequence_length(512);
  request.mutable_space()->add_schedules("1f1b");
  request.mutable_space()->add_schedules("gpipe");
  for (const uint32_t size : {1, 2}) {
    request.mutable_space()->add_tensor(size);
    request.mutable_space()->add_pipeline(size);
  }
  request.mutable_space()->add_gpus(2);
  request.mutable_space()->add_gpus(4);
  request.mutable_space()->add_recompute(RECOMPUTE_NONE);
  request.mutable_space()->add_recompute(RECOMPUTE_FULL);
  request.mutable_space()->add_microbatch_size(1);
  request.mutable_space()->add_microbatch_size(2);
  // So small a model would be bound by the host.
  request.mutable_scenario()->add_set_figures("runtime.module_seconds=0");
  request.set_objective(objective);
  request.set_power_model(power);
  request.set_patience(0);
  return request;
}

// No plan of any layout takes less energy than the one that is found.
TEST(EnergyObjectiveTest, FindsThePlanWithTheLeastEnergy) {
  PlanRequest all = Request(OBJECTIVE_TIME, "h100-sxm");
  all.set_num_plans(1000);
  const PlanReport every = Search(all);
  ASSERT_GT(every.plans_size(), 8);
  const Plan* least = &every.plans(0);
  for (const Plan& plan : every.plans()) {
    EXPECT_GT(plan.joules_per_step(), 0);
    EXPECT_NEAR(plan.watts_per_gpu(),
                plan.joules_per_step() / plan.batch_seconds() / plan.num_gpus(),
                1e-9 * plan.watts_per_gpu());
    if (plan.joules_per_step() < least->joules_per_step()) least = &plan;
  }
  // On four GPUs a step is faster, on two it takes less energy.
  EXPECT_LT(least->joules_per_step(), every.plans(0).joules_per_step());
  const PlanReport found = Search(Request(OBJECTIVE_ENERGY, "h100-sxm"));
  ASSERT_GT(found.plans_size(), 0);
  EXPECT_LE(found.plans(0).joules_per_step(),
            least->joules_per_step() * (1 + 1e-9));
  for (int i = 1; i < found.plans_size(); ++i) {
    EXPECT_GE(found.plans(i).joules_per_step(),
              found.plans(i - 1).joules_per_step());
  }
  EXPECT_THAT(found.plans(1).why_not_best(), HasSubstr("more energy"));
  // Its energy is that of the simulated scenario.
  const auto resolved =
      scenarios::ResolveScenario("test", found.plans(0).scenario());
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  const auto result = sim::Simulate(*resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto energy = EnergyOfStep(*result, *LoadPowerModel("h100-sxm"), {});
  ASSERT_TRUE(energy.ok());
  EXPECT_NEAR(energy->joules(), found.plans(0).joules_per_step(),
              1e-9 * energy->joules());
}

// 8 (P + 165) W at most: 1,200 MHz, 71.91 % of 400 W and 90.4 % of the speed.
TEST(EnergyObjectiveTest, CapsLowerTheClock) {
  PlanRequest request = Request(OBJECTIVE_ENERGY, "a100-sxm");
  request.mutable_scenario()->set_cluster("dgx-a100");
  const PlanReport free = Search(request);
  ASSERT_GT(free.plans_size(), 0);
  request.set_node_power_cap_watts(4000);
  const PlanReport capped = Search(request);
  ASSERT_GT(capped.plans_size(), 0);
  const std::vector<std::string> warnings(capped.warnings().begin(),
                                          capped.warnings().end());
  EXPECT_THAT(warnings,
              testing::Contains(HasSubstr("GPUs compute at 1200 MHz, 90.4 %")));
  for (const Plan& plan : capped.plans()) {
    ASSERT_EQ(plan.scenario().slow_size(), 1);
    EXPECT_TRUE(plan.scenario().slow(0).all_gpus());
    EXPECT_EQ(plan.scenario().slow(0).speed(), 0.904);
    EXPECT_LE(plan.watts_per_gpu() * 8, 8 * (400 * 0.7191 + 165) * (1 + 1e-9));
  }
  // The time of a plan is that of a cluster whose GPUs are all so slow.
  const auto resolved =
      scenarios::ResolveScenario("test", capped.plans(0).scenario());
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  const auto result = sim::Simulate(*resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->batch_seconds(), capped.plans(0).batch_seconds());
  // The rack's cap of two such nodes is the same cap.
  request.clear_node_power_cap_watts();
  request.set_rack_power_cap_watts(8000);
  const auto missing = SearchPlans("test", request, SearchOptions());
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("nodes_per_rack is missing"));
  request.set_nodes_per_rack(2);
  const PlanReport rack = Search(request);
  ASSERT_GT(rack.plans_size(), 0);
  EXPECT_EQ(rack.plans(0).joules_per_step(), capped.plans(0).joules_per_step());
}

TEST(EnergyObjectiveTest, NodesPerRackNeedACap) {
  PlanRequest request = Request(OBJECTIVE_ENERGY, "h100-sxm");
  request.set_nodes_per_rack(2);
  const auto report = SearchPlans("test", request, SearchOptions());
  EXPECT_THAT(std::string(report.status().message()),
              HasSubstr("nodes_per_rack is 2, which has no effect without "
                        "rack_power_cap_watts"));
  request.set_node_power_cap_watts(1e6);
  EXPECT_FALSE(SearchPlans("test", request, SearchOptions()).ok());
}

// Patience that ends the search of shapes does not end that of variants.
TEST(EnergyObjectiveTest, PatienceLeavesVariants) {
  PlanRequest request = Request(OBJECTIVE_ENERGY, "h100-sxm");
  request.mutable_scenario()->set_model("llama-3.1-8b");
  request.mutable_scenario()->set_runtime("megatron-lm");
  request.mutable_space()->clear_gpus();
  request.mutable_space()->add_gpus(8);
  const PlanReport best = Search(request);
  const auto is_variant = [](const Plan& plan) {
    return plan.scenario().communication().has_tp_comm_overlap();
  };
  ASSERT_TRUE(
      std::any_of(best.plans().begin(), best.plans().end(), is_variant));
  request.set_patience(40);
  const PlanReport found = Search(request);
  EXPECT_TRUE(
      std::any_of(found.plans().begin(), found.plans().end(), is_variant));
}

TEST(EnergyObjectiveTest, NeedsAPowerModel) {
  const auto missing =
      SearchPlans("test", Request(OBJECTIVE_ENERGY, ""), SearchOptions());
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("power_model is missing"));
  const auto unknown =
      SearchPlans("test", Request(OBJECTIVE_ENERGY, "h900"), SearchOptions());
  EXPECT_FALSE(unknown.ok());
}

// Parts of the fast estimate are those of the full simulation.
TEST(EnergyObjectiveTest, FastEstimatesHaveTheParts) {
  std::vector<scenarios::ResolvedScenario> scenarios;
  std::vector<Result> results;
  for (const uint32_t batch : {16, 256}) {
    Scenario scenario = Request(OBJECTIVE_TIME, "").scenario();
    scenario.set_schedule("1f1b");
    scenario.mutable_parallelism()->set_tensor(2);
    scenario.mutable_parallelism()->set_pipeline(2);
    scenario.mutable_batch()->set_global_batch_size(batch);
    scenario.mutable_batch()->set_microbatch_size(1);
    auto resolved = scenarios::ResolveScenario("test", scenario);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    auto result = sim::Simulate(*resolved);
    ASSERT_TRUE(result.ok()) << result.status();
    scenarios.push_back(*std::move(resolved));
    results.push_back(*std::move(result));
  }
  sim::FastSimulator simulator;
  for (size_t i = 0; i < scenarios.size(); ++i) {
    const auto run = simulator.Estimate(scenarios[i], /*with_parts=*/true);
    ASSERT_TRUE(run.ok()) << run.status();
    const StepBreakdown& parts = results[i].breakdown();
    // Passes at the ends of an extrapolated run take slightly other times.
    const double close = run->extrapolated ? 1e-3 : 1e-9;
    EXPECT_NEAR(run->compute_seconds,
                parts.compute_seconds() + parts.optimizer_seconds(),
                close * run->compute_seconds);
    EXPECT_NEAR(run->communication_seconds,
                parts.tensor_communication_seconds(),
                close * run->communication_seconds);
    EXPECT_GT(run->communication_seconds, 0);
  }
}

}  // namespace weir::plan::energy_objective_test
