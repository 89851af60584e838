// SPDX-License-Identifier: Apache-2.0
// Tensors copied from the GPU with their memory layout.
#ifndef WEIR_CALIBRATE_GPU_HOST_HOST_TENSOR_H_
#define WEIR_CALIBRATE_GPU_HOST_HOST_TENSOR_H_

#include <cstdint>
#include <vector>

#include "calibrate/execute/stage/op_shapes.h"

namespace weir::calibrate {

struct HostTensor {
  ElementFormat format = ElementFormat::kFp32;
  int64_t stride = 0;          // elements from row to row
  std::vector<uint8_t> bytes;  // empty: absent in this operation

  bool present() const { return !bytes.empty(); }
  double At(int64_t row, int64_t column) const;
};

// Returns the number of elements from a view's first to its last.
int64_t SpanOf(const TensorView& view, const TensorShape& shape);

double ReadElement(ElementFormat format, const uint8_t* bytes);
// Rounds to nearest, ties to even. Requires: kFp32, kBf16, kFp16 or kInt32.
void WriteElement(ElementFormat format, double value, uint8_t* bytes);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_HOST_TENSOR_H_
