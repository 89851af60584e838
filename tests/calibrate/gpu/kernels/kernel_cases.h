// SPDX-License-Identifier: Apache-2.0
// Operations that every kernel must do right, of odd sizes: what the emulated
// tests and the tests on a GPU share.
#ifndef WEIR_TESTS_CALIBRATE_GPU_KERNELS_KERNEL_CASES_H_
#define WEIR_TESTS_CALIBRATE_GPU_KERNELS_KERNEL_CASES_H_

#include <ostream>
#include <string>
#include <vector>

#include "calibrate/stage/stage_op.h"

namespace weir {

struct KernelCase {
  StageOp op;  // views: present or not; their buffers mean nothing
  ElementFormat format = ElementFormat::kBf16;
  // A gtest name: "norm_forward_rms_3x776_bf16".
  std::string name;
};

inline void PrintTo(const KernelCase& test, std::ostream* out) {
  *out << test.name;
}

// All kinds but attention.
std::vector<KernelCase> RowCases();
std::vector<KernelCase> AttentionCases();

}  // namespace weir

#endif  // WEIR_TESTS_CALIBRATE_GPU_KERNELS_KERNEL_CASES_H_
