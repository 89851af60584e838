// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "calibrate/measure/measurement_plan.h"
#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate {
namespace {

// Buffers and random data, the choice of an algorithm, the reference.
constexpr double kPrepareSeconds = 0.8;
constexpr double kWarmupSeconds = 0.25;
constexpr double kSampleSeconds = 2e-3;
constexpr int kNumSamples = 40;
constexpr double kMostSeconds = 3;
// NCCL self-send through the memory of one GPU.
constexpr double kSelfSendSeconds = 1e-5;

double OpSeconds(const DeviceProfile& profile, double peak_flops,
                 const StageOp& op) {
  return std::max(profile.kernel_seconds().value(),
                  KernelSeconds(profile, peak_flops, op.kernels));
}

double MoveSeconds(const DeviceProfile& profile, double bytes) {
  return bytes / (profile.memory_bytes_per_second().value() *
                  profile.memory_efficiency().value());
}

// Returns the peak of any format, since this is only a rough estimate.
double PeakOf(const DeviceProfile& profile) {
  double peak = 1;
  for (const MatrixRate& rate : profile.matrix_rates()) {
    peak = std::max(peak, rate.peak_flops().value());
  }
  return peak;
}

}  // namespace

double EstimateSeconds(const DeviceProfile& profile, const Workload& workload) {
  using Kind = Workload::Kind;
  const double launch = profile.kernel_seconds().value();
  const double peak = PeakOf(profile);
  switch (workload.kind) {
    case Kind::kEmptyKernel:
      return launch;
    case Kind::kCopy:
      return launch + MoveSeconds(profile, 2 * workload.bytes);
    case Kind::kSelfSend:
      return kSelfSendSeconds + MoveSeconds(profile, 2 * workload.bytes);
    case Kind::kOp:
    case Kind::kOpWithCopies:
    case Kind::kOpWithCollectives:
      return OpSeconds(profile, peak, OpOf(workload));
    case Kind::kPass:
      break;
  }
  double seconds = 0;
  for (const StageOp& op : workload.program->ops(workload.pass)) {
    seconds += OpSeconds(profile, peak, op);
  }
  return seconds;
}

double EstimateMeasuringSeconds(const DeviceProfile& profile,
                                const Workload& workload, int num_partitions) {
  const double launch = num_partitions * EstimateSeconds(profile, workload);
  // Every working partition has its own buffers.
  return workload.active_partitions * kPrepareSeconds +
         std::max(kWarmupSeconds, 3 * launch) +
         std::min(kNumSamples * std::max(kSampleSeconds, launch),
                  std::max(kMostSeconds, launch));
}

}  // namespace weir::calibrate
