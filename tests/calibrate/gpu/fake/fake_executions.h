// SPDX-License-Identifier: Apache-2.0
// Replays, and training by formula, on a fake GPU.
#ifndef WEIR_TESTS_CALIBRATE_GPU_FAKE_FAKE_EXECUTIONS_H_
#define WEIR_TESTS_CALIBRATE_GPU_FAKE_FAKE_EXECUTIONS_H_

#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "calibrate/execute/execute_schedule.h"
#include "calibrate/execute/gpu/execution_device.h"
#include "calibrate/execute/host_device.h"
#include "calibrate/execute/sequential.h"
#include "tests/calibrate/execute/tiny_execution.h"
#include "tests/calibrate/gpu/fake/fake.h"

namespace weir::calibrate {

inline ExecutionPlan HalfPlan(const std::string& name,
                              const schedules::ScheduleSpec& spec,
                              bool llama = false,
                              Optimizer optimizer = SGD_MOMENTUM) {
  ExecutionRequest request = TinyRequest(Generated(name, spec), llama);
  request.spec.format = ElementFormat::kBf16;
  request.num_steps = request.schedule.flush ? 2 : 1;
  request.optimizer.kind = optimizer;
  request.link = {.latency_seconds = 1e-5, .bytes_per_second = 1e9};
  ExecutionPlan plan = PlanOf(request);
  plan.timeout_seconds = 20;
  return plan;
}

class FakeExecutionTest : public testing::Test {
 protected:
  void SetUp() override { Gpu() = FakeState(); }
  void TearDown() override { EXPECT_THAT(Gpu().faults, testing::IsEmpty()); }

  static absl::StatusOr<ExecutionRecord> Try(const ExecutionPlan& plan,
                                             CudaExecutionOptions options,
                                             std::string* described = nullptr) {
    options.workspace_bytes = 1 << 20;
    options.nvml = FAKE_NVML;
    auto device = OpenCudaExecutionDevice(plan, options);
    if (!device.ok()) return device.status();
    auto record = ExecuteSchedule(plan, device->get());
    if (described != nullptr) *described = (*device)->description();
    return record;
  }
  static ExecutionRecord Run(const ExecutionPlan& plan, int num_partitions) {
    CudaExecutionOptions options;
    options.num_partitions = num_partitions;
    options.num_candidates = 1;
    auto record = Try(plan, options);
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? *std::move(record) : ExecutionRecord();
  }
  // Trains by the paper's formula on the GPU.
  static absl::StatusOr<SequentialRecord> Train(const ExecutionPlan& plan,
                                                int64_t pool_bytes = 0) {
    CudaExecutionOptions options;
    options.workspace_bytes = 1 << 20;
    options.num_candidates = 1;
    options.pool_bytes = pool_bytes;
    options.nvml = FAKE_NVML;
    return TrainSequentially(plan, [&](const ExecutionPlan& one) {
      EXPECT_EQ(one.schedule.num_ranks, 1);
      return OpenCudaExecutionDevice(one, options);
    });
  }
  static ExecutionRecord OnHost(const ExecutionPlan& plan) {
    const auto host = MakeHostDevice(plan, {.concurrent = false});
    auto record = ExecuteSchedule(plan, host.get());
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? *std::move(record) : ExecutionRecord();
  }
};

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_GPU_FAKE_FAKE_EXECUTIONS_H_
