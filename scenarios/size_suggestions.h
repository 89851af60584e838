// SPDX-License-Identifier: Apache-2.0
// Sizes that messages suggest instead of those that do not fit.
#ifndef WEIR_SCENARIOS_SIZE_SUGGESTIONS_H_
#define WEIR_SCENARIOS_SIZE_SUGGESTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Returns the nearest sizes that divide `num_gpus` and, if the model can be
// loaded, its layers and heads: pipeline-, tensor- or context-parallel sizes,
// below and above the given one, then numbers of GPUs, at most `most_gpus`.
// Requires:
// tensor x pipeline x context does not divide `num_gpus`.
std::vector<std::string> NearestSizes(const Scenario& scenario,
                                      uint64_t num_gpus, uint64_t most_gpus);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_SIZE_SUGGESTIONS_H_
