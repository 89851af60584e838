// SPDX-License-Identifier: Apache-2.0
// Fits model parameters of streaming kernels and fused attention to
// measurements, by the formulas of calibrate/pricing/kernel_seconds.cc.
#ifndef WEIR_CALIBRATE_FIT_FIT_FIGURES_H_
#define WEIR_CALIBRATE_FIT_FIT_FIGURES_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/error_statistics.h"
#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.pb.h"
#include "models/layer_work.h"

namespace weir::calibrate {

struct StreamSample {
  StreamKind kind = StreamKind::kMemory;
  double launches = 1;
  double bytes = 0;  // read and written
  double seconds = 0;
};

struct StreamFigures {
  double launch_seconds = 0;
  double efficiency[3] = {};  // by StreamKind
};

// Returns launches x launch_seconds + bytes / (peak x efficiency).
double SecondsOf(double peak_bytes_per_second, const StreamFigures& figures,
                 const StreamSample& sample);

struct StreamFit {
  StreamFigures figures;
  ErrorStatistics errors;
};

// Fits by least squares of the logarithms; errors beyond 5 % count linearly.
// Parameters without samples keep the values of `start`, and launch_seconds
// stays near its start if all samples have one size. Returns InvalidArgument if
// there are no samples, or a size or time is not positive.
absl::StatusOr<StreamFit> FitStreams(double peak_bytes_per_second,
                                     const StreamFigures& start,
                                     absl::Span<const StreamSample> samples);

struct AttentionSample {
  double num_gemms = 2;  // more than 2: a backward pass
  double flops = 0;      // performed
  // FLOP added per key of the ramp: 2 GEMMs x heads x queries x head size.
  double flops_per_ramp_key = 0;
  double launches = 1;
  double seconds = 0;
  // Relative efficiency of heads of this size (HeadSizeEfficiency).
  double relative_efficiency = 1;
};

// Requires: the kernel is fused attention.
AttentionSample SampleOf(const models::Kernel& attention, double seconds);

struct AttentionFigures {
  // Fractions of the peak.
  double forward_efficiency = 0, backward_efficiency = 0;
  double ramp_keys = 0;
};

struct AttentionFit {
  AttentionFigures figures;
  ErrorStatistics errors;
};

// Fits launches x launch_seconds + (flops + ramp) / (peak x efficiency), with
// the efficiencies that heads of relative_efficiency 1 have. Samples of one
// length cannot separate ramp and efficiency; the ramp then stays near `start`.
// Returns the errors of FitStreams().
absl::StatusOr<AttentionFit> FitAttention(
    double peak_flops, double launch_seconds, const AttentionFigures& start,
    absl::Span<const AttentionSample> samples);

// Returns the time that FitAttention() fits.
double SecondsOf(double peak_flops, double launch_seconds,
                 const AttentionFigures& figures,
                 const AttentionSample& sample);

// Returns the values of a profile, from which a fit starts.
AttentionFigures AttentionFiguresOf(const DeviceProfile& profile);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_FIT_FIGURES_H_
