// SPDX-License-Identifier: Apache-2.0
// Scenarios as text for people.
#ifndef WEIR_SCENARIOS_DESCRIBE_SCENARIO_H_
#define WEIR_SCENARIOS_DESCRIBE_SCENARIO_H_

#include <string>

#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Returns the sizes that are set, such as "layers 24, hidden 1024, seq 512, tp
// 2, pp 4, dp 1, mbs 4, gbs 32".
std::string DescribeSizes(const Scenario& scenario);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_DESCRIBE_SCENARIO_H_
