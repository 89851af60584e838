// SPDX-License-Identifier: Apache-2.0
// The model parameters that a prediction may depend on: those of the devices,
// of the runtime, and the rates and latencies of the cluster's links.
#ifndef WEIR_SIM_COSTS_SCENARIO_FIGURES_H_
#define WEIR_SIM_COSTS_SCENARIO_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/profile/figure.pb.h"
#include "scenarios/scenario.h"

namespace weir::sim {

struct ScenarioFigure {
  std::string owner;  // "H100-SXM5-80GB", "megatron-lm", "DGX H100"
  std::string path;   // "gemm.matrix_rate", "groups[0].node.nics[].bytes..."
  double value = 0;
  Figure::Kind kind = Figure::KIND_UNSPECIFIED;
  std::string source;
  std::string format;  // of a figure in matrix_rates, "bf16"; else empty
};

// Returns the parameters in the order of the files; empty for given costs.
// Links of a cluster that differ only in their index (NICs, switches) and have
// the same value are one parameter: a datasheet's rate, an assumed latency.
// Counts (num_x) are left out.
std::vector<ScenarioFigure> FiguresOf(
    const scenarios::ResolvedScenario& scenario);

// Returns the scenario with parameter `index` of FiguresOf multiplied by
// `factor`.
scenarios::ResolvedScenario WithFigure(
    const scenarios::ResolvedScenario& scenario, int index, double factor);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_SCENARIO_FIGURES_H_
