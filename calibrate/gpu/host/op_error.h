// SPDX-License-Identifier: Apache-2.0
// Error of an operation's results against the double-precision reference.
#ifndef WEIR_CALIBRATE_GPU_HOST_OP_ERROR_H_
#define WEIR_CALIBRATE_GPU_HOST_OP_ERROR_H_

#include <vector>

#include "calibrate/gpu/host/host_tensor.h"
#include "calibrate/gpu/host/op_sample.h"

namespace weir::calibrate {

// Returns true if outputs[index] is also read: accumulated into, or updated in
// place.
bool ReadsOutput(const StageOp& op, int index);
// Returns the input that outputs[index] updates in place; -1 if none.
int SameInput(const StageOp& op, int index);

// The tensors of `op`, with the strides of its views.
struct OpCopies {
  std::vector<HostTensor> inputs;          // before it ran
  std::vector<HostTensor> outputs_before;  // present if accumulated into
  std::vector<HostTensor> outputs;         // after it ran
};

// Returns norm(got - expected) / norm(expected) of the worst output; infinity
// if an output contains a NaN. Operations beyond `limit` are sampled
// (op_sample.h); for very long sequences some queries and keys are computed.
// Takes seconds at most.
double RelativeError(const StageOp& op, const OpCopies& copies,
                     double limit = kHostCostLimit);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_OP_ERROR_H_
