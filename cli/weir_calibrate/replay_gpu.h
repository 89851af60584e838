// SPDX-License-Identifier: Apache-2.0
// The GPU of a replay: which one it is, and the profile that predicts it.
#ifndef WEIR_CLI_WEIR_CALIBRATE_REPLAY_GPU_H_
#define WEIR_CLI_WEIR_CALIBRATE_REPLAY_GPU_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/profile/provenance.pb.h"
#include "cli/weir_calibrate/calibrate_flags.h"
#include "cli/weir_calibrate/calibrate_main.h"

namespace weir::cli {

// Returns the scenario of the flags; a schedule alone suffices, as there is a
// default scenario for CPU and for GPU.
ScenarioFlags ScenarioOf(const ReplayFlags& flags);

// Returns the GPU that --memory and --multiprocessors describe, or this
// machine's. Returns Unavailable if there is none.
absl::StatusOr<Provenance> GpuOf(const ReplayFlags& flags,
                                 const Factories& factories);

// Returns true if neither the flags nor the scenario's cluster name a GPU.
// Returns the errors of ApplyOverrides.
absl::StatusOr<bool> NeedsProfile(const ScenarioFlags& flags);

// Returns the preset of the GPU, or of the most similar one. Returns the errors
// of StartProfileFor.
absl::StatusOr<std::string> PresetOf(const Provenance& gpu);

// Returns Unavailable with the message of `status` and a hint.
absl::Status UnavailableGpu(const absl::Status& status);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_CALIBRATE_REPLAY_GPU_H_
