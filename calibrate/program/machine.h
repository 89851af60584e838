// SPDX-License-Identifier: Apache-2.0
// What this build of weir-calibrate reaches GPUs with: with_cuda.cc, or
// without_cuda.cc where CUDA or NCCL were not found.
#ifndef WEIR_CALIBRATE_PROGRAM_MACHINE_H_
#define WEIR_CALIBRATE_PROGRAM_MACHINE_H_

#include "calibrate/program/calibrate_main.h"

namespace weir {

Factories MachineFactories();

// Does not come back where the driver's own exit handlers would wait for a
// device that hangs.
void ExitIfDeviceHangs(int code);

}  // namespace weir

#endif  // WEIR_CALIBRATE_PROGRAM_MACHINE_H_
