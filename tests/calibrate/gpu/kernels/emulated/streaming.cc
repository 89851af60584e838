// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/gpu/emulator/emulator.h"
#include "tests/calibrate/gpu/emulator/warp_matrix.h"
// The source that nvcc compiles. It needs the emulator's definitions above.
#include "calibrate/gpu/kernels/streaming.cu"
