// SPDX-License-Identifier: Apache-2.0
// The collectives that a runtime calls for the sharded weights and gradients of
// one layer.
#ifndef WEIR_SIM_COSTS_SHARD_CALLS_H_
#define WEIR_SIM_COSTS_SHARD_CALLS_H_

#include "calibrate/profile/runtime.pb.h"
#include "models/model.pb.h"

namespace weir::sim {

// Gathers of one layer in a pass. Bytes are relative to the layer's weights.
struct PassGathers {
  double calls = 1, bytes = 1;
  // Those of them that start only when the weights before them are no longer
  // needed, so that nothing overlaps them.
  double exposed_calls = 0, exposed_bytes = 0;
};

struct ShardCalls {
  PassGathers forward, backward;  // backward: recomputation included
  // Reductions of matrices, and of biases and norms, which are this part of the
  // parameters. One reduction of everything by default.
  double reductions = 1, small_reductions = 0, small_part = 0;
  // Gradients are reduced while the backward waits.
  bool blocking_reductions = false;
  // Seconds in which the host launches the copies of one collective.
  double list_seconds = 0;
};

// Returns the number of matrices in a block without experts.
int MatricesPerBlock(const Transformer& transformer);

// Returns the calls for a block of this transformer. `recomputes`: the backward
// pass repeats the forward pass; `tensor`: tensor-parallel size; `shards`:
// ranks over which the weights are sharded.
ShardCalls ShardCallsOf(const Transformer& transformer, const Runtime& runtime,
                        bool recomputes, int tensor, int shards);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_SHARD_CALLS_H_
