// SPDX-License-Identifier: Apache-2.0
// A bench without a GPU: times follow a device profile's own formulas, with
// whatever goes wrong on real ones.
#ifndef WEIR_TESTS_CALIBRATE_MEASURE_PRETEND_BENCH_H_
#define WEIR_TESTS_CALIBRATE_MEASURE_PRETEND_BENCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/device_profile.pb.h"
#include "calibrate/measure/bench.h"

namespace weir {

struct PretendOptions {
  DeviceProfile truth;
  ElementFormat format = ElementFormat::kBf16;
  uint64_t seed = 1;
  double noise = 0;         // standard deviation of a sample's logarithm
  double run_to_run = 0;    // and of what all samples of a workload share
  double outlier_part = 0;  // of samples, three times as long
  // Slower by this part when a workload begins, e-fold in 60 ms.
  double clock_ramp = 0;
  // While so many busy seconds are behind all that ran, everything takes
  // `factor` times as long.
  struct Episode {
    double from_seconds = 0, to_seconds = 0, factor = 1;
    bool power_capped = false, thermal_slowdown = false;
  };
  std::vector<Episode> episodes;
  // Workloads whose key holds one of these: wrong results, an error when run,
  // never come back, do not fit.
  std::vector<std::string> wrong, breaks, hangs, too_large;
  // One of so many parts of the card, with so many multiprocessors, of which
  // `truth` is the profile: its card_share slows passes down.
  int num_partitions = 1, part_multiprocessors = 0;
  double breaks_after_seconds = 1e18;  // everything, when so many were busy
  double sleep_seconds = 0;            // really, each time something runs
};

// A GPU of the name that the start profile is found by.
PretendOptions PretendH200();

// One of so many parts of it: its rates by its multiprocessors, what it alone
// gets of the memory, and factors of its own for every pass and number of
// parts.
PretendOptions PretendPart(PretendOptions card, int num_partitions);

class PretendBench : public Bench {
 public:
  explicit PretendBench(PretendOptions options);

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
  // Seconds of a launch without anything that disturbs it.
  double TrueSeconds(const Workload& workload) const;

 private:
  friend class PretendWorkload;

  PretendOptions options_;
  Provenance provenance_;
  double peak_flops_ = 0;
  double busy_seconds_ = 0;
  std::vector<std::string> prepared_;
};

}  // namespace weir

#endif  // WEIR_TESTS_CALIBRATE_MEASURE_PRETEND_BENCH_H_
