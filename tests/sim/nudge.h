// SPDX-License-Identifier: Apache-2.0
// Changes inputs by less than can be measured. If a result changes by more, it
// has no nine significant digits: rounding errors accumulate where flows of
// many sizes share many links.
#ifndef WEIR_TESTS_SIM_NUDGE_H_
#define WEIR_TESTS_SIM_NUDGE_H_

#include <random>

#include "scenarios/cluster/cluster.pb.h"

namespace weir::sim {

// Changes every rate and latency of a cluster in the thirteenth digit.
void NudgeRates(std::mt19937* random, Cluster* cluster);

}  // namespace weir::sim

#endif  // WEIR_TESTS_SIM_NUDGE_H_
