// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/host_tensor.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace weir::calibrate {
namespace {

template <typename T>
T Load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

double FromFp16(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const int mantissa = bits & 0x3FF;
  double magnitude;
  if (exponent == 31) {
    magnitude = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                              : std::numeric_limits<double>::infinity();
  } else {
    magnitude = exponent == 0 ? std::ldexp(mantissa, -24)
                              : std::ldexp(1024 + mantissa, exponent - 25);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

uint16_t ToFp16(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7E00;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (magnitude >= 65520) return sign | 0x7C00;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude < 2^exponent
  const int unit = std::max(exponent, -13) - 11;
  const auto steps =
      static_cast<int>(std::nearbyint(std::ldexp(magnitude, -unit)));
  // For normal numbers, the leading bit of `steps` adds one to the exponent,
  // and rounding up to a power of two carries into it.
  return sign | static_cast<uint16_t>(((unit + 24) << 10) + steps);
}

uint16_t ToBf16(double value) {
  const auto single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  if (std::isnan(single)) return 0x7FC0;
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace

double ReadElement(ElementFormat format, const uint8_t* bytes) {
  switch (format) {
    case ElementFormat::kFp32:
      return Load<float>(bytes);
    case ElementFormat::kBf16: {
      const uint32_t bits = uint32_t{Load<uint16_t>(bytes)} << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
    case ElementFormat::kFp16:
      return FromFp16(Load<uint16_t>(bytes));
    case ElementFormat::kInt32:
      return Load<int32_t>(bytes);
    case ElementFormat::kUint8:
      return *bytes;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void WriteElement(ElementFormat format, double value, uint8_t* bytes) {
  const auto store = [bytes](auto element) {
    std::memcpy(bytes, &element, sizeof element);
  };
  switch (format) {
    case ElementFormat::kFp32:
      return store(static_cast<float>(value));
    case ElementFormat::kBf16:
      return store(ToBf16(value));
    case ElementFormat::kFp16:
      return store(ToFp16(value));
    case ElementFormat::kInt32:
      return store(static_cast<int32_t>(value));
    case ElementFormat::kUint8:
      return store(static_cast<uint8_t>(value));
  }
}

double HostTensor::At(int64_t row, int64_t column) const {
  return ReadElement(format,
                     bytes.data() + (row * stride + column) * BytesOf(format));
}

int64_t SpanOf(const TensorView& view, const TensorShape& shape) {
  if (shape.rows == 0 || shape.columns == 0) return 0;
  return (shape.rows - 1) * StrideOf(view, shape) + shape.columns;
}

}  // namespace weir::calibrate
