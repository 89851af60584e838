// SPDX-License-Identifier: Apache-2.0
// Adds recomputation to the work of blocks. Saved activations become temporary
// memory of the backward, and kernels and collectives of the forward run again.
#ifndef WEIR_MODELS_RECOMPUTE_WORK_H_
#define WEIR_MODELS_RECOMPUTE_WORK_H_

#include "models/attention.h"
#include "models/block_spec.h"
#include "models/layer_list.h"
#include "models/layer_work.h"
#include "models/partition.h"
#include "models/recompute.h"
#include "models/shape.h"

namespace weir::models {

// Recomputes all of a layer from its input of `input_bytes`.
void RecomputeFully(double input_bytes, LayerWork* work);

// Recomputes everything but the fused attention and the outputs of the first,
// third, fifth, ... GEMM. The program runs one GEMM for each matrix, in the
// order query, key, value, output, gate (if any), up, down; nothing reads the
// last output again.
void RecomputeOperators(const WorkSpec& spec, const Shape& shape,
                        LayerWork* work);

// Recomputes the modules of spec.recompute in a block with this core of its
// attention.
void RecomputeModules(const BlockSpec& block, const WorkSpec& spec,
                      const Shape& shape, const AttentionCore& core,
                      LayerWork* work);

// Returns the layers with the recomputation that depends on their stage: of
// some blocks of each, or of groups of them. Returns `layers` unchanged unless
// recompute.by_stage().
LayerList RecomputeStages(LayerList layers, const Partition& partition,
                          const Recompute& recompute);

}  // namespace weir::models

#endif  // WEIR_MODELS_RECOMPUTE_WORK_H_
