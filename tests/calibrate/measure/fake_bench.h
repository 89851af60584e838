// SPDX-License-Identifier: Apache-2.0
// A fake bench without a GPU: times follow the formulas of a device profile,
// with the disturbances and failures of real GPUs.
#ifndef WEIR_TESTS_CALIBRATE_MEASURE_FAKE_BENCH_H_
#define WEIR_TESTS_CALIBRATE_MEASURE_FAKE_BENCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/measure/bench.h"
#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

struct FakeBenchOptions {
  DeviceProfile truth;
  ElementFormat format = ElementFormat::kBf16;
  uint64_t seed = 1;
  double noise = 0;         // standard deviation of a sample's logarithm
  double run_to_run = 0;    // the same for all samples of a workload together
  double outlier_part = 0;  // share of samples that take three times as long
  // Relative slowdown at the start of a workload, which decays as exp(-t / 60
  // ms).
  double clock_ramp = 0;
  // Added to every operation of a pass whose operations are launched one by
  // one.
  double launch_gap_seconds = 6e-7;
  // While the total busy seconds are in this range, everything takes `factor`
  // times as long.
  struct Episode {
    double from_seconds = 0, to_seconds = 0, factor = 1;
    bool power_capped = false, thermal_slowdown = false;
  };
  std::vector<Episode> episodes;
  // Workloads whose key contains one of these strings: give wrong results,
  // return an error when run, hang, do not fit in memory.
  std::vector<std::string> wrong, breaks, hangs, too_large;
  // The bench is one of `num_partitions` partitions with `part_multiprocessors`
  // multiprocessors each. `truth` is the partition's profile; its
  // partition_slowdown slows passes down.
  int num_partitions = 1, part_multiprocessors = 0;
  double breaks_after_seconds = 1e18;  // of busy time, then everything breaks
  double sleep_seconds = 0;            // real seconds of sleep in each run
};

// Returns a GPU whose name selects the start profile.
FakeBenchOptions FakeH200();

// Returns one of `num_partitions` partitions of `card`: its rates scale with
// its multiprocessors, its memory bandwidth is that of a partition without
// contention, and every pass and number of active partitions has its own
// slowdown.
FakeBenchOptions FakePart(FakeBenchOptions card, int num_partitions);

class FakeBench : public Bench {
 public:
  explicit FakeBench(FakeBenchOptions options);

  const Provenance& provenance() const override { return provenance_; }
  ElementFormat half_format() const override { return options_.format; }
  int num_partitions() const override { return options_.num_partitions; }
  int part_multiprocessors() const override {
    return options_.part_multiprocessors;
  }
  absl::StatusOr<MemorySteps> MeasureMemorySteps() override;
  absl::StatusOr<std::unique_ptr<PreparedWorkload>> Prepare(
      const Workload& workload) override;
  absl::StatusOr<MeasuredMemory> MeasureStageMemory(
      const StageProgram& program, int num_microbatches) override;

  Provenance* mutable_provenance() { return &provenance_; }
  // Keys in the order in which they were prepared.
  const std::vector<std::string>& prepared() const { return prepared_; }
  // Keys whose results were verified, in order.
  const std::vector<std::string>& verified() const { return verified_; }
  // Returns the time of an undisturbed launch.
  double TrueSeconds(const Workload& workload) const;

 private:
  friend class FakeWorkload;

  FakeBenchOptions options_;
  Provenance provenance_;
  double peak_flops_ = 0;
  double busy_seconds_ = 0;
  std::vector<std::string> prepared_, verified_;
};

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_MEASURE_FAKE_BENCH_H_
