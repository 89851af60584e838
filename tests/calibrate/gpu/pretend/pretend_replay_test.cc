// SPDX-License-Identifier: Apache-2.0
// Replays on a pretended GPU, its ranks in turn and at the same time, against
// the host in double precision.
#include <gmock/gmock.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "calibrate/gpu/host/difference.h"
#include "calibrate/gpu/replay_device.h"
#include "calibrate/gpu/watchdog.h"
#include "calibrate/replay/host_device.h"
#include "calibrate/replay/replay.h"
#include "calibrate/replay/training.h"
#include "tests/calibrate/gpu/pretend/pretend.h"
#include "tests/calibrate/replay/tiny_replay.h"

namespace weir {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Each value is rounded to 2^-9; weights are compared by what training has
// changed, which is made of hundreds of them.
constexpr double kLosses = 1e-2, kChange = 8e-2;

ReplayPlan HalfPlan(const std::string& name, const ScheduleSpec& spec,
                    bool llama = false) {
  ReplayRequest request = TinyRequest(Generated(name, spec), llama);
  request.spec.format = ElementFormat::kBf16;
  request.num_steps = request.schedule.flush ? 2 : 1;
  request.link = {.latency_seconds = 1e-5, .bytes_per_second = 1e9};
  ReplayPlan plan = PlanOf(request);
  plan.timeout_seconds = 20;
  return plan;
}

ReplayPlan OneStage(const ReplayPlan& plan) {
  const bool llama = !plan.model.transformer().tied_embeddings();
  ReplayRequest request = TinyRequest(
      Generated("gpipe",
                {.num_ranks = 1,
                 .num_microbatches = plan.schedule.num_microbatches}),
      llama);
  request.model = plan.model;
  request.spec = plan.spec;
  request.num_steps = plan.num_steps;
  return PlanOf(request);
}

std::vector<double> Joined(const std::vector<std::vector<double>>& parts) {
  std::vector<double> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<double> Losses(const ReplayRecord& record) {
  std::vector<double> losses;
  for (const StepRecord& step : record.steps) {
    losses.insert(losses.end(), step.losses.begin(), step.losses.end());
  }
  return losses;
}

double Differ(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  Difference difference;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference.Add(a[i], b[i]);
  }
  return difference.relative();
}

// By what training has changed.
double ChangesDiffer(const ReplayPlan& plan, const ReplayRecord& a,
                     const ReplayRecord& b) {
  std::vector<double> of_a = Joined(a.weights), of_b = Joined(b.weights);
  std::vector<std::vector<double>> parts;
  for (int stage = 0; stage < plan.schedule.num_stages; ++stage) {
    parts.push_back(InitialWeights(plan, plan.first_layer[stage],
                                   plan.first_layer[stage + 1]));
  }
  const std::vector<double> initial = Joined(parts);
  for (size_t i = 0; i < initial.size(); ++i) {
    of_a[i] -= initial[i];
    of_b[i] -= initial[i];
  }
  return Differ(of_a, of_b);
}

class PretendReplayTest : public testing::Test {
 protected:
  void SetUp() override { Gpu() = Pretended(); }
  void TearDown() override { EXPECT_THAT(Gpu().faults, IsEmpty()); }

  static absl::StatusOr<ReplayRecord> Try(const ReplayPlan& plan,
                                          CudaReplayOptions options,
                                          std::string* described = nullptr) {
    options.workspace_bytes = 1 << 20;
    options.num_candidates = 1;
    options.nvml = FAKE_NVML;
    auto device = OpenCudaReplayDevice(plan, options);
    if (!device.ok()) return device.status();
    auto record = RunReplay(plan, device->get());
    if (described != nullptr) *described = (*device)->description();
    return record;
  }
  static ReplayRecord Run(const ReplayPlan& plan, int num_partitions) {
    CudaReplayOptions options;
    options.num_partitions = num_partitions;
    auto record = Try(plan, options);
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? *std::move(record) : ReplayRecord();
  }
  static ReplayRecord OnHost(const ReplayPlan& plan) {
    const auto host = MakeHostDevice(plan, {.concurrent = false});
    auto record = RunReplay(plan, host.get());
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? *std::move(record) : ReplayRecord();
  }
};

struct Kind {
  std::string name;
  ScheduleSpec spec;
  bool llama = false;
  bool flush = true;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class KindTest : public PretendReplayTest,
                 public testing::WithParamInterface<Kind> {};

TEST_P(KindTest, TrainsAsTheHostInTurnAndAtTheSameTime) {
  const Kind& kind = GetParam();
  const ReplayPlan plan = HalfPlan(kind.name, kind.spec, kind.llama);
  const ReplayRecord host = OnHost(plan);
  const ReplayRecord serial = Run(plan, 0);
  EXPECT_LE(Differ(Losses(serial), Losses(host)), kLosses);
  EXPECT_LE(ChangesDiffer(plan, serial, host), kChange);
  EXPECT_GT(ChangesDiffer(plan, serial, host), 1e-5);  // it is in 16 bits
  EXPECT_TRUE(CheckVersions(plan, serial).ok());
  const ReplayRecord parts = Run(plan, kind.spec.num_ranks <= 2 ? 2 : 4);
  EXPECT_TRUE(CheckVersions(plan, parts).ok());
  // The same work in another order of ranks: to the last bit.
  EXPECT_EQ(Losses(parts), Losses(serial));
  EXPECT_EQ(parts.weights, serial.weights);
  if (!kind.flush) return;
  const ReplayPlan one = OneStage(plan);
  const ReplayRecord alone = Run(one, 0);
  EXPECT_LE(Differ(Losses(serial), Losses(alone)), kLosses);
}

INSTANTIATE_TEST_SUITE_P(
    All, KindTest,
    testing::Values(
        Kind{"gpipe", {4, 4, 1}, false}, Kind{"1f1b", {4, 8, 1}, true},
        Kind{"interleaved-1f1b", {2, 4, 2}, true},
        Kind{"zb-h1", {4, 4, 1}, false}, Kind{"zb-v", {2, 4, 2}, true},
        Kind{"pipedream", {3, 3, 1, 3}, true, false},
        Kind{"2bw", {4, 4, 1, 4}, false, false},
        Kind{"chimera", {4, 4, 1}, false}),
    [](const auto& info) {
      std::string name = info.param.name;
      for (char& c : name) c = std::isalnum(c) ? c : '_';
      return name;
    });

}  // namespace
}  // namespace weir
