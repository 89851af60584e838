// SPDX-License-Identifier: Apache-2.0
// Compares replays on a GPU, with the ranks one after another and on
// partitions, with the host in double precision.
#include <gmock/gmock.h>

#include <optional>
#include <tuple>

#include "calibrate/execute/gpu/execution_device.h"
#include "calibrate/execute/host_device.h"
#include "calibrate/execute/sequential.h"
#include "calibrate/gpu/bench_device.h"
#include "calibrate/gpu/memory_pool.h"
#include "schedules/registry.h"
#include "tests/calibrate/gpu/gpu_test.h"
#include "tests/calibrate/gpu/replay_difference.h"

namespace weir::calibrate::gpu_replay_test {

// The tolerances are those on the fake GPU, with sums in fp32 and in another
// order.
constexpr double kLosses = 2e-3, kChange = 2e-2;
// Against double precision also activations, gradients and their products with
// dropout are rounded, to 2^-9 each: about ten roundings in a row of two blocks
// add up to 2e-2, and twice that is allowed. Wrong gradients or orders change
// more than a tenth.
constexpr double kChangeFromHost = 4e-2;
constexpr LinkSpec kLink = {.latency_seconds = 2e-5, .bytes_per_second = 1e10};

// Returns a model that the host trains in seconds.
Model SmallerGpt() {
  Model model = GpuGpt();
  Transformer& t = *model.mutable_transformer();
  t.set_hidden_size(128);
  t.set_num_heads(2);
  t.set_num_kv_heads(2);
  t.set_feed_forward_size(256);
  t.set_vocabulary_size(256);
  return model;
}

class GpuExecutionTest : public GpuTest {
 protected:
  ExecutionPlan Plan(const std::string& name,
                     const schedules::ScheduleSpec& spec) const {
    ExecutionRequest request;
    auto schedule = schedules::GenerateSchedule(name, spec);
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    request.schedule = *std::move(schedule);
    request.model = SmallerGpt();
    request.spec = Spec(/*fused=*/true, /*dropout=*/0.1F);
    request.link = kLink;
    request.num_steps = request.schedule.flush ? 2 : 1;
    auto plan = MakeExecutionPlan(request);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : ExecutionPlan();
  }

  // Runs the replay and prints the device's description for the log.
  static ExecutionRecord Run(const ExecutionPlan& plan,
                             ExecutionDevice* device) {
    auto record = ExecuteSchedule(plan, device);
    EXPECT_TRUE(record.ok()) << record.status();
    printf("%s\n", device->description().c_str());
    return record.ok() ? *std::move(record) : ExecutionRecord();
  }
  static CudaExecutionOptions OptionsFor(int num_partitions) {
    CudaExecutionOptions options;
    options.num_partitions = num_partitions;
#ifdef WEIR_FAKE_GPU
    options.num_candidates = 1;  // each candidate is run a hundred times
#endif
    return options;
  }
  // Returns nullopt if the GPU cannot be partitioned.
  static std::optional<ExecutionRecord> OnGpu(const ExecutionPlan& plan,
                                              int num_partitions) {
    auto device = OpenCudaExecutionDevice(plan, OptionsFor(num_partitions));
    if (absl::IsUnimplemented(device.status())) return std::nullopt;
    EXPECT_TRUE(device.ok()) << device.status();
    if (!device.ok()) return ExecutionRecord();
    return Run(plan, device->get());
  }
  static ExecutionRecord OnHost(const ExecutionPlan& plan) {
    return Run(plan, MakeHostDevice(plan, {.concurrent = false}).get());
  }

