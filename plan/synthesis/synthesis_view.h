// SPDX-License-Identifier: Apache-2.0
// Views of a synthesis: table, JSON and CSV.
#ifndef WEIR_PLAN_SYNTHESIS_SYNTHESIS_VIEW_H_
#define WEIR_PLAN_SYNTHESIS_SYNTHESIS_VIEW_H_

#include <optional>
#include <string>

#include "plan/synthesis/synthesize.h"

namespace weir::plan {

// Seconds of a scenario by full simulation.
struct SimulatedTimes {
  double found = 0;
  std::optional<double> best_named;
};

// Compares the named systems with the order found, its bound and its gap. Ends
// with a newline.
std::string SynthesisTable(const OrderProblem& problem,
                           const Synthesis& synthesis,
                           const std::optional<SimulatedTimes>& simulated);

// Returns the proof of the order, a JSON object: the problem, the linter's
// report, what every rank holds compared with the limit, times, bound, gap and
// how they were found, and the times of each named system.
std::string SynthesisJson(const OrderProblem& problem,
                          const Synthesis& synthesis,
                          const std::optional<SimulatedTimes>& simulated);

// Returns a header and one row: the order found, the best named order, the
// bound, and the evidence that the order is valid.
std::string SynthesisCsv(const OrderProblem& problem,
                         const Synthesis& synthesis,
                         const std::optional<SimulatedTimes>& simulated);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_SYNTHESIS_VIEW_H_
