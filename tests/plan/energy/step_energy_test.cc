// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/step_energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/assets.h"
#include "plan/energy/power_model.h"

namespace weir::plan::step_energy_test {

using testing::HasSubstr;

constexpr double kClose = 1e-9;

// 4 GPUs, 10 s: 6 s of computing, 1.5 s of collectives, 2.5 s of waiting.
Result Step() {
  Result result;
  result.set_name("step");
  result.set_batch_seconds(10);
  result.set_tokens_per_second(800);
  StepBreakdown* parts = result.mutable_breakdown();
  parts->set_compute_seconds(5);
  parts->set_optimizer_seconds(1);
  parts->set_tensor_communication_seconds(1);
  parts->set_expert_communication_seconds(0.3);
  parts->set_context_communication_seconds(0.2);
  parts->set_bubble_seconds(2);
  parts->set_pipeline_transfer_seconds(0.5);
  for (int i = 0; i < 4; ++i) result.add_ranks();
  return result;
}

PowerModel Model(double compute, double communication, double waiting,
                 double node) {
  PowerModel model;
  model.set_name("model");
  model.mutable_compute_watts()->set_value(compute);
  model.mutable_communication_watts()->set_value(communication);
  model.mutable_waiting_watts()->set_value(waiting);
  model.mutable_node_watts()->set_value(node);
  return model;
}

TEST(StepEnergyTest, IsPowerTimesTimeOfEachPart) {
  const auto energy = EnergyOfStep(Step(), Model(700, 400, 100, 250), {});
  ASSERT_TRUE(energy.ok()) << energy.status();
  EXPECT_NEAR(energy->compute_joules, 4 * 6 * 700, kClose * 16800);
  EXPECT_NEAR(energy->communication_joules, 4 * 1.5 * 400, kClose * 2400);
  EXPECT_NEAR(energy->waiting_joules, 4 * 2.5 * 100, kClose * 1000);
  EXPECT_NEAR(energy->node_joules, 4 * 10 * 250, kClose * 10000);
  EXPECT_NEAR(energy->joules(), 30200, kClose * 30200);
  EXPECT_NEAR(energy->watts_per_gpu, 30200 / 40.0, kClose * 755);
  EXPECT_NEAR(*energy->joules_per_token, 30200 / 8000.0, kClose * 4);
  EXPECT_FALSE(energy->run_kwh.has_value());
}

TEST(StepEnergyTest, ConstantPowerTakesPowerTimesTime) {
  const auto energy = EnergyOfStep(Step(), Model(300, 300, 300, 0), {});
  ASSERT_TRUE(energy.ok());
  EXPECT_NEAR(energy->joules(), 4 * 10 * 300, kClose * 12000);
}

TEST(StepEnergyTest, RunsHaveAPriceAndCarbon) {
  const auto energy = EnergyOfStep(Step(), Model(700, 400, 100, 250),
                                   {.tokens = 1e9,
                                    .price_per_kwh = 0.1,
                                    .grams_co2_per_kwh = 400,
                                    .pue = 1.2});
  ASSERT_TRUE(energy.ok());
  const double kwh = 1.2 * 3.775e9 / 3.6e6;
  EXPECT_NEAR(*energy->run_kwh, kwh, kClose * kwh);
  EXPECT_NEAR(*energy->run_price, 0.1 * kwh, kClose * kwh);
  EXPECT_NEAR(*energy->run_kg_co2, 0.4 * kwh, kClose * kwh);
}

TEST(StepEnergyTest, PresetsNameTheirSources) {
  EXPECT_EQ(ListAssets(kPowerFolder),
            (std::vector<std::string>{"a100-sxm", "h100-sxm"}));
  for (const std::string& name : ListAssets(kPowerFolder)) {
    const auto model = LoadPowerModel(name);
    ASSERT_TRUE(model.ok()) << model.status();
    for (const Figure& figure :
         {model->compute_watts(), model->communication_watts(),
          model->waiting_watts(), model->node_watts()}) {
      EXPECT_NE(figure.kind(), Figure::KIND_UNSPECIFIED);
      EXPECT_FALSE(figure.source().empty());
    }
    EXPECT_GT(model->compute_watts().value(),
              model->communication_watts().value());
    EXPECT_GT(model->communication_watts().value(),
              model->waiting_watts().value());
  }
}

TEST(StepEnergyTest, BadModelsAndResultsAreRefused) {
  const std::string message(
      ValidatePowerModel("p", Model(0, 1, -1, -2)).message());
  EXPECT_THAT(message, HasSubstr("p: compute_watts.value is 0"));
  EXPECT_THAT(message, HasSubstr("p: waiting_watts.value is -1"));
  EXPECT_THAT(message, HasSubstr("p: node_watts.value is -2"));
  Result result = Step();
  result.clear_breakdown();
  EXPECT_THAT(
      std::string(
          EnergyOfStep(result, Model(1, 1, 1, 1), {}).status().message()),
      HasSubstr("--energy: step has no parts"));
}

TEST(StepEnergyTest, ViewsContainAllResults) {
  const PowerModel model = Model(700, 400, 100, 250);
  const StepEnergy energy = *EnergyOfStep(Step(), model, {});
  const std::vector<StepEnergy> two = {energy, energy};
  const std::string table = StepEnergyTable(model, {"gpipe", "1f1b"}, two);
  EXPECT_THAT(table, HasSubstr("30.2 kJ"));
  EXPECT_THAT(table, HasSubstr("1f1b"));
  const auto one = nlohmann::json::parse(
      WithEnergyJson(R"({"result":{"a":1}})", model, {&energy, 1}));
  EXPECT_NEAR(one["result"]["energy"]["joules_per_step"].get<double>(), 30200,
              1e-4);
  EXPECT_EQ(one["result"]["a"], 1);
  const auto both = nlohmann::json::parse(
      WithEnergyJson(R"({"results":[{},{}]})", model, two));
  EXPECT_EQ(both["results"][1]["energy"]["power_model"], "model");
}

}  // namespace weir::plan::step_energy_test
