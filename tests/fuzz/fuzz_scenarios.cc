// SPDX-License-Identifier: Apache-2.0
// Scenarios, including their simulation. The full simulation, the fast method
// and the bounds agree, and results satisfy the invariants of
// result_invariants.h. All graphs run in this process on one SimGrid platform.
#include <cmath>
#include <random>

#include "absl/strings/str_format.h"
#include "base/textproto.h"
#include "results/store.h"
#include "results/validate.h"
#include "scenarios/scenario.h"
#include "schedules/source.h"
#include "sim/bounds/bound.h"
#include "sim/engine/graph_runner.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"
#include "tests/fuzz/generate_scenario.h"
#include "tests/fuzz/result_invariants.h"
#include "tests/fuzz/target.h"
#include "tests/sim/nudge.h"

namespace weir::fuzz {
namespace {

constexpr double kRounding = 1e-9;

struct Engine {
  sim::GraphRunner runner;
  sim::FastSimulator fast_simulator{&runner};
};

// Never destroyed, as SimGrid's teardown is slow.
Engine& TheEngine() {
  static Engine& engine = *new Engine;
  return engine;
}

absl::StatusOr<Result> SimulateHere(const scenarios::ResolvedScenario& scenario,
                                    bool keep_timeline) {
  sim::SimulateOptions options;
  options.keep_timeline = keep_timeline;
  options.runner = &TheEngine().runner;
  return sim::Simulate(scenario, options);
}

std::string Describe(const scenarios::ResolvedScenario& scenario) {
  return PrintTextProto(scenario.scenario) + PrintTextProto(scenario.cluster) +
         PrintTextProto(scenario.device);
}

// Returns the largest peak memory of each rank's GPUs in bytes, by rank.
std::vector<double> PeaksOf(const Result& result) {
  std::vector<double> peaks(result.pipeline_parallel());
  for (const RankResult& rank : result.ranks()) {
    double& peak = peaks[rank.rank()];
    peak = std::max(peak, rank.peak_memory_bytes());
  }
  return peaks;
}

bool Near(double a, double b, double tolerance) {
  return std::fabs(a - b) <= tolerance * std::fabs(b);
}

bool Near(const sim::FastEstimate& ranked, const Result& full) {
  const std::vector<double> peaks = PeaksOf(full);
  bool near = ranked.peak_bytes.size() == peaks.size() &&
              ranked.fits_memory == full.fits_memory() &&
              Near(ranked.batch_seconds, full.batch_seconds(), kRounding) &&
              Near(ranked.makespan_seconds, full.makespan_seconds(), kRounding);
  for (size_t i = 0; near && i < peaks.size(); ++i) {
    near = Near(ranked.peak_bytes[i], peaks[i], kRounding);
  }
  return near;
}

// Returns true if the result is determined to nine digits (tests/sim/nudge.h).
bool IsWellConditioned(const scenarios::ResolvedScenario& scenario,
                       const Result& full) {
  std::mt19937 random(1);
  for (int i = 0; i < 8; ++i) {
    scenarios::ResolvedScenario other = scenario;
    sim::NudgeRates(&random, &other.cluster);
    const auto result = SimulateHere(other, false);
    if (!result.ok()) return false;
    const std::vector<double> peaks = PeaksOf(full), others = PeaksOf(*result);
    if (!Near(result->batch_seconds(), full.batch_seconds(), 0.1 * kRounding) ||
        !Near(result->makespan_seconds(), full.makespan_seconds(),
              0.1 * kRounding) ||
        result->fits_memory() != full.fits_memory()) {
      return false;
    }
    for (size_t k = 0; k < peaks.size(); ++k) {
      if (!Near(others[k], peaks[k], 0.1 * kRounding)) return false;
    }
  }
  return true;
}

void CheckFast(const scenarios::ResolvedScenario& scenario,
               const absl::StatusOr<Result>& full) {
  const auto ranked = TheEngine().fast_simulator.Estimate(scenario);
  REQUIRE_THAT(ranked.status().code() == full.status().code(),
               ranked.status().ToString() + "\n" + full.status().ToString() +
                   "\n" + Describe(scenario));
  if (!full.ok() || Near(*ranked, *full)) return;
  REQUIRE_THAT(!IsWellConditioned(scenario, *full),
               absl::StrFormat("fast %.17g s, full %.17g s\n",
                               ranked->batch_seconds, full->batch_seconds()) +
                   Describe(scenario));
}

// Without a flush, a run without a detected period may be shorter than the
// bound.
void CheckBounds(const scenarios::ResolvedScenario& scenario,
                 const Result& full) {
  const auto bound = sim::BoundOf(scenario);
  REQUIRE_THAT(bound.ok(), StatusText(bound) + Describe(scenario));
  const bool flushes =
      schedules::ScheduleFlushes(scenario.scenario.schedule()).value_or(false);
  const double above = 1 + kRounding;
  if (flushes || full.steady_state()) {
    REQUIRE_THAT(bound->batch_seconds <= full.batch_seconds() * above,
                 absl::StrFormat("bound %.17g s, full %.17g s\n",
                                 bound->batch_seconds, full.batch_seconds()) +
                     Describe(scenario));
  }
  if (flushes) {
    REQUIRE_THAT(bound->any_order_seconds <= bound->batch_seconds * above,
                 Describe(scenario));
  }
  const std::vector<double> peaks = PeaksOf(full);
  REQUIRE(bound->peak_bytes.size() == peaks.size());
  for (size_t i = 0; i < peaks.size(); ++i) {
    REQUIRE_THAT(bound->peak_bytes[i] <= peaks[i] * above,
                 absl::StrFormat("rank %d: bound %.17g bytes, full %.17g\n", i,
                                 bound->peak_bytes[i], peaks[i]) +
                     PrintTextProto(results::WithoutTimeline(full)) +
                     Describe(scenario));
  }
}

// Checks that a scenario is unchanged after writing and reading it.
void CheckTextForm(const GeneratedScenario& generated) {
  const std::string text = PrintTextProto(generated.scenario);
  Scenario again;
  REQUIRE_OK(ParseTextProto("again", text, &again));
  REQUIRE_THAT(PrintTextProto(again) == text, text);
  if (!generated.resolved.ok() || generated.changed) return;
  const std::string complete = PrintTextProto(generated.resolved->scenario);
  const auto resolved =
      scenarios::ResolveScenario("again", generated.resolved->scenario);
  REQUIRE_THAT(resolved.ok(), complete);
  REQUIRE_THAT(PrintTextProto(resolved->scenario) == complete, complete);
}

void CheckStore(const Result& result) {
  Results results;
  *results.add_results() = result;
  const std::string bytes = results.SerializeAsString();
  const auto again = results::ParseResults("again", bytes);
  REQUIRE_OK(again);
  REQUIRE(again->SerializeAsString() == bytes);
}

}  // namespace

bool RunInput(Choices* choices) {
  const GeneratedScenario generated = GenerateScenario(choices);
  if (choices->OneIn(8)) CheckTextForm(generated);
  if (!generated.resolved.ok()) {
    REQUIRE(!generated.resolved.status().message().empty());
    return false;
  }
  const scenarios::ResolvedScenario& scenario = *generated.resolved;
  const bool keep_timeline = choices->OneIn(2);
  const auto result = SimulateHere(scenario, keep_timeline);
  if (!result.ok()) {
    REQUIRE_THAT(absl::IsInvalidArgument(result.status()) ||
                     absl::IsFailedPrecondition(result.status()),
                 StatusText(result) + Describe(scenario));
    REQUIRE(!result.status().message().empty());
  } else {
    CheckQuantities(*result);
    if (keep_timeline) CheckTimeline(*result);
    CheckBounds(scenario, *result);
    if (choices->OneIn(4)) CheckViews(*result);
    if (choices->OneIn(4)) CheckStore(*result);
  }
  CheckFast(scenario, result);
  return result.ok();
}

}  // namespace weir::fuzz
