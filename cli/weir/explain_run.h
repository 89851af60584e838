// SPDX-License-Identifier: Apache-2.0
// Sensitivities of a simulated run, for "explain" and "report".
#ifndef WEIR_CLI_WEIR_EXPLAIN_RUN_H_
#define WEIR_CLI_WEIR_EXPLAIN_RUN_H_

#include "absl/status/statusor.h"
#include "cli/options/flags.h"
#include "results/result.pb.h"
#include "results/views/explanation.h"
#include "scenarios/scenario.h"

namespace weir::cli {

// Returns the result together with the parameters that change its time and, if
// `measured_seconds` is positive, those that could explain a step of that many
// seconds. Shows progress. Returns Cancelled after Ctrl-C. Requires: `result`
// is that of sim::Simulate(scenario).
absl::StatusOr<results::Explanation> ExplainRun(
    const scenarios::ResolvedScenario& scenario, Result result,
    double measured_seconds, const Flags& flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_EXPLAIN_RUN_H_
