// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/gpu/emulator/emulator.h"
// The source that nvcc compiles. It needs the emulator's definitions above.
#include "calibrate/gpu/kernels/paced_copy.cu"
