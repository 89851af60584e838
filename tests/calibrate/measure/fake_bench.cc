// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/measure/fake_bench.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "calibrate/measure/measurement_plan.h"
#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/partition_slowdown.h"

namespace weir::calibrate {
namespace {

constexpr double kRampSeconds = 0.06;
constexpr double kBoostSeconds = 0.5;
constexpr double kRightError = 3e-3;
constexpr double kPoolGranule = 2 << 20;

bool Matches(const std::string& key, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (absl::StrContains(key, part)) return true;
  }
  return false;
}

// Returns the same hash on every machine, so the noise of a workload does not
// depend on its position in a run.
uint64_t HashOf(const std::string& text, uint64_t seed) {
  uint64_t hash = 14695981039346656037U ^ seed;
  for (unsigned char letter : text) hash = (hash ^ letter) * 1099511628211U;
  return hash;
}

}  // namespace

class FakeWorkload : public PreparedWorkload {
 public:
  FakeWorkload(const Workload& workload, FakeBench* bench)
      : key_(workload.key),
        seconds_(bench->TrueSeconds(workload)),
        bench_(bench),
        is_sustained_(absl::StartsWith(key_, "sustained ")),
        random_(HashOf(key_, bench->options_.seed)) {
    std::normal_distribution<double> normal;
    seconds_ *= std::exp(bench->options_.run_to_run * normal(random_));
  }

  absl::StatusOr<double> Verify() override {
    bench_->verified_.push_back(key_);
    if (!Matches(key_, bench_->options_.wrong)) return kRightError;
    return absl::StrContains(key_, "norm")
               ? std::numeric_limits<double>::quiet_NaN()
               : 0.37;
  }

  absl::StatusOr<LaunchBatch> Run(int num_launches) override {
    const FakeBenchOptions& options = bench_->options_;
    if (Matches(key_, options.breaks) ||
        bench_->busy_seconds_ > options.breaks_after_seconds) {
      return absl::InternalError("an illegal memory access was encountered");
    }
    while (Matches(key_, options.hangs)) pause();
    if (options.sleep_seconds > 0) {
      std::this_thread::sleep_for(
          std::chrono::duration<double>(options.sleep_seconds));
    }
    LaunchBatch batch;
    batch.seconds = seconds_;
    batch.state = {1.98e9, 650, 55, false, false};
    Disturb(&batch);
    batch.host_launch_seconds = 3e-6;
    run_seconds_ += batch.seconds * num_launches;
    if (is_sustained_) return batch;  // episodes count other work only
    bench_->busy_seconds_ += batch.seconds * num_launches;
    return batch;
  }

  std::string algorithm() const override { return "fake"; }

 private:
  void Disturb(LaunchBatch* batch) {
    const FakeBenchOptions& options = bench_->options_;
    batch->seconds *=
        1 + options.clock_ramp * std::exp(-run_seconds_ / kRampSeconds);
    // A cool GPU: all other work is at sustained clocks.
    if (is_sustained_ && run_seconds_ < kBoostSeconds) {
      batch->seconds *= options.truth.gemm().sustained_rate().value();
    }
    for (const auto& episode : options.episodes) {
      if (bench_->busy_seconds_ < episode.from_seconds ||
          bench_->busy_seconds_ >= episode.to_seconds) {
        continue;
      }
      batch->seconds *= episode.factor;
      batch->state.multiprocessor_hertz /= episode.factor;
      batch->state.power_capped = episode.power_capped;
      batch->state.thermal_slowdown = episode.thermal_slowdown;
    }
    std::normal_distribution<double> normal;
    if (options.noise > 0) {
      batch->seconds *= std::exp(options.noise * normal(random_));
    }
    std::uniform_real_distribution<double> uniform;
    if (uniform(random_) < options.outlier_part) batch->seconds *= 3;
  }

  std::string key_;
  double seconds_;
  FakeBench* bench_;
  bool is_sustained_;
  std::mt19937_64 random_;
  double run_seconds_ = 0;
};

FakeBenchOptions FakeH200() {
  FakeBenchOptions options;
  options.truth = *LoadDeviceProfile("h200-sxm");
  options.truth.mutable_copy_slowdown()->set_value(1.1);
  options.truth.mutable_collective_slowdown()->set_value(1.05);
  options.truth.mutable_kernel_gap_seconds()->set_value(4e-7);
  return options;
}

