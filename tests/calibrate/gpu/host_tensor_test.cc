// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/host_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace weir::calibrate::host_tensor_test {

double Read(ElementFormat format, uint16_t bits) {
  uint8_t bytes[2];
  std::memcpy(bytes, &bits, sizeof bits);
  return ReadElement(format, bytes);
}

uint16_t Write(ElementFormat format, double value) {
  uint8_t bytes[2];
  WriteElement(format, value, bytes);
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return bits;
}

TEST(HostTensorTest, EveryHalfFloatComesBackAsItWas) {
  for (const auto format : {ElementFormat::kFp16, ElementFormat::kBf16}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const double value = Read(format, static_cast<uint16_t>(bits));
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(Read(format, Write(format, value))));
      } else {
        EXPECT_EQ(Write(format, value), bits) << Name(format);
      }
    }
  }
}

TEST(HostTensorTest, KnownValues) {
  EXPECT_EQ(Read(ElementFormat::kFp16, 0x3C00), 1);
  EXPECT_EQ(Read(ElementFormat::kFp16, 0xC000), -2);
  EXPECT_EQ(Read(ElementFormat::kFp16, 0x7BFF), 65504);
  EXPECT_EQ(Read(ElementFormat::kFp16, 0x0001), std::ldexp(1, -24));
  EXPECT_EQ(Read(ElementFormat::kBf16, 0x3F80), 1);
  EXPECT_EQ(Read(ElementFormat::kBf16, 0xC040), -3);
  EXPECT_TRUE(std::isinf(Read(ElementFormat::kFp16, 0x7C00)));
  // Outputs are poisoned by setting all bits.
  EXPECT_TRUE(std::isnan(Read(ElementFormat::kFp16, 0xFFFF)));
  EXPECT_TRUE(std::isnan(Read(ElementFormat::kBf16, 0xFFFF)));
}

TEST(HostTensorTest, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(Write(ElementFormat::kBf16, 1 + std::ldexp(1, -8)), 0x3F80);
  EXPECT_EQ(Write(ElementFormat::kBf16, 1 + 3 * std::ldexp(1, -8)), 0x3F82);
  EXPECT_EQ(Write(ElementFormat::kFp16, 1 + std::ldexp(1, -11)), 0x3C00);
  EXPECT_EQ(Write(ElementFormat::kFp16, 2048 - 0.5), 0x6800);
  EXPECT_EQ(Write(ElementFormat::kFp16, 65519), 0x7BFF);
  EXPECT_EQ(Write(ElementFormat::kFp16, 65520), 0x7C00);
}

TEST(HostTensorTest, RowsLieAStrideApart) {
  HostTensor tensor{ElementFormat::kInt32, 5, {}};
  const TensorView view{0, 7, 5};
  tensor.bytes.resize(SpanOf(view, {3, 2}) * 4);
  EXPECT_EQ(tensor.bytes.size(), 4u * 12);  // nothing after the last row
  const int32_t value = 77;
  const int offset = 4 * (2 * 5 + 1);
  std::memcpy(&tensor.bytes[offset], &value, 4);
  EXPECT_EQ(tensor.At(2, 1), 77);
}

}  // namespace weir::calibrate::host_tensor_test
