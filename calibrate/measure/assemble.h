// SPDX-License-Identifier: Apache-2.0
// Assembles a device profile from measurements.
#ifndef WEIR_CALIBRATE_MEASURE_ASSEMBLE_H_
#define WEIR_CALIBRATE_MEASURE_ASSEMBLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/measure/calibration.pb.h"
#include "calibrate/measure/measurement_plan.h"
#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

// Returns the preset whose model parameters this GPU starts from, by the name
// that the driver reports (DeviceProfile::gpu_names). Returns NotFound, with
// the presets, if there is none.
absl::StatusOr<std::string> StartProfileOf(const std::string& gpu_name);

// Returns the preset of the most similar GPU, by memory and multiprocessors (0:
// not known), that has a peak rate for the format. Returns NotFound if none
// has.
absl::StatusOr<std::string> ClosestProfile(double memory_bytes,
                                           int num_multiprocessors,
                                           absl::string_view format);

// Returns StartProfileOf() the GPU; if there is none, ClosestProfile(), and
// says so in `remark`. Returns the errors of ClosestProfile.
absl::StatusOr<std::string> StartProfileFor(const Provenance& gpu,
                                            absl::string_view format,
                                            std::string* remark);

// Returns "the start profile is for ..., 108 multiprocessors, this GPU has 132"
// if the datasheet values of `start`, which are kept, are those of another GPU;
// otherwise an empty string.
std::string OtherStart(const DeviceProfile& start,
                       const Provenance& provenance);

// Returns a measured profile: `start` with the journal's provenance, kernels,
// stages and memory. Every parameter that the measurements determine becomes
// MEASURED or FITTED, with its source:
//   memory, norm and element-wise efficiency, kernel_seconds: one fit to all
//     kernels that move bytes, including copies;
//   attention parameters, for replays: a fit to fused attention of several
//     lengths. For frameworks, which run other kernels, they keep those of the
//     start, and no attention kernel is added (DeviceProfile::Purpose);
//   gemm: FitGemms at the clocks of the measurements;
//   gemm.sustained_rate: the rate of a large GEMM after 20 s of it over its
//   rate
//     at first (MeasuringPlan::sustained);
//   kernel_gap_seconds: time of passes beyond the medians of their kernels,
//     per kernel, by least squares of relative errors; for replays, of passes
//     launched one operation at a time;
//   slowdowns: geometric means of overlapped over uncontended time;
//   memory: the steps reported by the driver;
//   the link of the GPU to itself: FitTransfer of NCCL's self-sends;
//   residuals and coverage of the fits.
//
// For a GPU partition (Calibration::num_partitions) the profile also has
// partition_slowdown, with the median over all stages of a pass under load over
// the same pass alone. The median is not clamped at 1, since noise has either
// sign. The profile gets the partition's share of multiprocessors, peak rates
// and memory, while all partitions share the context and libraries, and "1/4"
// is appended to its name. The peak memory bandwidth stays that of the whole
// GPU: the fitted efficiencies are the fractions of it that one partition
// reaches alone.
//
// Parameters that were not measured keep their values. Workloads that drifted
// or did not settle are used, and listed in the provenance's remarks, as is a
// start of another GPU. Returns InvalidArgument if nothing of the plan was
// measured, the start has no rate for the plan's format, or the start is of a
// GPU partition.
absl::StatusOr<DeviceProfile> AssembleProfile(const MeasuringPlan& plan,
                                              const Calibration& journal,
                                              const DeviceProfile& start);

// Returns InvalidArgument if the start is of a GPU partition.
absl::Status CheckStart(const DeviceProfile& start);

// Returns the median seconds of a pass as its profile predicts it: launched one
// operation at a time if that was measured, otherwise from a graph.
double PassSeconds(const MeasuredStage& stage);

// Returns true if the gap between kernels is fitted to this pass: one block
// without embedding and head. All other passes validate the fit.
bool FitsGap(const MeasuredStage& stage);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_MEASURE_ASSEMBLE_H_
