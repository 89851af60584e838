// SPDX-License-Identifier: Apache-2.0
// What this machine has of what calibrating needs.
#ifndef WEIR_CALIBRATE_PROGRAM_FIND_CUDA_H_
#define WEIR_CALIBRATE_PROGRAM_FIND_CUDA_H_

#include <vector>

#include "calibrate/program/calibrate_main.h"

namespace weir {

// Driver, GPU, NVML and the libraries, each with what to do where it is
// missing. Takes nothing of the GPU.
std::vector<MachineFinding> FindCuda(int device);

}  // namespace weir

#endif  // WEIR_CALIBRATE_PROGRAM_FIND_CUDA_H_
