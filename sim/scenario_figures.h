// SPDX-License-Identifier: Apache-2.0
// The figures that a prediction may rest on: those of the devices, of the
// runtime, and the rates and latencies of the cluster's links.
#ifndef WEIR_SIM_SCENARIO_FIGURES_H_
#define WEIR_SIM_SCENARIO_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/figure.pb.h"
#include "scenarios/scenario.h"

namespace weir {

struct ScenarioFigure {
  std::string owner;  // "H100-SXM5-80GB", "megatron-lm", "DGX H100"
  std::string path;   // "product.matrix_rate", "groups[0].node.nics[].bytes..."
  double value = 0;
  Figure::Kind kind = Figure::KIND_UNSPECIFIED;
  std::string source;
};

// In the order of the files; empty for textbook costs. Links of a cluster that
// differ only in their number (NICs, switches) and have one value are one
// figure: a datasheet's rate, an assumed latency. Counts (num_x) are left out.
std::vector<ScenarioFigure> FiguresOf(const ResolvedScenario& scenario);

// The same scenario with figure `index` of them times `factor`.
ResolvedScenario WithFigure(const ResolvedScenario& scenario, int index,
                            double factor);

}  // namespace weir

#endif  // WEIR_SIM_SCENARIO_FIGURES_H_
