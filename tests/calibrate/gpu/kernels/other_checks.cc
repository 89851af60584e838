// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/gpu/kernels/other_checks.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace weir::calibrate {
namespace {

using Errors = absl::StatusOr<std::vector<OutputError>>;
constexpr ElementFormat kFormat = ElementFormat::kBf16;
constexpr double kBound = 2.5e-3;  // for bf16, as in kernel_check.cc
constexpr int64_t kNum = 100003;   // the last thread has fewer elements

Launch LaunchOn(const TestDevice& device) {
  Launch launch;
  launch.format = kFormat;
  launch.num_multiprocessors = device.num_multiprocessors();
  return launch;
}

std::vector<double> Rounded(int64_t num, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(num);
  for (double& x : values) x = normal(random);
  return Decode(kFormat, Encode(kFormat, values));
}

Errors Compare(const std::string& name, TestDevice* device, const void* buffer,
               cudaError_t error, const std::vector<double>& expected) {
  if (error != cudaSuccess) return LaunchStatus(error);
  auto bytes = device->Download(buffer);
  if (!bytes.ok()) return bytes.status();
  return std::vector<OutputError>{
      {name, NormwiseError(Decode(kFormat, *bytes), expected), kBound}};
}

Errors CheckSoftmax(TestDevice* device, int64_t rows, int64_t columns,
                    bool causal) {
  constexpr float kScale = 0.7F;
  std::vector<double> values = Rounded(rows * columns, columns);
  void* scores = device->Upload(Encode(kFormat, values));
  const cudaError_t error =
      LaunchSoftmax(LaunchOn(*device), scores, rows, columns, kScale, causal);
  for (int64_t i = 0; i < rows; ++i) {
    double* row = values.data() + i * columns;
    const int64_t seen = causal ? i % columns + 1 : columns;
    double sum = 0;
    for (int64_t j = 0; j < seen; ++j) {
      row[j] = std::exp(double{kScale} * row[j]);
      sum += row[j];
    }
    for (int64_t j = 0; j < columns; ++j) row[j] = j < seen ? row[j] / sum : 0;
  }
  return Compare("softmax", device, scores, error, values);
}

Errors CausalSoftmax(TestDevice* device) {
  constexpr int64_t kTokens = 136;
  return CheckSoftmax(device, 2 * kTokens, kTokens, true);
}
Errors FullSoftmax(TestDevice* device) {
  return CheckSoftmax(device, 3, 4104, false);
}

Errors SoftmaxGradient(TestDevice* device) {
  constexpr int64_t kRows = 5, kColumns = 2056;
  constexpr float kScale = 0.125F;
  std::vector<double> p = Rounded(kRows * kColumns, 1);
  std::vector<double> d = Rounded(kRows * kColumns, 2);
  void* probabilities = device->Upload(Encode(kFormat, p));
  void* gradient = device->Upload(Encode(kFormat, d));
  const cudaError_t error = LaunchSoftmaxGradient(
      LaunchOn(*device), probabilities, gradient, kRows, kColumns, kScale);
  for (int64_t i = 0; i < kRows; ++i) {
    double sum = 0;
    for (int64_t j = i * kColumns; j < (i + 1) * kColumns; ++j) {
      sum += p[j] * d[j];
    }
    for (int64_t j = i * kColumns; j < (i + 1) * kColumns; ++j) {
      d[j] = p[j] * (d[j] - sum) * double{kScale};
    }
  }
  return Compare("softmax gradient", device, gradient, error, d);
}

// Compares the mean, the deviation and the share beyond 2 deviations with their
// expected values, within 5 standard errors for kNum samples.
Errors FillNormal(TestDevice* device) {
  std::vector<OutputError> errors;
  for (ElementFormat format :
       {ElementFormat::kFp32, ElementFormat::kBf16, ElementFormat::kFp16}) {
    void* data =
        device->Upload(std::vector<uint8_t>(kNum * BytesOf(format), 0xFF));
    const cudaError_t error =
        LaunchFillNormal(LaunchOn(*device), format, data, kNum, 0.5F, 42);
    if (error != cudaSuccess) return LaunchStatus(error);
    auto bytes = device->Download(data);
    if (!bytes.ok()) return bytes.status();
    double sum = 0, squares = 0, far = 0;
    for (const double x : Decode(format, *bytes)) {
      sum += x;
      squares += x * x;
      far += std::abs(x) > 1;
    }
    const double unit = 5 / std::sqrt(double{kNum});
    const double share = 0.0455;
    const std::string name = Name(format);
    errors.push_back({name + " mean", std::abs(sum / kNum), 0.5 * unit});
    errors.push_back({name + " square", std::abs(squares / kNum - 0.25),
                      0.25 * std::sqrt(2) * unit + 1e-3});
    errors.push_back({name + " tails", std::abs(far / kNum - share),
                      std::sqrt(share) * unit + 1e-3});
  }
  return errors;
}

Errors FillTokens(TestDevice* device) {
  constexpr int32_t kLimit = 1000;
  void* data = device->Upload(std::vector<uint8_t>(4 * kNum, 0xFF));
  const cudaError_t error = LaunchFillTokens(
      LaunchOn(*device), static_cast<int32_t*>(data), kNum, kLimit, 42);
  if (error != cudaSuccess) return LaunchStatus(error);
  auto bytes = device->Download(data);
  if (!bytes.ok()) return bytes.status();
  std::vector<double> counts(kLimit);
  int outside = 0;
  for (const double x : Decode(ElementFormat::kInt32, *bytes)) {
    if (x < 0 || x >= kLimit) {
      ++outside;
    } else {
      ++counts[static_cast<int>(x)];
    }
  }
  const double rarest = *std::min_element(counts.begin(), counts.end());
  const double expected = double{kNum} / kLimit;
  return std::vector<OutputError>{
      {"outside of [0, limit)", static_cast<double>(outside), 0},
      {"lack of the rarest", expected - rarest, 5 * std::sqrt(expected)}};
}

Errors Copy(TestDevice* device) {
  std::vector<uint8_t> bytes(kNum);
  for (int64_t i = 0; i < kNum; ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  const void* from = device->Upload(bytes);
  void* to = device->Upload(std::vector<uint8_t>(kNum, 0xFF));
  const cudaError_t error = LaunchCopy(LaunchOn(*device), from, to, kNum);
  if (error != cudaSuccess) return LaunchStatus(error);
  auto copied = device->Download(to);
  if (!copied.ok()) return copied.status();
  return std::vector<OutputError>{
      {"copy differs", *copied == bytes ? 0.0 : 1.0, 0}};
}

// Copies at rates that need several blocks, one block, and without a limit;
// with equal offsets, offsets that differ by 16, and odd offsets; with sizes
// within and across chunks of 16 KiB.
Errors PacedCopies(TestDevice* device) {
  constexpr int64_t kBytes = 200'000;
  std::vector<uint8_t> bytes(kBytes);
  for (int64_t i = 0; i < kBytes; ++i) {
    bytes[i] = static_cast<uint8_t>(i * 7 + i / 251);
  }
  const auto* from = static_cast<const uint8_t*>(device->Upload(bytes));
  double num_wrong = 0;
  for (const double rate : {3e10, 8e9, 0.0}) {
    for (const int64_t size : {0, 1, 15, 16, 100, 16384, 16385, 150'001}) {
      for (const auto& [read, write] :
           {std::pair<int, int>{0, 0}, {3, 3}, {5, 21}, {0, 1}, {13, 2}}) {
        std::vector<uint8_t> expected(size + write + 40, 0xFF);
        auto* to = static_cast<uint8_t*>(device->Upload(expected));
        const cudaError_t error =
            LaunchPacedCopy(LaunchOn(*device), {.from = from + read,
                                                .to = to + write,
                                                .num_bytes = size,
                                                .latency_seconds = 2e-6,
                                                .bytes_per_second = rate});
        if (error != cudaSuccess) return LaunchStatus(error);
        std::copy_n(bytes.begin() + read, size, expected.begin() + write);
        auto copied = device->Download(to);
        if (!copied.ok()) return copied.status();
        num_wrong += *copied != expected;
      }
    }
  }
  return std::vector<OutputError>{{"paced copies that differ", num_wrong, 0}};
}

Errors Empty(TestDevice* device) {
  const cudaError_t error = LaunchEmpty(LaunchOn(*device));
  if (error != cudaSuccess) return LaunchStatus(error);
  return std::vector<OutputError>{};
}

}  // namespace

std::vector<OtherCheck> OtherChecks() {
  return {
      {"causal_softmax", &CausalSoftmax},     {"full_softmax", &FullSoftmax},
      {"softmax_gradient", &SoftmaxGradient}, {"fill_normal", &FillNormal},
      {"fill_tokens", &FillTokens},           {"copy", &Copy},
      {"paced_copies", &PacedCopies},         {"empty", &Empty}};
}

}  // namespace weir::calibrate
