// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/gpu/emulator/emulator.h"
// Behind the emulator: the source that nvcc compiles.
#include "calibrate/gpu/kernels/paced_copy.cu"
