// SPDX-License-Identifier: Apache-2.0
// What was found, for people and for programs.
#ifndef WEIR_PLAN_SYNTHESIS_SYNTHESIS_VIEW_H_
#define WEIR_PLAN_SYNTHESIS_SYNTHESIS_VIEW_H_

#include <optional>
#include <string>

#include "plan/synthesis/synthesize.h"

namespace weir {

// What the full simulation of a scenario says, seconds.
struct SimulatedTimes {
  double found = 0;
  std::optional<double> best_named;
};

// The named systems against what was found, its bound and its gap. Ends with a
// newline.
std::string SynthesisTable(const OrderProblem& problem,
                           const Synthesis& synthesis,
                           const std::optional<SimulatedTimes>& simulated);

// The proof that goes with the order, a JSON object: the problem, what the
// linter says, what every rank holds against the limit, times, bound, gap and
// how they were found, and what each named system takes.
std::string SynthesisJson(const OrderProblem& problem,
                          const Synthesis& synthesis,
                          const std::optional<SimulatedTimes>& simulated);

// One row below its header: what was found, the best named order, the bound,
// and what makes the order valid.
std::string SynthesisCsv(const OrderProblem& problem,
                         const Synthesis& synthesis,
                         const std::optional<SimulatedTimes>& simulated);

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_SYNTHESIS_VIEW_H_
