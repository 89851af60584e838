// SPDX-License-Identifier: Apache-2.0
// Compares replays on a fake GPU, with ranks one after another and
// concurrently, with the host in double precision.
#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "calibrate/execute/host_device.h"
#include "tests/calibrate/gpu/fake/fake_executions.h"
#include "tests/calibrate/gpu/replay_difference.h"

namespace weir::calibrate::fake_execution_test {

using testing::HasSubstr;
using testing::IsEmpty;

// Each value is rounded to 2^-9 (2e-3). Weights are compared by their change in
// training. Adam's early steps are the signs of gradients. An error of e flips
// e / pi of the signs, which is 2 sqrt(e / pi) of the change.
constexpr double kLosses = 1e-3, kChange = 1e-2;
const double kAdamChange = 2 * std::sqrt(kChange / std::numbers::pi);
// Two trainings on the GPU differ only in the order of sums. The largest
// observed difference is 1e-6, with Adam.
constexpr double kSums = 1e-5;

std::string TestName(std::string name) {
  for (char& c : name) c = std::isalnum(c) != 0 ? c : '_';
  return name;
}

struct Kind {
  std::string name;
  schedules::ScheduleSpec spec;
  bool llama = false;
  bool flush = true;
  Optimizer optimizer = SGD_MOMENTUM;
  int compressed_bits = 0;
  double momentum = 0.9;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class KindTest : public FakeExecutionTest,
                 public testing::WithParamInterface<Kind> {};

TEST_P(KindTest, TrainsAsTheHostInTurnAndAtTheSameTime) {
  const Kind& kind = GetParam();
  ExecutionPlan plan =
      HalfPlan(kind.name, kind.spec, kind.llama, kind.optimizer);
  plan.compressed_bits = kind.compressed_bits;
  for (StageOptimizer& optimizer : plan.optimizers) {
    optimizer.momentum = kind.momentum;
  }
  EXPECT_EQ(plan.schedule.resident_activations > 0,
            kind.name.rfind("optpipe", 0) == 0);  // it offloads
  const ExecutionRecord host = OnHost(plan);
  const ExecutionRecord serial = Run(plan, 0);
  EXPECT_LE(Differ(Losses(serial), Losses(host)), kLosses);
  EXPECT_LE(ChangesDiffer(plan, serial, host),
            kind.optimizer == ADAM ? kAdamChange : kChange);
  EXPECT_GT(ChangesDiffer(plan, serial, host), 1e-5);  // it is in 16 bits
  EXPECT_TRUE(CheckVersions(plan, serial).ok());
  const ExecutionRecord parts = Run(plan, kind.spec.num_ranks <= 2 ? 2 : 4);
  EXPECT_TRUE(CheckVersions(plan, parts).ok());
  // The same work in another order of ranks gives the same bits.
  EXPECT_EQ(Losses(parts), Losses(serial));
  EXPECT_EQ(parts.weights, serial.weights);
  const auto formula = Train(plan);
  ASSERT_TRUE(formula.ok()) << formula.status();
  const TrainingDifference difference = DifferenceOf(plan, serial, *formula);
  EXPECT_LE(difference.losses, kSums);
  EXPECT_LE(difference.change, kSums) << "stage " << difference.worst_stage;
}

INSTANTIATE_TEST_SUITE_P(
    All, KindTest,
    testing::Values(Kind{"gpipe", {4, 4, 1}, false},
                    Kind{"1f1b", {4, 8, 1}, true},
                    Kind{"interleaved-1f1b", {2, 4, 2}, true},
                    Kind{"zb-h1", {4, 4, 1}, false},
                    Kind{"zb-v", {2, 4, 2}, true},
                    Kind{"pipedream", {3, 3, 1, 3}, true, false},
                    Kind{"2bw", {4, 4, 1, 4}, false, false},
                    Kind{"chimera", {4, 4, 1}, false}),
    [](const auto& info) { return TestName(info.param.name); });

// Weight prediction, averages, rounded messages, offloading, Adam.
INSTANTIATE_TEST_SUITE_P(
    More, KindTest,
    testing::Values(Kind{"pipemare", {3, 3, 1, 3}, false, false},
                    Kind{"spectrain", {3, 3, 1, 3}, true, false},
                    Kind{"xpipe", {2, 4, 1, 3}, true, false, ADAM},
                    Kind{"accept", {2, 4, 1}, false, true, SGD_MOMENTUM, 8, 0},
                    Kind{"optpipe:memory-limit=2", {4, 6, 1}, true},
                    Kind{"pipedream:replicas=2-1", {3, 4, 1, 3}, true, false}),
    [](const auto& info) { return TestName(info.param.name); });

// Returns a plan with buffers of one or several units of a pool.
ExecutionPlan LargerPlan() {
  ExecutionRequest request =
      TinyRequest(Generated("1f1b", {.num_ranks = 2, .num_microbatches = 3}));
  Transformer& t = *request.model.mutable_transformer();
  t.set_hidden_size(64);
  t.set_head_size(32);
  t.set_feed_forward_size(128);
  t.set_vocabulary_size(64);
  t.set_num_positions(64);
  request.spec.work.sequence_length = 64;
  request.spec.format = ElementFormat::kBf16;
  request.num_steps = 2;
  return PlanOf(request);
}

TEST_F(FakeExecutionTest, ThePoolsMarkIsTheCountedPeak) {
  const ExecutionPlan plan = LargerPlan();
  for (const int num_partitions : {0, 2}) {
    const ExecutionRecord record = Run(plan, num_partitions);
    for (const StepRecord& step : record.steps) {
      for (const RankRecord& rank : step.ranks) {
        EXPECT_GT(rank.taken_peak_bytes, 0);
        EXPECT_NEAR(rank.allocator_peak_bytes / rank.taken_peak_bytes, 1, 5e-3);
      }
    }
  }
}

TEST_F(FakeExecutionTest, APassTakesItsOperationsHoweverLongLaunchingTakes) {
  const ExecutionPlan plan = HalfPlan("gpipe", {2, 3, 1});
  // Each launch takes the fake host a microsecond.
  for (const double seconds : {1e-5, 1e-8}) {
    Gpu().kernel_seconds = seconds;
    Gpu().library_algorithm_seconds[0] = 3 * seconds;
    const ExecutionRecord record = Run(plan, 0);
    for (const StepRecord& step : record.steps) {
      for (int rank = 0; rank < 2; ++rank) {
        const auto& actions = plan.schedule.rank_actions[rank];
        for (size_t i = 0; i < actions.size(); ++i) {
          if (actions[i].op != schedules::Op::kForward) continue;
          double expected = 0;
          for (const StageOp& op :
               plan.programs[rank]->ops(ProgramPass::kForward)) {
            expected += op.kind == OpKind::kGemm ? 3 * seconds : seconds;
          }
          const ActionRecord& found = step.ranks[rank].actions[i];
          EXPECT_NEAR((found.end_seconds - found.start_seconds) / expected, 1,
                      1e-4);
        }
      }
    }
  }
}

TEST_F(FakeExecutionTest, GemmsHaveTheFastestOfTheirAlgorithms) {
  const ExecutionPlan plan = HalfPlan("gpipe", {2, 1, 1});
  CudaExecutionOptions options;
  options.num_candidates = 8;
  for (const int num_partitions : {0, 2}) {
    options.num_partitions = num_partitions;
    Gpu().gemms_fill.clear();
    const auto record = Try(plan, options);
    ASSERT_TRUE(record.ok()) << record.status();
    // cuBLASLt does not know the partition that it runs on.
    EXPECT_EQ(Gpu().gemms_fill.count(64), num_partitions / 2);
    if (num_partitions > 0) continue;
    double expected = 0;
    for (const StageOp& op : plan.programs[1]->ops(ProgramPass::kForward)) {
      expected += op.kind == OpKind::kGemm ? 2e-5 : 1e-5;
    }
    const ActionRecord& found = record->steps[1].ranks[1].actions[0];
    EXPECT_NEAR((found.end_seconds - found.start_seconds) / expected, 1, 1e-4);
  }
}

TEST_F(FakeExecutionTest, MessagesTakeTheirLinksTime) {
  const ExecutionPlan plan = HalfPlan("1f1b", {2, 4, 1});
  for (const int num_partitions : {0, 2}) {
    const ExecutionRecord record = Run(plan, num_partitions);
    ASSERT_THAT(record.steps[1].transfers, testing::SizeIs(8));
    for (const TransferRecord& transfer : record.steps[1].transfers) {
      const double seconds = transfer.end_seconds - transfer.start_seconds;
      EXPECT_GE(seconds, (1 - 1e-4) * (1e-5 + transfer.bytes / 1e9));
      if (num_partitions == 0) {
        EXPECT_NEAR(seconds, 1e-5 + transfer.bytes / 1e9, 1e-9);
      }
      EXPECT_GE(transfer.start_seconds, transfer.ready_seconds);
    }
  }
}

TEST_F(FakeExecutionTest, APoolThatIsTooSmallNamesRankAndAction) {
  const ExecutionPlan plan = LargerPlan();
  double least = 1e18;
  const ExecutionRecord enough = Run(plan, 0);
  for (const RankRecord& rank : enough.steps[0].ranks) {
    least = std::min(least, rank.taken_peak_bytes);
  }
  for (const int num_partitions : {0, 2}) {
    CudaExecutionOptions options;
    options.num_partitions = num_partitions;
    options.pool_bytes = static_cast<int64_t>(0.95 * least);
    options.num_candidates = 1;
    const auto record = Try(plan, options);
    EXPECT_EQ(record.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(record.status().message()),
                testing::ContainsRegex("rank [01], .*position.*: rank [01]: "
                                       "allocating [0-9]+ bytes"));
  }
}

// Returns a plan whose first rank needs most of the memory, with the peaks of
// its ranks.
ExecutionPlan UnequalPlan() {
  ExecutionRequest request =
      TinyRequest(Generated("gpipe", {.num_ranks = 2, .num_microbatches = 3}));
  request.model = TinyGpt(6);
  request.spec.format = ElementFormat::kBf16;
  request.first_layer = {0, 6, 8};
  ExecutionPlan plan = PlanOf(request);
  plan.timeout_seconds = 20;
  return plan;
}

TEST_F(FakeExecutionTest, PoolsHaveTheSizesThatRanksNeed) {
  ExecutionPlan plan = UnequalPlan();
  CudaExecutionOptions options;
  options.num_partitions = 2;
  options.num_candidates = 1;
  options.workspace_bytes = 1 << 20;
  cudaFree(nullptr);      // the context, which stays
  int64_t own_bytes = 0;  // of a device, without its pools
  double sum = 0, most = 0;
  {
    const int64_t before = Gpu().used_bytes;
    auto device = OpenCudaExecutionDevice(plan, options);
    ASSERT_TRUE(device.ok()) << device.status();
    own_bytes = Gpu().used_bytes - before;
    const auto record = ExecuteSchedule(plan, device->get());
    ASSERT_TRUE(record.ok()) << record.status();
    for (const RankRecord& rank : record->steps[0].ranks) {
      plan.predicted_peak_bytes.push_back(rank.allocator_peak_bytes);
      sum += rank.allocator_peak_bytes;
      most = std::max(most, rank.allocator_peak_bytes);
    }
  }
  ASSERT_GT(most / sum, 0.6);
  // Leaves this multiple of the ranks' peaks to their pools.
  const auto leave = [&](double factor) {
    Gpu().total_bytes =
        Gpu().used_bytes + own_bytes + static_cast<int64_t>(factor * sum);
  };
  leave(1.15);
  const auto in_proportion = Try(plan, options);
  EXPECT_TRUE(in_proportion.ok()) << in_proportion.status();
  // Equal shares do not hold the first rank.
  std::vector<double> peaks;
  std::swap(peaks, plan.predicted_peak_bytes);
  leave(1.15);
  EXPECT_EQ(Try(plan, options).status().code(),
            absl::StatusCode::kResourceExhausted);
  std::swap(peaks, plan.predicted_peak_bytes);
  // A replay that cannot fit does not begin.
  leave(1.02);
  const int64_t num_kernels = Gpu().num_kernels;
  EXPECT_THAT(std::string(Try(plan, options).status().message()),
              testing::ContainsRegex(
                  "the 2 ranks need [0-9]+ bytes \\(.*\\), but [0-9]+ bytes "
                  "\\(.*\\) of this GPU are available to them"));
  EXPECT_LT(Gpu().num_kernels - num_kernels, 10);  // warm-up only
}

TEST_F(FakeExecutionTest, LinksThatAreTooFastForTheCopiesAreReported) {
  ExecutionPlan plan = HalfPlan("1f1b", {4, 4, 1});
  const auto describe = [&](double bytes_per_second) {
    for (LinkSpec& link : plan.links) link.bytes_per_second = bytes_per_second;
    CudaExecutionOptions options;
    options.num_partitions = 4;
    options.num_candidates = 1;
    std::string described;
    EXPECT_TRUE(Try(plan, options, &described).ok());
    return described;
  };
  EXPECT_THAT(describe(10e9), testing::Not(HasSubstr("all links")));
  // TinyGpt's tied table adds a pair to the three of neighbors.
  EXPECT_THAT(describe(50e9),
              HasSubstr("would need 40 copy blocks and 400 GB/s, but the "
                        "multiprocessors for messages run 32 blocks and copy "
                        "about 250 GB/s (--cluster gpu-partitions"));
}

TEST_F(FakeExecutionTest, AGpuForOneRankAtATimeGivesTheSame) {
  const ExecutionPlan plan = HalfPlan("chimera", {4, 4, 1});
  const ExecutionRecord expected = Run(plan, 0);
  double most = 0;
  for (const RankRecord& rank : expected.steps[0].ranks) {
    most = std::max(most, rank.allocator_peak_bytes);
  }
  CudaExecutionOptions options;
  options.workspace_bytes = 1 << 20;
  options.num_candidates = 1;
  auto device = OpenCudaExecutionDevice(plan, options);
  ASSERT_TRUE(device.ok()) << device.status();
  Gpu().total_bytes = Gpu().used_bytes + static_cast<int64_t>(1.2 * most);
  const auto record = ExecuteSchedule(plan, device->get());
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(Losses(*record), Losses(expected));
  EXPECT_EQ(record->weights, expected.weights);
  EXPECT_THAT((*device)->description(), HasSubstr("copied to the host"));
  for (size_t step = 0; step < expected.steps.size(); ++step) {
    EXPECT_NEAR(record->steps[step].makespan_seconds,
                expected.steps[step].makespan_seconds, 1e-7);
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(record->steps[step].ranks[rank].allocator_peak_bytes,
                expected.steps[step].ranks[rank].allocator_peak_bytes);
    }
  }
  Gpu().total_bytes = Gpu().used_bytes + static_cast<int64_t>(0.3 * most);
  const auto none = ExecuteSchedule(plan, device->get());
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FakeExecutionTest, WorkThatNoEventOrdersIsDetected) {
  const ExecutionPlan plan = HalfPlan("gpipe", {2, 2, 1});
  CudaExecutionOptions options;
  options.num_partitions = 2;
  options.num_candidates = 1;
  auto device = OpenCudaExecutionDevice(plan, options);
  ASSERT_TRUE(device.ok()) << device.status();
  RankDevice *first = (*device)->rank(0), *second = (*device)->rank(1);
  const std::vector<double> values = {1, 2, 3, 4};
  const auto send = [&](bool behind_taking, bool before_giving_back) {
    Gpu().faults.clear();
    void* from = first->AllocateMemory(4, ElementFormat::kFp32, "a").value();
    void* into = second->AllocateMemory(4, ElementFormat::kFp32, "b").value();
    EXPECT_TRUE(first->Upload(values, ElementFormat::kFp32, from).ok());
    if (behind_taking) {
      EXPECT_TRUE(first->WaitForEvent(second->Now().value()).ok());
    }
    const RankEventPtr ready = first->Now().value();
    const auto copy = first->Send(second, {{from, into}}, 4,
                                  ElementFormat::kFp32, {1e-3, 0}, 0, ready);
    EXPECT_TRUE(copy.ok()) << copy.status();
    EXPECT_FALSE(second->HasPassed(copy->end));
    if (before_giving_back) {
      EXPECT_TRUE(first->WaitForEvent(copy->end).ok());
      EXPECT_TRUE(second->WaitForEvent(copy->end).ok());
      EXPECT_EQ(second->Download(into, 4, ElementFormat::kFp32).value(),
                values);
    }
    EXPECT_TRUE(first->FreeMemory(from).ok());
    EXPECT_TRUE(second->FreeMemory(into).ok());
    EXPECT_TRUE(first->Finish().ok());
    EXPECT_TRUE(second->Finish().ok());
    return Gpu().faults;
  };
  EXPECT_THAT(send(true, true), IsEmpty());
  EXPECT_THAT(send(false, true), testing::SizeIs(1));
  EXPECT_THAT(send(true, false), testing::SizeIs(2));
  Gpu().faults.clear();
}

TEST_F(FakeExecutionTest, ClosingGivesAllMemoryBack) {
  const ExecutionPlan plan = HalfPlan("gpipe", {2, 2, 1});
  for (const int num_partitions : {0, 2}) {
    Run(plan, num_partitions);
    EXPECT_THAT(Gpu().allocations, IsEmpty());
    EXPECT_THAT(Gpu().streams, IsEmpty());
  }
}

TEST_F(FakeExecutionTest, APlanThatTheGpuCannotRunIsRefused) {
  const ExecutionPlan plan = HalfPlan("gpipe", {4, 4, 1});
  CudaExecutionOptions options;
  options.num_partitions = 2;
  EXPECT_EQ(
      Try(plan, options).status().message(),
      "the schedule has 4 ranks, but the GPU is divided into 2 partitions");
  ExecutionRequest request = TinyRequest(Generated("gpipe", {2, 2, 1}));
  EXPECT_EQ(
      Try(PlanOf(request), {}).status().message(),
      "the plan's stages are in fp32, expected the format of this GPU, bf16");
}

class HangingTest : public FakeExecutionTest,
                    public testing::WithParamInterface<int> {};

TEST_P(HangingTest, EndsInTimeWithTheRankAndItsAction) {
  ExecutionPlan plan = HalfPlan("gpipe", {2, 2, 1});
  plan.timeout_seconds = 0.5;
  CudaExecutionOptions options;
  options.num_partitions = GetParam();
  options.num_candidates = 1;
  auto device = OpenCudaExecutionDevice(plan, options);
  ASSERT_TRUE(device.ok()) << device.status();
  ExecutionHooks hooks;
  hooks.step_done = [&](int, const StepRecord&) {
    Gpu().hangs_from = Gpu().num_kernels + 1;  // the next step's first kernel
  };
  const auto record = ExecuteSchedule(plan, device->get(), hooks);
  EXPECT_EQ(record.status().code(), absl::StatusCode::kDeadlineExceeded);
  // On partitions, either the rank that hangs or a rank that waits for it is
  // named.
  const std::string message(record.status().message());
  if (GetParam() == 0) {
    EXPECT_THAT(message, HasSubstr("rank 0, stage 0, forward: the GPU did not "
                                   "finish within 0.5 s"));
  } else {
    EXPECT_THAT(message, testing::AnyOf(
                             HasSubstr("rank 0 has not ended 0F0 (position 0)"),
                             testing::ContainsRegex("rank 1 waits .* rank 0")));
  }
  device->reset();  // does not wait either
}

INSTANTIATE_TEST_SUITE_P(Modes, HangingTest, testing::Values(0, 2));

}  // namespace weir::calibrate::fake_execution_test
