// SPDX-License-Identifier: Apache-2.0
// The data of figures, from files that weir wrote and from scenarios. Errors
// are InvalidArgument, or NotFound for a file that does not exist.
#ifndef WEIR_CLI_WEIR_DRAW_INPUTS_H_
#define WEIR_CLI_WEIR_DRAW_INPUTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/options/flags.h"
#include "plan/stragglers/slack_views.h"
#include "results/draw/figures.h"
#include "results/result.pb.h"
#include "scenarios/scenario.h"

namespace weir::cli {

// Returns InvalidArgument if the input is a file of results and other flags
// describe a scenario, which would be ignored.
absl::Status CheckNoScenarioFlags(const Flags& flags);

// Return the points of a Pareto front. `cost`: of time and cost, instead of
// time and memory: the price per sample if plans have one, else the GPU seconds
// of a step. Return InvalidArgument if the memory is needed and not known.
absl::StatusOr<results::ParetoData> ParetoOfResults(std::span<const Result> all,
                                                    bool cost);
absl::StatusOr<results::ParetoData> ParetoOfSweep(const std::string& folder,
                                                  bool cost);
absl::StatusOr<results::ParetoData> ParetoOfPlans(const std::string& label,
                                                  const std::string& text,
                                                  bool cost);
// Returns InvalidArgument if the text is JSON or CSV that a command of weir
// prints and that has no figure, such as that of simulate, which has no
// timeline.
absl::Status RefuseOutput(const std::string& label, const std::string& text);

// Returns true if a file is the output of "weir plan --format json".
bool IsPlans(const std::string& text);

// Returns the heat map of two fields; empty: the first two of the sweep.
absl::StatusOr<results::HeatmapData> HeatmapOfSweep(const std::string& folder,
                                                    const std::string& fields,
                                                    const std::string& metric);

absl::StatusOr<results::RooflineData> RooflineOf(
    const scenarios::ResolvedScenario& scenario);

// Returns the passes of replica 0 with their slack. Returns the errors of
// RowsOfPasses.
absl::StatusOr<results::TimelineRows> RowsOfSlack(
    const plan::NamedSlack& named, std::span<const uint32_t> ranks);

// Returns true if a file is the output of "weir validate --format csv".
bool IsErrorTable(const std::string& text);
// Returns its rows with a prediction.
absl::StatusOr<results::ErrorsData> ErrorsOfTable(const std::string& label,
                                                  const std::string& text);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_DRAW_INPUTS_H_
