// SPDX-License-Identifier: Apache-2.0
// Changes inputs by less than anybody can measure. A scenario whose result
// moves by more has no result to nine digits: where flows of many sizes share
// many links, rounding grows along the run.
#ifndef WEIR_TESTS_SIM_NUDGE_H_
#define WEIR_TESTS_SIM_NUDGE_H_

#include <random>

#include "scenarios/cluster.pb.h"

namespace weir {

// Changes the thirteenth digit of every rate and latency of a cluster.
void NudgeRates(std::mt19937* random, Cluster* cluster);

}  // namespace weir

#endif  // WEIR_TESTS_SIM_NUDGE_H_
