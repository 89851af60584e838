// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/stage/stage_op.h"

namespace weir::calibrate {

int BytesOf(ElementFormat format) {
  switch (format) {
    case ElementFormat::kBf16:
    case ElementFormat::kFp16:
      return 2;
    case ElementFormat::kUint8:
      return 1;
    case ElementFormat::kFp32:
    case ElementFormat::kInt32:
      break;
  }
  return 4;
}

const char* Name(ElementFormat format) {
  switch (format) {
    case ElementFormat::kFp32:
      return "fp32";
    case ElementFormat::kBf16:
      return "bf16";
    case ElementFormat::kFp16:
      return "fp16";
    case ElementFormat::kInt32:
      return "int32";
    case ElementFormat::kUint8:
      return "uint8";
  }
  return "unknown";
}

const char* Name(OpKind kind) {
  static constexpr const char* kNames[] = {"gemm",
                                           "bias_gradient",
                                           "norm_forward",
                                           "norm_backward",
                                           "residual_forward",
                                           "dropout_backward",
                                           "gelu_forward",
                                           "gelu_backward",
                                           "gated_forward",
                                           "gated_backward",
                                           "rotary_forward",
                                           "rotary_backward",
                                           "attention_forward",
                                           "attention_backward",
                                           "embedding_forward",
                                           "embedding_backward",
                                           "cross_entropy",
                                           "adam",
                                           "clear"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace weir::calibrate
