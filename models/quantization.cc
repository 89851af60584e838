// SPDX-License-Identifier: Apache-2.0
#include "models/quantization.h"

namespace weir::models {
namespace {

constexpr double kScaleBytes = 4;  // fp32
constexpr double kBlock = 128;     // of FP8 block scaling
constexpr double kMxBlock = 32;
constexpr double kNvBlock = 16;
constexpr double k16BitBytes = 2;

bool IsQuantized(OperandFormat format) { return format != OPERAND_16_BIT; }

}  // namespace

double OperandBytes(OperandFormat format, Operand operand) {
  switch (format) {
    case OPERAND_FP8:
      return 1;
    case OPERAND_FP8_BLOCK:
      return 1 + kScaleBytes /
                     (operand == Operand::kWeight ? kBlock * kBlock : kBlock);
    case OPERAND_MXFP8:
      return 1 + 1 / kMxBlock;
    case OPERAND_NVFP4:
      return 0.5 + 1 / kNvBlock;
    case OPERAND_MXFP4:
      return 0.5 + 1 / kMxBlock;
    default:
      return 0;
  }
}

const char* Name(OperandFormat format) {
  switch (format) {
    case OPERAND_FP8:
      return "fp8";
    case OPERAND_FP8_BLOCK:
      return "fp8_block";
    case OPERAND_MXFP8:
      return "mxfp8";
    case OPERAND_NVFP4:
      return "nvfp4";
    case OPERAND_MXFP4:
      return "mxfp4";
    default:
      return "";
  }
}

OperandFormat OperandFormatNamed(absl::string_view name) {
  for (int i = OPERAND_16_BIT + 1; i < OperandFormat_ARRAYSIZE; ++i) {
    const auto format = static_cast<OperandFormat>(i);
    if (name == Name(format)) return format;
  }
  return OPERAND_16_BIT;
}

double CopyBytes(const Quantization& quantization, OperandFormat a,
                 OperandFormat b, Operand operand) {
  const bool one_copy =
      a == b && a == OPERAND_FP8 && !quantization.transposed_copies;
  return OperandBytes(a, operand) + (one_copy ? 0 : OperandBytes(b, operand));
}

double WeightCopyBytes(const Quantization& quantization) {
  return CopyBytes(quantization, quantization.forward,
                   quantization.input_gradient, Operand::kWeight);
}

double WeightCastBytes(const Quantization& quantization) {
  if (!IsQuantized(quantization.forward) &&
      !IsQuantized(quantization.input_gradient)) {
    return 0;
  }
  return k16BitBytes * quantization.weight_reads +
         WeightCopyBytes(quantization);
}

}  // namespace weir::models
