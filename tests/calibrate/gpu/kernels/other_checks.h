// SPDX-License-Identifier: Apache-2.0
// Checks of the kernels that are not operations of a stage: softmax of unfused
// attention, random data, copies.
#ifndef WEIR_TESTS_CALIBRATE_GPU_KERNELS_OTHER_CHECKS_H_
#define WEIR_TESTS_CALIBRATE_GPU_KERNELS_OTHER_CHECKS_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/calibrate/gpu/kernels/kernel_check.h"

namespace weir::calibrate {

struct OtherCheck {
  std::string name;  // a gtest name
  absl::StatusOr<std::vector<OutputError>> (*run)(TestDevice* device);
};

inline void PrintTo(const OtherCheck& check, std::ostream* out) {
  *out << check.name;
}

std::vector<OtherCheck> OtherChecks();
// Returns the checks of training_kernels.h.
std::vector<OtherCheck> TrainingChecks();

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_GPU_KERNELS_OTHER_CHECKS_H_
