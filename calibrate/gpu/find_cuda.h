// SPDX-License-Identifier: Apache-2.0
// Detects the components of this machine that calibration needs.
#ifndef WEIR_CALIBRATE_GPU_FIND_CUDA_H_
#define WEIR_CALIBRATE_GPU_FIND_CUDA_H_

#include <vector>

#include "calibrate/measure/machine_finding.h"

namespace weir::calibrate {

// Returns driver, GPU, NVML and libraries, each with a remedy if it is missing.
// Does not allocate GPU resources.
std::vector<MachineFinding> FindCuda(int device);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_FIND_CUDA_H_
