// SPDX-License-Identifier: Apache-2.0
// Runs an operation's kernel and compares its output with the reference.
#ifndef WEIR_TESTS_CALIBRATE_GPU_KERNELS_KERNEL_CHECK_H_
#define WEIR_TESTS_CALIBRATE_GPU_KERNELS_KERNEL_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/gpu/kernels/kernels.h"
#include "tests/calibrate/gpu/kernels/kernel_cases.h"

namespace weir::calibrate {

// A device that runs kernels.
class TestDevice {
 public:
  virtual ~TestDevice() = default;
  // Returns a device buffer with these bytes, which lives as long as the
  // device. Returns null if there is not enough memory.
  virtual void* Upload(const std::vector<uint8_t>& bytes) = 0;
  // Returns the contents of a buffer once all launches are done.
  virtual absl::StatusOr<std::vector<uint8_t>> Download(const void* buffer) = 0;
  // Returns the number of multiprocessors to plan for.
  virtual int num_multiprocessors() const = 0;
};

struct OutputError {
  std::string output;  // such as "norm_forward output 1"
  // |got - expected| / |expected| (Euclidean); infinite if a NaN is left.
  double error = 0;
  double bound = 0;
};

// Return the formats of tensors according to the table of OpKind.
ElementFormat InputFormat(const KernelCase& test, int index);
ElementFormat OutputFormat(const KernelCase& test, int index);

// Runs the kernel on random data that is rounded to the formats beforehand.
// Outputs start as NaN. Returns an error if the launch or the device fails.
absl::StatusOr<std::vector<OutputError>> CheckKernel(const KernelCase& test,
                                                     TestDevice* device);

// Returns Unimplemented for cudaErrorNotSupported, Internal for other errors.
absl::Status LaunchStatus(cudaError_t error);

// Rounds to the format and back.
std::vector<uint8_t> Encode(ElementFormat format,
                            const std::vector<double>& values);
std::vector<double> Decode(ElementFormat format,
                           const std::vector<uint8_t>& bytes);
double NormwiseError(const std::vector<double>& got,
                     const std::vector<double>& expected);

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_GPU_KERNELS_KERNEL_CHECK_H_
