// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/point.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "base/utf8.h"
#include "results/metrics.h"
#include "results/result.pb.h"
#include "sim/simulate.h"

namespace weir::plan {
namespace {

SweepOutcome Done(uint32_t point, const scenarios::ResolvedScenario& scenario) {
  SweepOutcome outcome;
  outcome.set_point(point);
  outcome.set_kind(SWEEP_DONE);
  outcome.set_num_gpus(scenario.placement.num_gpus());
  outcome.set_chunks(scenario.scenario.parallelism().chunks());
  outcome.set_microbatches(scenario.num_microbatches);
  return outcome;
}

void Fill(const Result& result, SweepOutcome* outcome) {
  outcome->set_method(result.method());
  outcome->set_batch_seconds(result.batch_seconds());
  outcome->set_makespan_seconds(result.makespan_seconds());
  if (result.has_samples_per_second()) {
    outcome->set_samples_per_second(result.samples_per_second());
  }
  if (result.has_tokens_per_second()) {
    outcome->set_tokens_per_second(result.tokens_per_second());
  }
  if (result.has_model_flops_utilization()) {
    outcome->set_model_flops_utilization(result.model_flops_utilization());
  }
  outcome->set_idle_ratio(result.idle_ratio());
  if (result.has_breakdown() && result.batch_seconds() > 0) {
    outcome->set_bubble_ratio(result.breakdown().bubble_seconds() /
                              result.batch_seconds());
  }
  outcome->set_exposed_communication_ratio(
      result.exposed_communication_ratio());
  outcome->set_peak_memory_bytes(result.peak_memory_bytes());
  if (result.has_memory_capacity_bytes()) {
    outcome->set_memory_capacity_bytes(result.memory_capacity_bytes());
  }
  outcome->set_fits_memory(result.fits_memory());
  outcome->set_weight_versions(result.weight_versions());
  outcome->set_staleness_updates(result.staleness_updates());
  outcome->set_num_warnings(static_cast<uint32_t>(result.warnings_size()));
}

}  // namespace

std::string MethodOf(const sim::FastEstimate& run) {
  if (run.reduced && run.extrapolated) return "reduced, extrapolated";
  if (run.reduced) return "reduced";
  return run.extrapolated ? "extrapolated" : "full";
}

void FillFigures(const sim::FastEstimate& run,
                 const scenarios::ResolvedScenario& scenario,
                 SweepOutcome* outcome) {
  outcome->set_method(MethodOf(run));
  outcome->set_batch_seconds(run.batch_seconds);
  outcome->set_makespan_seconds(run.makespan_seconds);
  outcome->set_fits_memory(run.fits_memory);
  for (const double bytes : run.peak_bytes) {
    outcome->set_peak_memory_bytes(
        std::max(outcome->peak_memory_bytes(), bytes));
  }
  if (scenario.given_costs || !(run.batch_seconds > 0)) return;
  const Batch& batch = scenario.scenario.batch();
  outcome->set_samples_per_second(
      results::SamplesPerSecond(batch.global_batch_size(), run.batch_seconds));
  if (batch.sequence_length() == 0) return;
  outcome->set_tokens_per_second(results::TokensPerSecond(
      batch.global_batch_size(), batch.sequence_length(), run.batch_seconds));
}

SweepOutcome PointRunner::Run(
    uint32_t point,
    const absl::StatusOr<scenarios::ResolvedScenario>& scenario) {
  if (!scenario.ok()) return OutcomeOfError(point, scenario.status());
  SweepOutcome outcome = Done(point, *scenario);
  if (method_ == SWEEP_FAST) {
    if (!fast_simulator_) fast_simulator_.emplace();
    const auto run = fast_simulator_->Estimate(*scenario);
    if (!run.ok()) return OutcomeOfError(point, run.status());
    FillFigures(*run, *scenario, &outcome);
    return outcome;
  }
  const auto result = sim::Simulate(*scenario);
  if (!result.ok()) return OutcomeOfError(point, result.status());
  Fill(*result, &outcome);
  return outcome;
}

SweepOutcome OutcomeOfError(uint32_t point, const absl::Status& error) {
  SweepOutcome outcome;
  outcome.set_point(point);
  switch (error.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
      outcome.set_kind(SWEEP_REFUSED);
      break;
    default:
      outcome.set_kind(SWEEP_FAILED);
  }
  const std::string message(error.message());
  outcome.set_error(IsUtf8(message) ? message : Ascii(message));
  return outcome;
}

}  // namespace weir::plan
