// SPDX-License-Identifier: Apache-2.0
// Operations of odd sizes that every kernel must compute correctly. Shared by
// the emulated tests and the tests on a GPU.
#ifndef WEIR_TESTS_CALIBRATE_GPU_KERNELS_KERNEL_CASES_H_
#define WEIR_TESTS_CALIBRATE_GPU_KERNELS_KERNEL_CASES_H_

#include <ostream>
#include <string>
#include <vector>

#include "calibrate/execute/stage/stage_op.h"

namespace weir::calibrate {

struct KernelCase {
  StageOp op;  // views are present or absent; their buffers are not used
  ElementFormat format = ElementFormat::kBf16;
  // A gtest name such as "norm_forward_rms_3x776_bf16".
  std::string name;
};

inline void PrintTo(const KernelCase& test, std::ostream* out) {
  *out << test.name;
}

// Returns all kinds except attention.
std::vector<KernelCase> RowCases();
std::vector<KernelCase> AttentionCases();

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_GPU_KERNELS_KERNEL_CASES_H_
