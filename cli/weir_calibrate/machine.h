// SPDX-License-Identifier: Apache-2.0
// GPU access of this build of weir-calibrate: with_cuda.cc, or without_cuda.cc
// if CUDA or NCCL was not found.
#ifndef WEIR_CLI_WEIR_CALIBRATE_MACHINE_H_
#define WEIR_CLI_WEIR_CALIBRATE_MACHINE_H_

#include "cli/weir_calibrate/calibrate_main.h"

namespace weir::cli {

Factories MachineFactories();

// Exits without returning if the driver's own exit handlers would wait for a
// device that hangs.
void ExitIfDeviceHangs(int code);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_CALIBRATE_MACHINE_H_
