// SPDX-License-Identifier: Apache-2.0
// How far an operation's results are from the reference in double precision.
#ifndef WEIR_CALIBRATE_GPU_HOST_OP_ERROR_H_
#define WEIR_CALIBRATE_GPU_HOST_OP_ERROR_H_

#include <vector>

#include "calibrate/gpu/host/host_tensor.h"
#include "calibrate/gpu/host/op_sample.h"

namespace weir {

// True where outputs[index] is read too: accumulated into, or updated in place.
bool ReadsOutput(const StageOp& op, int index);
// The input that outputs[index] updates in place; -1: none.
int SameInput(const StageOp& op, int index);

// The tensors of `op`, its views' strides kept.
struct OpCopies {
  std::vector<HostTensor> inputs;          // before it ran
  std::vector<HostTensor> outputs_before;  // present where accumulated into
  std::vector<HostTensor> outputs;         // behind it
};

// norm(got - expected) / norm(expected) of the worst output; infinity where one
// holds a NaN. What is too large is sampled (op_sample.h); of very long
// sequences some queries and keys are computed. Takes seconds at most.
double RelativeError(const StageOp& op, const OpCopies& copies,
                     double limit = kHostCostLimit);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_HOST_OP_ERROR_H_
