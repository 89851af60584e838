// SPDX-License-Identifier: Apache-2.0
// What CUDA graphs launch in a scenario (docs/cuda-graphs.md).
#ifndef WEIR_SCENARIOS_CUDA_GRAPHS_H_
#define WEIR_SCENARIOS_CUDA_GRAPHS_H_

#include "base/problems.h"
#include "calibrate/profile/runtime.pb.h"
#include "models/model.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Returns true if one graph launches all forwards and backwards of a step.
bool LaunchesWholeSteps(const Training& training);

// Returns true if the kernels of the router of experts are fused.
bool FusesRouter(const Training& training, const Runtime& runtime);

// Reports scopes that are unknown or that cannot be combined.
void CheckCudaGraphs(Problems& problems, const Training& training);

// Reports scopes that the model does not have, and the fusion of routers of a
// model without experts.
void CheckCudaGraphs(Problems& problems, const Training& training,
                     const Transformer& transformer);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CUDA_GRAPHS_H_