  static void ExpectMarks(const ExecutionRecord& record) {
    for (const StepRecord& step : record.steps) {
      for (const RankRecord& rank : step.ranks) {
        EXPECT_NEAR(rank.allocator_peak_bytes / rank.taken_peak_bytes, 1, 5e-3);
      }
    }
  }
  static void ExpectPace(const ExecutionRecord& record) {
    for (const StepRecord& step : record.steps) {
      for (const TransferRecord& transfer : step.transfers) {
        const double lone = kLink.SecondsOf(transfer.bytes);
        EXPECT_GE(transfer.end_seconds - transfer.start_seconds, 0.99 * lone);
        printf("message of %.0f bytes: %.2f us, of the link %.2f us\n",
               transfer.bytes,
               1e6 * (transfer.end_seconds - transfer.start_seconds),
               1e6 * lone);
      }
    }
  }
};

TEST_F(GpuExecutionTest, ASynchronousScheduleTrainsAsTheHost) {
  const ExecutionPlan plan = Plan("zb-h1", {2, 3, 1});
  const ExecutionRecord host = OnHost(plan);
  const ExecutionRecord serial = *OnGpu(plan, 0);
  EXPECT_LE(Differ(Losses(serial), Losses(host)), kLosses);
  printf("change differs from the host's by %.3g\n",
         ChangesDiffer(plan, serial, host));
  EXPECT_LE(ChangesDiffer(plan, serial, host), kChangeFromHost);
  ExpectMarks(serial);
}

TEST_F(GpuExecutionTest, PartsOfTheGpuTrainAsAllOfIt) {
  for (const auto& [name, spec] :
       {std::pair<std::string, schedules::ScheduleSpec>{"zb-h1", {2, 3, 1}},
        {"2bw", {2, 2, 1, 3}}}) {
    const ExecutionPlan plan = Plan(name, spec);
    const auto parts = OnGpu(plan, 2);
    if (!parts.has_value())
      GTEST_SKIP() << "this GPU cannot be divided into partitions";
    const ExecutionRecord serial = *OnGpu(plan, 0);
    EXPECT_TRUE(CheckVersions(plan, *parts).ok());
    EXPECT_LE(Differ(Losses(*parts), Losses(serial)), kLosses) << name;
    EXPECT_LE(ChangesDiffer(plan, *parts, serial), kChange) << name;
    ExpectMarks(*parts);
    ExpectPace(*parts);
  }
}

// The limits are 4 u for the schedule's own formula and at least 0.3 for that
// of another system.
TEST_F(GpuExecutionTest, AScheduleWithoutFlushTrainsAsItsFormulaOnTheGpu) {
  const schedules::ScheduleSpec spec = {2, 2, 1, 3};
  const ExecutionPlan plan = Plan("2bw", spec);
  const ExecutionRecord serial = *OnGpu(plan, 0);
  for (const auto& [name, least, most] :
       {std::tuple{"2bw", 0.0, 4 * 0x1p-9}, {"pipedream", 0.3, 1e9}}) {
    const auto formula =
        TrainSequentially(Plan(name, spec), [](const ExecutionPlan& one) {
          return OpenCudaExecutionDevice(one, OptionsFor(0));
        });
    ASSERT_TRUE(formula.ok()) << formula.status();
    const TrainingDifference difference = DifferenceOf(plan, serial, *formula);
    printf("formula of %s: losses %.2g, change %.2g\n", name, difference.losses,
           difference.change);
    EXPECT_GE(difference.change, least) << name;
    EXPECT_LE(difference.change, most) << name;
  }
}

// CUDA does not document whether a pool's mark counts memory until its free is
// queued or until it has been executed. Both are correct; the second makes the
// marks of ranks that run ahead higher than the counted peak.
TEST_F(GpuExecutionTest, APoolReusesWhatIsGivenBackInStreamOrder) {
  auto device = OpenBenchDevice({});
  ASSERT_TRUE(device.ok()) << device.status();
  cudaStream_t stream = (*device)->stream.get();
  auto pool = MemoryPool::Create(0, 0);
  ASSERT_TRUE(pool.ok()) << pool.status();
  constexpr int64_t kBytes = 8 << 20;
  // Copies for some milliseconds; everything below waits for them.
  ASSERT_TRUE((*device)->EnqueueFlush(5e-3).ok());
  for (int i = 0; i < 4; ++i) {
    auto memory = (*pool)->Allocate(kBytes, stream, "a test");
    ASSERT_TRUE(memory.ok()) << memory.status();
    ASSERT_TRUE((*pool)->Free(*memory, stream).ok());
  }
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  cudaGetLastError();
  const auto marks = (*pool)->Marks();
  ASSERT_TRUE(marks.ok()) << marks.status();
  printf("%lld bytes marked for one buffer of %lld at a time: frees count %s\n",
         static_cast<long long>(marks->used_bytes),
         static_cast<long long>(kBytes),
         marks->used_bytes == kBytes ? "when they are queued"
                                     : "when they are executed");
  EXPECT_GE(marks->used_bytes, kBytes);
  EXPECT_LE(marks->used_bytes, 4 * kBytes);
  ASSERT_TRUE((*device)->Wait("a test").ok());
}

TEST_F(GpuExecutionTest, APrimedPoolServesSmallRequestsFromWhatItHas) {
  auto device = OpenBenchDevice({});
  ASSERT_TRUE(device.ok()) << device.status();
  cudaStream_t stream = (*device)->stream.get();
  constexpr int64_t kPrimed = 512 << 20;
  auto pool = MemoryPool::Create(0, kPrimed);
  ASSERT_TRUE(pool.ok()) << pool.status();
  ASSERT_TRUE((*pool)->Prime(kPrimed, stream).ok());
  ASSERT_TRUE((*device)->Wait("a test").ok());
  const int64_t reserved = (*pool)->Marks()->reserved_bytes;
  EXPECT_GE(reserved, 0.8 * kPrimed);
  std::vector<void*> taken;
  for (const int64_t size : {16 << 20, 100, 3 << 20, 64 << 20, 5000, 1 << 20}) {
    for (int i = 0; i < 4; ++i) {
      auto memory = (*pool)->Allocate(size, stream, "a test");
      ASSERT_TRUE(memory.ok()) << memory.status();
      taken.push_back(*memory);
    }
  }
  EXPECT_EQ((*pool)->Marks()->reserved_bytes, reserved);
  for (void* memory : taken) {
    EXPECT_TRUE((*pool)->Free(memory, stream).ok());
  }
  ASSERT_TRUE((*device)->Wait("a test").ok());
}

}  // namespace weir::calibrate::gpu_replay_test
