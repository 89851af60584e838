// SPDX-License-Identifier: Apache-2.0
// Runs an operation's kernel and compares what it wrote with the reference.
#ifndef WEIR_TESTS_CALIBRATE_GPU_KERNELS_KERNEL_CHECK_H_
#define WEIR_TESTS_CALIBRATE_GPU_KERNELS_KERNEL_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/gpu/kernels/kernels.h"
#include "tests/calibrate/gpu/kernels/kernel_cases.h"

namespace weir {

// Where kernels run.
class TestDevice {
 public:
  virtual ~TestDevice() = default;
  // A buffer of the device with these bytes, until the device ends. Null where
  // there is no memory.
  virtual void* Upload(const std::vector<uint8_t>& bytes) = 0;
  // What is in a buffer once all launches are done.
  virtual absl::StatusOr<std::vector<uint8_t>> Download(const void* buffer) = 0;
  // Multiprocessors to plan for.
  virtual int num_multiprocessors() const = 0;
};

struct OutputError {
  std::string output;  // "norm_forward output 1"
  // |got - expected| / |expected|, Euclidean; infinite where a NaN is left.
  double error = 0;
  double bound = 0;
};

// Formats of tensors: what OpKind's table says.
ElementFormat InputFormat(const KernelCase& test, int index);
ElementFormat OutputFormat(const KernelCase& test, int index);

// On random data, rounded to the formats before both see it; outputs begin as
// NaN. Error: of the launch or the device.
absl::StatusOr<std::vector<OutputError>> CheckKernel(const KernelCase& test,
                                                     TestDevice* device);

// Unimplemented for cudaErrorNotSupported, else Internal.
absl::Status LaunchStatus(cudaError_t error);

// Rounds to the format and back.
std::vector<uint8_t> Encode(ElementFormat format,
                            const std::vector<double>& values);
std::vector<double> Decode(ElementFormat format,
                           const std::vector<uint8_t>& bytes);
double NormwiseError(const std::vector<double>& got,
                     const std::vector<double>& expected);

}  // namespace weir

#endif  // WEIR_TESTS_CALIBRATE_GPU_KERNELS_KERNEL_CHECK_H_
