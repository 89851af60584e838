// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>

#include "calibrate/execute/stage/op_shapes.h"
#include "tests/calibrate/gpu/kernels/kernel_check.h"

namespace weir::calibrate {
namespace {

template <typename T, typename Convert>
std::vector<uint8_t> EncodeAs(const std::vector<double>& values,
                              Convert convert) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    const T x = convert(values[i]);
    memcpy(bytes.data() + i * sizeof(T), &x, sizeof(T));
  }
  return bytes;
}

template <typename T>
std::vector<double> DecodeAs(const std::vector<uint8_t>& bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T x;
    memcpy(static_cast<void*>(&x), bytes.data() + i * sizeof(T), sizeof(T));
    if constexpr (std::is_arithmetic_v<T>) {
      values[i] = static_cast<double>(x);
    } else {
      values[i] = static_cast<double>(static_cast<float>(x));
    }
  }
  return values;
}

// Returns the format of a tensor that is not in the stage's format.
ElementFormat OtherInput(OpKind kind, int index) {
  switch (kind) {
    case OpKind::kEmbeddingForward:
    case OpKind::kEmbeddingBackward:
    case OpKind::kCrossEntropy:
      return ElementFormat::kInt32;
    case OpKind::kDropoutBackward:
      return ElementFormat::kUint8;
    case OpKind::kNormForward:
      return index == 3 ? ElementFormat::kUint8 : ElementFormat::kFp32;
    default:
      return ElementFormat::kFp32;
  }
}

}  // namespace

ElementFormat InputFormat(const KernelCase& test, int index) {
  return InputShape(test.op, index).half ? test.format
                                         : OtherInput(test.op.kind, index);
}

ElementFormat OutputFormat(const KernelCase& test, int index) {
  if (OutputShape(test.op, index).half) return test.format;
  const OpKind kind = test.op.kind;
  const bool mask = (kind == OpKind::kNormForward && index == 3) ||
                    (kind == OpKind::kResidualForward && index == 1);
  return mask ? ElementFormat::kUint8 : ElementFormat::kFp32;
}

std::vector<uint8_t> Encode(ElementFormat format,
                            const std::vector<double>& values) {
  switch (format) {
    case ElementFormat::kBf16:
      return EncodeAs<__nv_bfloat16>(values, &__double2bfloat16);
    case ElementFormat::kFp16:
      return EncodeAs<__half>(values, &__double2half);
    case ElementFormat::kFp32:
      return EncodeAs<float>(values,
                             [](double x) { return static_cast<float>(x); });
    case ElementFormat::kInt32:
      return EncodeAs<int32_t>(
          values, [](double x) { return static_cast<int32_t>(x); });
    case ElementFormat::kUint8:
      return EncodeAs<uint8_t>(values, [](double x) {
        return x == x ? static_cast<uint8_t>(x) : uint8_t{0xFF};
      });
  }
  return {};
}

std::vector<double> Decode(ElementFormat format,
                           const std::vector<uint8_t>& bytes) {
  switch (format) {
    case ElementFormat::kBf16:
      return DecodeAs<__nv_bfloat16>(bytes);
    case ElementFormat::kFp16:
      return DecodeAs<__half>(bytes);
    case ElementFormat::kFp32:
      return DecodeAs<float>(bytes);
    case ElementFormat::kInt32:
      return DecodeAs<int32_t>(bytes);
    case ElementFormat::kUint8:
      return DecodeAs<uint8_t>(bytes);
  }
  return {};
}

}  // namespace weir::calibrate
