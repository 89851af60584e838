// SPDX-License-Identifier: Apache-2.0
// Features that a scenario uses beyond the sizes of its layout, as texts for
// the heads of tables.
#ifndef WEIR_RESULTS_VIEWS_FEATURES_H_
#define WEIR_RESULTS_VIEWS_FEATURES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results/result.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::results {

// Returns the scenario of a result; an empty one if it has none, or one of
// another version of weir that cannot be read.
Scenario ScenarioOf(const Result& result);

// Returns the features that change the result and that other texts do not show:
// "LoRA of rank 16", "DeepEP", "documents of 512 tokens". Empty for a scenario
// without them. All text is printable ASCII. `scenario` is resolved.
std::vector<std::string> FeaturesOf(const Scenario& scenario);

// Returns the features of all results joined by ", "; empty if they have none
// or differ.
std::string CommonFeatures(std::span<const Result> results);

// Returns "features: LoRA of rank 16, DeepEP" as lines of a table's head; empty
// without features.
std::string FeaturesLine(const std::string& features);

}  // namespace weir::results

#endif  // WEIR_RESULTS_VIEWS_FEATURES_H_
