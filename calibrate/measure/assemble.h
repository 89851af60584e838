// SPDX-License-Identifier: Apache-2.0
// From what was measured to a device profile.
#ifndef WEIR_CALIBRATE_MEASURE_ASSEMBLE_H_
#define WEIR_CALIBRATE_MEASURE_ASSEMBLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/device_profile.pb.h"
#include "calibrate/measure/calibration.pb.h"
#include "calibrate/measure/plan.h"

namespace weir {

// The profile that has figures of this GPU before it is measured: the preset
// for its name ("NVIDIA H200"). NotFound lists the presets.
absl::StatusOr<std::string> StartProfileOf(const std::string& gpu_name);

// "the start profile is of ..., 108 multiprocessors, this GPU has 132" where
// its datasheet figures, which stay, are another GPU's; else nothing.
std::string OtherStart(const DeviceProfile& start,
                       const Provenance& provenance);

// A measured profile: `start` with provenance, kernels, stages and memory of
// the journal, and every figure that they speak about MEASURED or FITTED with
// where it comes from:
//   memory, norm and element-wise efficiency, kernel_seconds: one fit to all
//     kernels that move bytes, copies among them;
//   attention's: a fit to fused attention of several lengths;
//   product: FitProducts at sustained clocks;
//   kernel_gap_seconds: what passes take beyond the medians of their kernels,
//     over the number of kernels, least squares of relative errors;
//   slowdowns: geometric means of beside over alone;
//   memory: the driver's steps;
//   the link of the GPU to itself: FitTransfer of NCCL's self-sends;
//   residuals and coverage of the fits.
// Of a part of a card (Calibration::num_partitions) besides: card_share with
// the median over all stages of a pass under load over the same alone, as
// measured, be it below 1: what noise there is goes either way, and a bound
// would only hide it; the part of multiprocessors, peak rates and memory that
// it has, with the context and libraries that all parts share; "1/4" behind the
// name. The peak of the memory's bandwidth stays the card's: the efficiencies,
// fitted on the part, say what the part alone gets of it. What was not measured
// stays. Workloads that drifted or did not settle are used, and named in the
// provenance's remarks; so is a start of another GPU. InvalidArgument where
// nothing of the plan was measured, the start has no rate for the plan's
// format, or is itself of a part of a card.
absl::StatusOr<DeviceProfile> AssembleProfile(const MeasuringPlan& plan,
                                              const Calibration& journal,
                                              const DeviceProfile& start);

// InvalidArgument: the start is of a part of a card.
absl::Status CheckStart(const DeviceProfile& start);

// Whether the gap between kernels is fitted to this pass: those of one block
// without embedding and head are. All others judge it.
bool FitsGap(const MeasuredStage& stage);

}  // namespace weir

#endif  // WEIR_CALIBRATE_MEASURE_ASSEMBLE_H_
