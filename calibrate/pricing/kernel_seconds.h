// SPDX-License-Identifier: Apache-2.0
// Predicts kernel times from the parameters of a device profile.
#ifndef WEIR_CALIBRATE_PRICING_KERNEL_SECONDS_H_
#define WEIR_CALIBRATE_PRICING_KERNEL_SECONDS_H_

#include <vector>

#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/profile/device_profile.pb.h"
#include "models/layer_work.h"

namespace weir::calibrate {

// Returns the GEMM shape for gemm_seconds.h. Requires: the kernel is a GEMM.
GemmSize ShapeOf(const models::Kernel& kernel);

// The efficiency that applies to the memory traffic of a kernel.
enum class StreamKind { kMemory, kNorm, kElementwise };
StreamKind StreamKindOf(models::KernelPart part);

// Returns the efficiency of fused attention with heads of this size, relative
// to attention_efficiency.
double HeadSizeEfficiency(const DeviceProfile& profile, double head_size);

// Returns the time of one kernel in a training step as predicted from the model
// parameters: GEMMs by gemm_seconds.h, attention by its FLOP and efficiency,
// others as a fixed cost plus the larger of arithmetic and memory traffic.
// Measured times are in kernel_prices.h. Requires: peak_flops came from
// PeakFlops; the profile is valid.
double KernelSeconds(const DeviceProfile& profile, double peak_flops,
                     const models::Kernel& kernel);

// The same for kernels that run one after another.
double KernelSeconds(const DeviceProfile& profile, double peak_flops,
                     const std::vector<models::Kernel>& kernels);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PRICING_KERNEL_SECONDS_H_
