// SPDX-License-Identifier: Apache-2.0
// mma.m16n8k16 and ldmatrix.x4 with the fragment layouts of the PTX ISA.
#ifndef WEIR_TESTS_CALIBRATE_GPU_EMULATOR_WARP_MATRIX_H_
#define WEIR_TESTS_CALIBRATE_GPU_EMULATOR_WARP_MATRIX_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/calibrate/gpu/emulator/emulator.h"

namespace weir::emulator {

template <typename Half>
void UnpackWord(uint32_t word, float* low, float* high) {
  Half pair[2];
  memcpy(static_cast<void*>(pair), &word, 4);
  *low = static_cast<float>(pair[0]);
  *high = static_cast<float>(pair[1]);
}

struct MmaLane {
  float* d;
  const uint32_t* a;
  uint32_t b[2];
};

template <typename Half>
void RunMma(void* const* lanes) {
  float a[16][16], b[8][16];  // b by columns
  for (int lane = 0; lane < 32; ++lane) {
    const auto* of = static_cast<const MmaLane*>(lanes[lane]);
    const int group = lane / 4, place = lane % 4;
    for (int i = 0; i < 4; ++i) {
      float* to = &a[group + 8 * (i % 2)][2 * place + 8 * (i / 2)];
      UnpackWord<Half>(of->a[i], to, to + 1);
    }
    for (int i = 0; i < 2; ++i) {
      float* to = &b[group][2 * place + 8 * i];
      UnpackWord<Half>(of->b[i], to, to + 1);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    float* d = static_cast<const MmaLane*>(lanes[lane])->d;
    for (int i = 0; i < 4; ++i) {
      const float* row = a[lane / 4 + 8 * (i / 2)];
      const float* column = b[2 * (lane % 4) + i % 2];
      float sum = 0;
      for (int k = 0; k < 16; ++k) sum += row[k] * column[k];
      d[i] += sum;
    }
  }
}

template <typename Half>
void Mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  MmaLane mine = {d, a, {b0, b1}};
  WarpTogether("mma", &mine, &RunMma<Half>);
}

struct LoadMatrixLane {
  uint32_t* r;
  const unsigned char* row;
  bool transposed;
};

inline void RunLoadMatrix4(void* const* lanes) {
  const auto lane_at = [lanes](int lane) {
    return static_cast<const LoadMatrixLane*>(lanes[lane]);
  };
  for (int lane = 0; lane < 32; ++lane) {
    const LoadMatrixLane* to = lane_at(lane);
    for (int i = 0; i < 4; ++i) {
      uint16_t pair[2];
      for (int j = 0; j < 2; ++j) {
        int row = lane / 4, column = 2 * (lane % 4) + j;
        if (to->transposed) std::swap(row, column);
        const int offset = 2 * column;
        memcpy(&pair[j], lane_at(8 * i + row)->row + offset, 2);
      }
      memcpy(&to->r[i], pair, 4);
    }
  }
}

inline void LoadMatrix4(uint32_t (&r)[4], const void* shared, bool transposed) {
  if (reinterpret_cast<uintptr_t>(shared) % 16 != 0) {
    Fail("ldmatrix: a row is not 16-byte aligned");
  }
  LoadMatrixLane mine = {r, static_cast<const unsigned char*>(shared),
                         transposed};
  WarpTogether("ldmatrix", &mine, &RunLoadMatrix4);
}

}  // namespace weir::emulator

#endif  // WEIR_TESTS_CALIBRATE_GPU_EMULATOR_WARP_MATRIX_H_
