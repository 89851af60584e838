// SPDX-License-Identifier: Apache-2.0
// Models that the stage kernels do not support.
#ifndef WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_LIMITS_H_
#define WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_LIMITS_H_

#include "absl/status/status.h"
#include "calibrate/execute/stage/stage_program.h"

namespace weir::calibrate {

// Returns InvalidArgument that lists everything unsupported at once.
absl::Status CheckStage(const Model& model, const StageSpec& spec);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_LIMITS_H_
