// SPDX-License-Identifier: Apache-2.0
// Bytes that a stage keeps for each of its parameters.
#ifndef WEIR_SIM_COSTS_STAGE_PARAMETERS_H_
#define WEIR_SIM_COSTS_STAGE_PARAMETERS_H_

#include "models/layer_list.h"
#include "models/quantization.h"
#include "models/recipe.pb.h"
#include "scenarios/scenario.pb.h"
#include "sim/costs/stage_costs.h"

namespace weir::sim {

// Bytes per parameter of each copy that training keeps.
struct ParameterBytes {
  double weight;  // in use by forward and backward
  // The same for those that GEMMs read in a format of the recipe; their copies
  // in addition; what is gathered; what a cast from 16 bits moves.
  double quantized, copies, gathered, cast;
  double gradient;
  double optimizer;  // states, and fp32 master weights if weights have 16 bits
  double matrix_optimizer;  // the same of matrices of blocks
  double stash;             // one stashed version
};

// Returns the bytes of one gradient, accumulated and reduced.
double GradientBytes(const Training& training);

ParameterBytes BytesPerParameter(const Training& training, const Recipe& recipe,
                                 const models::Quantization& formats);

// Sets the bytes of weights, their copies, gradients and optimizer states of
// layers [first, last).
void SetKeptBytes(const models::LayerList& layers, int first, int last,
                  const Training& training, const ParameterBytes& bytes,
                  StageParameters* parameters);

// Sets the bytes of the parameters of layers [first, last), and of layers for
// sharded weights. With low-rank adapters only these have gradients and
// optimizer states. `gathers_experts`: several ranks shard each expert, so that
// its weights are gathered too.
void SetParameters(const models::LayerList& layers, int first, int last,
                   const Training& training, const ParameterBytes& bytes,
                   bool gathers_experts, StageCosts* stage);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_STAGE_PARAMETERS_H_
