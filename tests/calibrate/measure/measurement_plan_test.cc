// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/measurement_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "calibrate/profile/device_profile.h"
#include "models/layer_work.h"
#include "models/model.h"

namespace weir::calibrate::measurement_plan_test {

using testing::HasSubstr;

MeasuringPlan PlanOf(const std::string& model,
                     const PlanOptions& options = {}) {
  auto plan = MakePlan(*models::LoadModel(model), options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

std::set<std::string> KeysOf(const MeasuringPlan& plan) {
  std::set<std::string> keys;
  for (const Workload& workload : plan.workloads) keys.insert(workload.key);
  return keys;
}

TEST(MeasurementPlanTest, EveryWorkloadHasAKeyOfItsOwnTheSameInEveryRun) {
  const MeasuringPlan plan = PlanOf("gpt2");
  EXPECT_EQ(KeysOf(plan).size(), plan.workloads.size());
  EXPECT_EQ(KeysOf(plan), KeysOf(PlanOf("gpt2")));
}

TEST(MeasurementPlanTest, OperationsOfEveryPassAreMeasuredAlone) {
  for (const char* model : {"gpt2", "llama-2-7b"}) {
    const MeasuringPlan plan = PlanOf(model);
    const std::set<std::string> keys = KeysOf(plan);
    EXPECT_FALSE(plan.passes.empty());
    for (const PlannedPass& pass : plan.passes) {
      EXPECT_EQ(keys.count(pass.key), 1) << pass.key;
      for (const std::string& key : pass.op_keys) {
        EXPECT_EQ(keys.count(key), 1) << key;
      }
    }
    for (const PlannedOverlap& overlap : plan.overlaps) {
      EXPECT_EQ(keys.count(overlap.alone_key), 1) << overlap.alone_key;
      EXPECT_EQ(keys.count(overlap.overlapped_key), 1)
          << overlap.overlapped_key;
    }
    EXPECT_EQ(keys.count(plan.reference.key), 1);
  }
}

// Operations with different work never share a key.
TEST(MeasurementPlanTest, OneKeyIsOneAmountOfWork) {
  PlanOptions options;
  options.dropout = 0.1;
  options.unfused_attention = true;
  for (const char* model : {"gpt2", "llama-2-7b"}) {
    const MeasuringPlan plan = PlanOf(model, options);
    std::map<std::string, std::vector<models::Kernel>> known;
    for (const PlannedStage& stage : plan.stages) {
      for (const auto& ops : stage.program->passes) {
        for (const StageOp& op : ops) {
          const auto [at, added] =
              known.emplace(OpKey(*stage.program, op), op.kernels);
          EXPECT_EQ(at->second, op.kernels) << at->first;
        }
      }
    }
    EXPECT_GT(known.size(), 30);
  }
}

TEST(MeasurementPlanTest, BlocksRepeatTheirOperations) {
  PlanOptions options;
  options.microbatch_sizes = {1};
  const MeasuringPlan plan = PlanOf("gpt2", options);
  ASSERT_EQ(plan.stages.size(), 4);
  const auto ops_of = [&](int stage, ProgramPass pass) {
    for (const PlannedPass& planned : plan.passes) {
      if (planned.stage == stage && planned.pass == pass) {
        return planned.op_keys;
      }
    }
    return std::vector<std::string>();
  };
  const auto one = ops_of(0, ProgramPass::kForward);
  const auto two = ops_of(1, ProgramPass::kForward);
  EXPECT_EQ(two.size(), 2 * one.size());
  EXPECT_EQ(std::set<std::string>(one.begin(), one.end()),
            std::set<std::string>(two.begin(), two.end()));
}

TEST(MeasurementPlanTest, SizesMultiplyStagesAndShareWhatIsAlike) {
  PlanOptions options;
  options.microbatch_sizes = {1, 2};
  options.sequence_lengths = {256, 512};
  options.tensor_parallel = {1, 2};
  const MeasuringPlan plan = PlanOf("gpt2-medium", options);
  EXPECT_EQ(plan.stages.size(), 2 * 2 * 2 * 4);
  EXPECT_EQ(plan.memory.size(), 3 * plan.stages.size());
  // 2 x 256 tokens have the GEMMs of 1 x 512.
  size_t num_ops = 0;
  for (const PlannedPass& pass : plan.passes) num_ops += pass.op_keys.size();
  EXPECT_LT(plan.workloads.size(), num_ops / 2);
}

TEST(MeasurementPlanTest, GridSpansSizesFromSmallToLarge) {
  const MeasuringPlan plan = PlanOf("gpt2");
  int small = 0, large = 0, gemms = 0;
  for (const Workload& workload : plan.workloads) {
    if (workload.kind != Workload::Kind::kOp) continue;
    const StageOp& op = OpOf(workload);
    if (op.kind != OpKind::kGemm || !op.transpose_b) ++gemms;
    const double size = std::cbrt(double(op.rows) * op.columns * op.inner);
    small += size < 300;
    large += size > 8000;
  }
  EXPECT_GE(gemms, 60);
  EXPECT_GT(small, 4);
  EXPECT_GT(large, 1);
}

TEST(MeasurementPlanTest, EveryPassOfAPartIsMeasuredWhileOthersWork) {
  PlanOptions options;
  const MeasuringPlan whole = PlanOf("gpt2", options);
  EXPECT_TRUE(whole.loads.empty());
  for (const auto& [num_partitions, active] :
       {std::pair(2, std::vector<int>{2}), std::pair(6, std::vector{2, 4, 6}),
        std::pair(8, std::vector{2, 4, 8})}) {
    options.num_partitions = num_partitions;
    const MeasuringPlan plan = PlanOf("gpt2", options);
    EXPECT_EQ(KeysOf(plan).size(), plan.workloads.size());
    ASSERT_EQ(plan.loads.size(), active.size() * plan.passes.size());
    std::map<std::string, const Workload*> by_key;
    for (const Workload& workload : plan.workloads) {
      by_key[workload.key] = &workload;
      EXPECT_NE(workload.kind, Workload::Kind::kSelfSend);
      EXPECT_NE(workload.kind, Workload::Kind::kOpWithCopies);
    }
    for (size_t i = 0; i < plan.loads.size(); ++i) {
      const PlannedLoad& load = plan.loads[i];
      EXPECT_EQ(load.active, active[i % active.size()]);
      const Workload* loaded = by_key[load.key];
      const Workload* alone = by_key[plan.passes[load.pass].key];
      ASSERT_TRUE(loaded != nullptr && alone != nullptr);
      EXPECT_EQ(loaded->active_partitions, load.active);
      EXPECT_EQ(alone->active_partitions, 1);
      EXPECT_EQ(loaded->program, alone->program);
      EXPECT_EQ(loaded->pass, alone->pass);
    }
    const DeviceProfile profile = *LoadDeviceProfile("h200-sxm");
    EXPECT_GT(EstimateMeasuringSeconds(profile, *by_key[plan.loads.back().key],
                                       num_partitions),
              EstimateMeasuringSeconds(profile, *by_key[plan.passes.back().key],
                                       num_partitions));
  }
}

TEST(MeasurementPlanTest, ASelectionKeepsWhatItIsComparedWith) {
  const MeasuringPlan all = PlanOf("gpt2");
  const PlannedPass& pass = all.passes.front();
  MeasuringPlan plan = all;
  SelectWorkloads(pass.key, &plan);
  std::set<std::string> expected(pass.op_keys.begin(), pass.op_keys.end());
  for (const std::string& key : KeysOf(all)) {
    if (key.find(pass.key) != std::string::npos) expected.insert(key);
  }
  EXPECT_EQ(KeysOf(plan), expected);
  EXPECT_LT(plan.workloads.size(), all.workloads.size());
  EXPECT_EQ(plan.sustained.key, all.sustained.key);

  plan = all;
  SelectWorkloads("copy", &plan);
  EXPECT_FALSE(plan.workloads.empty());
  EXPECT_TRUE(plan.sustained.key.empty());

  plan = all;
  SelectWorkloads("", &plan);
  EXPECT_EQ(KeysOf(plan), KeysOf(all));
  SelectWorkloads("no such key", &plan);
  EXPECT_TRUE(plan.workloads.empty());
  EXPECT_TRUE(plan.memory.empty());
}

TEST(MeasurementPlanTest, ALoadedPassIsKeptWithThePassAlone) {
  PlanOptions options;
  options.num_partitions = 4;
  MeasuringPlan plan = PlanOf("gpt2", options);
  const PlannedLoad load = plan.loads.front();
  const PlannedPass pass = plan.passes[load.pass];
  SelectWorkloads(load.key, &plan);
  std::set<std::string> expected(pass.op_keys.begin(), pass.op_keys.end());
  expected.insert({load.key, pass.key});
  EXPECT_EQ(KeysOf(plan), expected);
}

TEST(MeasurementPlanTest, EstimateGrowsWithTheWork) {
  const DeviceProfile profile = *LoadDeviceProfile("h200-sxm");
  double total = 0;
  for (const Workload& workload : PlanOf("gpt2").workloads) {
    const double seconds = EstimateMeasuringSeconds(profile, workload);
    EXPECT_GT(seconds, 0.5) << workload.key;
    EXPECT_LT(seconds, 20) << workload.key;
    total += seconds;
  }
  EXPECT_GT(total, 60);
  EXPECT_LT(total, 1800);
  Workload copy;
  copy.kind = Workload::Kind::kCopy;
  copy.bytes = 1 << 30;
  // 2 GiB at 85 % of 4.8 TB/s.
  EXPECT_NEAR(EstimateSeconds(profile, copy), 5.3e-4, 1e-5);
}

TEST(MeasurementPlanTest, WhatCannotBeMeasuredIsSaid) {
  const auto experts = MakePlan(*models::LoadModel("mixtral-8x7b"), {});
  EXPECT_TRUE(absl::IsInvalidArgument(experts.status()));
  EXPECT_THAT(std::string(experts.status().message()), HasSubstr("experts"));
  PlanOptions options;
  options.sequence_lengths = {4096};  // gpt2 has 1024 positions
  EXPECT_THAT(
      std::string(
          MakePlan(*models::LoadModel("gpt2"), options).status().message()),
      HasSubstr("sequence_length"));
}

TEST(MeasurementPlanTest, PeakBytesGrowWithWhatIsAlive) {
  const MeasuringPlan plan = PlanOf("gpt2");
  const StageProgram& program = *plan.stages[0].program;
  const double one = PredictedPeakBytes(program, 1);
  const double two = PredictedPeakBytes(program, 2);
  const double four = PredictedPeakBytes(program, 4);
  EXPECT_GT(two, one);
  EXPECT_DOUBLE_EQ(four - two, 2 * (two - one));
}

}  // namespace weir::calibrate::measurement_plan_test
