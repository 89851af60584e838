// SPDX-License-Identifier: Apache-2.0
// Runs the cases of the emulated tests on a device.
#include "calibrate/gpu/kernels/kernels.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/calibrate/gpu/kernels/kernel_cases.h"
#include "tests/calibrate/gpu/kernels/kernel_check.h"
#include "tests/calibrate/gpu/kernels/other_checks.h"

namespace weir::calibrate::kernels_test {

using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

// Buffers lie between bands of NaN, which must be unchanged at the end.
class CudaDevice : public TestDevice {
 public:
  ~CudaDevice() override {
    for (const auto& [data, size] : buffers_) {
      (void)cudaFree(static_cast<uint8_t*>(data) - kBand);
    }
  }

  void* Upload(const std::vector<uint8_t>& bytes) override {
    std::vector<uint8_t> all(bytes.size() + 2 * kBand, kPoison);
    std::copy(bytes.begin(), bytes.end(), all.begin() + kBand);
    void* memory = nullptr;
    if (cudaMalloc(&memory, all.size()) != cudaSuccess) return nullptr;
    void* data = static_cast<uint8_t*>(memory) + kBand;
    buffers_[data] = bytes.size();
    const cudaError_t error =
        cudaMemcpy(memory, all.data(), all.size(), cudaMemcpyHostToDevice);
    return error == cudaSuccess ? data : nullptr;
  }

  absl::StatusOr<std::vector<uint8_t>> Download(const void* buffer) override {
    cudaError_t error = cudaDeviceSynchronize();
    std::vector<uint8_t> all(buffers_[const_cast<void*>(buffer)] + 2 * kBand);
    if (error == cudaSuccess) {
      error =
          cudaMemcpy(all.data(), static_cast<const uint8_t*>(buffer) - kBand,
                     all.size(), cudaMemcpyDeviceToHost);
    }
    if (error != cudaSuccess) {
      return absl::InternalError(cudaGetErrorString(error));
    }
    const auto poisoned = [](uint8_t byte) { return byte == kPoison; };
    if (!std::all_of(all.begin(), all.begin() + kBand, poisoned) ||
        !std::all_of(all.end() - kBand, all.end(), poisoned)) {
      return absl::InternalError("written before or after a buffer");
    }
    return std::vector<uint8_t>(all.begin() + kBand, all.end() - kBand);
  }

  int num_multiprocessors() const override {
    int device = 0, num = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&num, cudaDevAttrMultiProcessorCount, device) !=
            cudaSuccess) {
      return 1;
    }
    return num;
  }

 private:
  static constexpr int64_t kBand = 256;
  static constexpr uint8_t kPoison = 0xFF;
  std::map<void*, size_t> buffers_;
};

void ExpectWithinBounds(
    const absl::StatusOr<std::vector<OutputError>>& errors) {
  if (absl::IsUnimplemented(errors.status())) {
    GTEST_SKIP() << errors.status().message();
  }
  ASSERT_TRUE(errors.ok()) << errors.status();
  for (const OutputError& error : *errors) {
    EXPECT_LE(error.error, error.bound) << error.output;
    printf("%s: %.2e\n", error.output.c_str(), error.error);
  }
}

template <typename Case>
class DeviceTest : public TestWithParam<Case> {
 protected:
  void SetUp() override {
    int num_devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&num_devices);
    if (error != cudaSuccess || num_devices == 0) {
      GTEST_SKIP() << "no CUDA device: " << cudaGetErrorString(error);
    }
  }
};

class KernelTest : public DeviceTest<KernelCase> {};

TEST_P(KernelTest, ComputesWhatTheReferenceDoes) {
  CudaDevice device;
  ExpectWithinBounds(CheckKernel(GetParam(), &device));
}

class OtherTest : public DeviceTest<OtherCheck> {};

TEST_P(OtherTest, DoesWhatItSays) {
  CudaDevice device;
  ExpectWithinBounds(GetParam().run(&device));
}

template <typename Case>
std::string CaseName(const TestParamInfo<Case>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Rows, KernelTest, ValuesIn(RowCases()),
                         CaseName<KernelCase>);
INSTANTIATE_TEST_SUITE_P(Attention, KernelTest, ValuesIn(AttentionCases()),
                         CaseName<KernelCase>);
INSTANTIATE_TEST_SUITE_P(Other, OtherTest, ValuesIn(OtherChecks()),
                         CaseName<OtherCheck>);
INSTANTIATE_TEST_SUITE_P(Training, OtherTest, ValuesIn(TrainingChecks()),
                         CaseName<OtherCheck>);

}  // namespace weir::calibrate::kernels_test
