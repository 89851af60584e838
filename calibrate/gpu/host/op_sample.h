// SPDX-License-Identifier: Apache-2.0
// The part of an operation that the host can recompute in double precision in
// about a second.
#ifndef WEIR_CALIBRATE_GPU_HOST_OP_SAMPLE_H_
#define WEIR_CALIBRATE_GPU_HOST_OP_SAMPLE_H_

#include <cstdint>
#include <vector>

#include "calibrate/execute/stage/stage_op.h"

namespace weir::calibrate {

// Rows of a tensor, and columns within them.
struct TensorSample {
  std::vector<int64_t> rows, columns;
  // False: this output of the smaller operation is not comparable.
  bool compared = true;
};

// A smaller operation on samples of the tensors (dense, no views).
struct OpSample {
  StageOp op;
  std::vector<TensorSample> inputs, outputs;
};

// Returns the multiply-adds (of GEMMs) or elements (times eight) of an
// operation.
double HostCost(const StageOp& op);

inline constexpr double kHostCostLimit = 1 << 27;

// Returns all of `op` if its cost is below the limit; otherwise rows and
// columns of GEMMs, columns of bias gradients and embeddings, a sequence and a
// head (or a group of heads with the same keys) of attention and rotation, rows
// of other operations. Weight gradients of norms are then not compared.
OpSample SampleOp(const StageOp& op, double limit = kHostCostLimit);

// Returns the operations on parts of the tensors of `op` that are copied to the
// host to verify it: of a large optimizer update, whose state takes gigabytes,
// the first, the middle and the last elements; otherwise `op`.
std::vector<StageOp> CopiedParts(const StageOp& op,
                                 int64_t max_elements = 1 << 20);

// Returns `count` values of [0, n), ascending: one from each of `count` equal
// parts. The last value is n - 1.
std::vector<int64_t> PickSome(int64_t n, int64_t count);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_OP_SAMPLE_H_
