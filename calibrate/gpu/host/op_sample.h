// SPDX-License-Identifier: Apache-2.0
// A part of an operation that the host can compute again in double precision in
// about a second.
#ifndef WEIR_CALIBRATE_GPU_HOST_OP_SAMPLE_H_
#define WEIR_CALIBRATE_GPU_HOST_OP_SAMPLE_H_

#include <cstdint>
#include <vector>

#include "calibrate/stage/stage_op.h"

namespace weir {

// Of a tensor: these rows and, of them, these columns.
struct TensorSample {
  std::vector<int64_t> rows, columns;
  // False: this output of the smaller operation is something else.
  bool compared = true;
};

// A smaller operation on samples of the tensors (dense, no views).
struct OpSample {
  StageOp op;
  std::vector<TensorSample> inputs, outputs;
};

// Multiply-adds (of products) or elements (times eight) of an operation.
double HostCost(const StageOp& op);

inline constexpr double kHostCostLimit = 1 << 27;

// All of `op` where its cost is below the limit; else rows and columns of
// products, columns of bias gradients and embeddings, a sequence and a head (or
// a group of heads with the same keys) of attention and rotation, rows of the
// rest. Weight gradients of norms are left out then.
OpSample SampleOp(const StageOp& op, double limit = kHostCostLimit);

// `count` of [0, n), ascending: one from each of as many equal parts, the
// last being n - 1.
std::vector<int64_t> PickSome(int64_t n, int64_t count);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_HOST_OP_SAMPLE_H_