FakeBenchOptions FakePart(FakeBenchOptions card, int num_partitions) {
  FakeBenchOptions part = std::move(card);
  DeviceProfile& truth = part.truth;
  const double of_card = truth.num_multiprocessors().value();
  part.num_partitions = num_partitions;
  part.part_multiprocessors =
      static_cast<int>(of_card / num_partitions / 8) * 8;
  truth.mutable_num_multiprocessors()->set_value(part.part_multiprocessors);
  for (MatrixRate& rate : *truth.mutable_matrix_rates()) {
    Figure* peak = rate.mutable_peak_flops();
    peak->set_value(peak->value() * part.part_multiprocessors / of_card);
  }
  truth.mutable_memory_efficiency()->set_value(1.6 / num_partitions);
  truth.mutable_norm_efficiency()->set_value(1.2 / num_partitions);
  truth.mutable_elementwise_efficiency()->set_value(1.4 / num_partitions);
  truth.mutable_gemm()->mutable_memory_rate()->set_value(1.7 / num_partitions);
  PartitionSlowdown* share = truth.mutable_partition_slowdown();
  share->set_num_partitions(num_partitions);
  share->set_multiprocessors(part.part_multiprocessors);
  double each = 0.02;
  for (const absl::string_view pass : kSharedPasses) {
    each += 0.01;
    for (int k = 2; k <= num_partitions; ++k) {
      PartitionSlowdown::Slowdown* slowdown = share->add_slowdowns();
      slowdown->set_pass(std::string(pass));
      slowdown->set_active(k);
      slowdown->set_factor(1 + each * (k - 1) * (k - 1));
    }
  }
  return part;
}

FakeBench::FakeBench(FakeBenchOptions options) : options_(std::move(options)) {
  peak_flops_ = *PeakFlops(options_.truth, Name(options_.format));
  provenance_.set_gpu_name("NVIDIA H200");
  provenance_.set_gpu_hash("0123456789abcdef");
  provenance_.set_num_multiprocessors(132);
  provenance_.set_memory_bytes(150109106995);
  provenance_.mutable_software()->set_driver("580.95.05");
  provenance_.mutable_software()->set_cuda("13.0");
  provenance_.mutable_software()->set_cublas("13.1.0");
  provenance_.mutable_software()->set_nccl("2.28.9");
  provenance_.set_clocks("default");
  provenance_.set_num_ranks(1);
  provenance_.set_num_nodes(1);
}

absl::StatusOr<MemorySteps> FakeBench::MeasureMemorySteps() {
  return MemorySteps{5.2e8, 1.1e8, 32 << 20, 2e8, 5e7};
}

absl::StatusOr<std::unique_ptr<PreparedWorkload>> FakeBench::Prepare(
    const Workload& workload) {
  prepared_.push_back(workload.key);
  if (Matches(workload.key, options_.too_large)) {
    return absl::ResourceExhaustedError(
        "needs 200 GiB of device memory, 139 GiB are free");
  }
  return std::make_unique<FakeWorkload>(workload, this);
}

absl::StatusOr<MeasuredMemory> FakeBench::MeasureStageMemory(
    const StageProgram& program, int num_microbatches) {
  const double peak = PredictedPeakBytes(program, num_microbatches);
  MeasuredMemory memory;
  memory.set_used_high_bytes(peak);
  memory.set_reserved_high_bytes(std::ceil(peak / kPoolGranule) * kPoolGranule);
  return memory;
}

double FakeBench::TrueSeconds(const Workload& workload) const {
  using Kind = Workload::Kind;
  const DeviceProfile& truth = options_.truth;
  const double launch = truth.kernel_seconds().value();
  const double move = 1 / (truth.memory_bytes_per_second().value() *
                           truth.memory_efficiency().value());
  const auto seconds_of = [&](const StageOp& op) {
    return op.kernels.empty() ? launch
                              : KernelSeconds(truth, peak_flops_, op.kernels);
  };
  switch (workload.kind) {
    case Kind::kOp:
      return seconds_of(OpOf(workload));
    case Kind::kOpWithCopies:
      return seconds_of(OpOf(workload)) * truth.copy_slowdown().value();
    case Kind::kOpWithCollectives:
      return seconds_of(OpOf(workload)) * truth.collective_slowdown().value();
    case Kind::kEmptyKernel:
      return launch;
    case Kind::kCopy:
      return launch + 2 * workload.bytes * move;
    case Kind::kSelfSend:
      return 8e-6 + 2 * workload.bytes * move;
    case Kind::kPass:
      break;
  }
  double seconds = 0;
  for (const StageOp& op : workload.program->ops(workload.pass)) {
    seconds += seconds_of(op) + truth.kernel_gap_seconds().value() +
               (workload.by_stream ? options_.launch_gap_seconds : 0);
  }
  if (workload.active_partitions > 1) {
    seconds *=
        SharingCurve(truth.partition_slowdown(),
                     Name(workload.pass))[workload.active_partitions - 1];
  }
  return seconds;
}

}  // namespace weir::calibrate
