// SPDX-License-Identifier: Apache-2.0
#include "plan/search/confirm.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/worker_pool.h"
#include "plan/energy/step_energy.h"
#include "plan/search/same_order.h"
#include "scenarios/scenario.h"
#include "schedules/lint/lint.h"
#include "sim/simulate.h"

namespace weir::plan {
namespace {

constexpr double kSecondsPerHour = 3600;

// Returns the first error of the linter on the simulated order; empty: none.
absl::StatusOr<std::string> LintErrors(
    const scenarios::ResolvedScenario& resolved, int num_batches) {
  ASSIGN_OR_RETURN(const schedules::Schedule schedule,
                   sim::ScheduleOfScenario(resolved, num_batches));
  const schedules::LintReport report = schedules::LintSchedule(schedule, {});
  for (const schedules::Finding& finding : report.findings) {
    if (finding.severity == schedules::Finding::Severity::kError)
      return finding.message;
  }
  return "";
}

// Resolves the scenario under the first name in the space that gives the same
// order. Several names may give one order, and 1F1B should not be reported as
// one of the schedules that equal it.
absl::StatusOr<scenarios::ResolvedScenario> UnderFirstName(const Space& space,
                                                           Scenario scenario) {
  ASSIGN_OR_RETURN(scenarios::ResolvedScenario resolved,
                   scenarios::ResolveScenario(space.base.label, scenario));
  const size_t ranks = resolved.scenario.parallelism().pipeline();
  if (ranks >= space.schedules.size()) return resolved;
  const std::string name = FirstNameOfOrder(resolved, space.schedules[ranks]);
  if (name == resolved.scenario.schedule()) return resolved;
  scenario.set_schedule(name);
  return scenarios::ResolveScenario(space.base.label, scenario);
}

// Returns true if each GPU keeps the margin of its own memory free.
bool KeepsMargin(const scenarios::ResolvedScenario& resolved,
                 const Result& result, double memory_part) {
  for (int i = 0; i < result.ranks_size(); ++i) {
    const int device = resolved.gpu_device.empty()
                           ? 0
                           : resolved.gpu_device[resolved.placement.gpus[i]];
    const DeviceProfile& profile =
        device == 0 ? resolved.device : resolved.other_devices[device - 1];
    if (result.ranks(i).peak_memory_bytes() >
        memory_part * profile.memory_bytes().value()) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<Confirmed> Look(const Space& space, const Scenario& scenario) {
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario resolved,
                   UnderFirstName(space, scenario));
  Confirmed confirmed;
  ASSIGN_OR_RETURN(confirmed.result, sim::Simulate(resolved));
  *confirmed.plan.mutable_scenario() = resolved.scenario;
  confirmed.plan.set_runtime_executes(Executes(resolved.runtime, resolved));
  ASSIGN_OR_RETURN(
      confirmed.refused,
      LintErrors(resolved, static_cast<int>(confirmed.result.num_batches())));
  if (confirmed.refused.empty() &&
      !KeepsMargin(resolved, confirmed.result, space.memory_part)) {
    confirmed.refused = "does not fit";
  }
  if (space.power.has_value()) {
    ASSIGN_OR_RETURN(const StepEnergy energy,
                     EnergyOfStep(confirmed.result, *space.power, {}));
    confirmed.plan.set_joules_per_step(energy.joules());
    confirmed.plan.set_watts_per_gpu(energy.watts_per_gpu);
  }
  confirmed.result.clear_ranks();
  confirmed.result.clear_timeline();
  return confirmed;
}

// Serializes a child's answer: the plan, the result and the reason for refusal.
std::string Packed(const Confirmed& confirmed) {
  ConfirmedWork work;
  *work.mutable_scenario() = confirmed.plan.scenario();
  work.set_runtime_executes(confirmed.plan.runtime_executes());
  work.set_result(confirmed.result.SerializeAsString());
  work.set_refused(confirmed.refused);
  work.set_joules_per_step(confirmed.plan.joules_per_step());
  work.set_watts_per_gpu(confirmed.plan.watts_per_gpu());
  return work.SerializeAsString();
}

Confirmed Unpacked(const std::string& bytes) {
  ConfirmedWork work;
  work.ParseFromString(bytes);
  Confirmed confirmed;
  *confirmed.plan.mutable_scenario() = work.scenario();
  confirmed.plan.set_runtime_executes(work.runtime_executes());
  confirmed.result.ParseFromString(work.result());
  confirmed.refused = work.refused();
  confirmed.plan.set_joules_per_step(work.joules_per_step());
  confirmed.plan.set_watts_per_gpu(work.watts_per_gpu());
  return confirmed;
}

// Sets the fields that a ranked run and a full simulation share.
void FillPlan(const RankedPlan& found, double seconds, double bytes,
              double price, Plan* plan) {
  plan->set_source(found.source);
  plan->set_batch_seconds(seconds);
  plan->set_peak_memory_bytes(bytes);
  const double bound = std::min(found.lower_bound_seconds, seconds);
  plan->set_lower_bound_seconds(bound);
  if (bound > 0) plan->set_gap(seconds / bound - 1);
  plan->set_num_gpus(found.num_gpus);
  const double samples = plan->scenario().batch().global_batch_size();
  plan->set_samples_per_second(samples / seconds);
  plan->set_price_per_sample(price * found.num_gpus * seconds / samples /
                             kSecondsPerHour);
  plan->set_changes_training(ChangesTraining(plan->scenario().schedule()));
  for (const Scenario& other : found.equals) {
    const std::string difference = DifferenceOf(other, plan->scenario());
    // Empty if another search found the same plan.
    if (!difference.empty()) plan->add_equal_to(difference);
  }
}

int ShapeOf(const RankedPlan& found) {
  const int shape = found.place.first;
  return shape == RankedPlan::kOutside ? -1 : shape;
}

void Fill(const RankedPlan& found, double limit_bytes, double price,
          Confirmed* confirmed) {
  const Result& result = confirmed->result;
  FillPlan(found, result.batch_seconds(), result.peak_memory_bytes(), price,
           &confirmed->plan);
  if (result.has_batch_seconds_low()) {
    confirmed->plan.set_batch_seconds_low(result.batch_seconds_low());
    confirmed->plan.set_batch_seconds_high(result.batch_seconds_high());
  }
  if (result.has_peak_memory_bytes_low()) {
    confirmed->plan.set_peak_memory_bytes_low(result.peak_memory_bytes_low());
    confirmed->plan.set_peak_memory_bytes_high(result.peak_memory_bytes_high());
  }
  confirmed->plan.set_semantics(result.semantics());
  if (result.has_flops_per_batch()) {
    *confirmed->plan.mutable_flops_per_batch() = result.flops_per_batch();
  }
  if (result.has_model_flops_utilization()) {
    confirmed->plan.set_model_flops_utilization(
        result.model_flops_utilization());
  }
  confirmed->simulated = true;
  confirmed->shape = ShapeOf(found);
  if (confirmed->refused.empty() &&
      (!result.fits_memory() || result.peak_memory_bytes() > limit_bytes)) {
    confirmed->refused = "does not fit";
  }
}

}  // namespace

absl::StatusOr<std::vector<Confirmed>> Confirm(
    const Space& space, const std::vector<RankedPlan>& found, double price,
    int num_processes, const std::function<bool()>& stop) {
  std::vector<Confirmed> confirmed(found.size());
  Jobs jobs;
  jobs.num_jobs = static_cast<int>(found.size());
  jobs.num_processes = num_processes;
  jobs.run = [&](int job) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Confirmed one, Look(space, found[job].scenario));
    return Packed(one);
  };
  jobs.done = [&](int job, absl::StatusOr<std::string> output) {
    if (output.ok()) {
      confirmed[job] = Unpacked(*output);
      Fill(found[job], space.memory_limit_bytes, price, &confirmed[job]);
    } else if (!absl::IsCancelled(output.status())) {
      confirmed[job].refused = std::string(output.status().message());
      confirmed[job].simulated = true;
    }
  };
  jobs.stop = stop;
  RETURN_IF_ERROR(RunJobs(jobs));
  return confirmed;
}

Confirmed Unconfirmed(const Space& space, const RankedPlan& found,
                      double price) {
  Confirmed unconfirmed;
  const auto resolved = UnderFirstName(space, found.scenario);
  *unconfirmed.plan.mutable_scenario() =
      resolved.ok() ? resolved->scenario : found.scenario;
  unconfirmed.plan.set_runtime_executes(resolved.ok() &&
                                        Executes(resolved->runtime, *resolved));
  FillPlan(found, found.seconds, found.bytes, price, &unconfirmed.plan);
  if (found.joules > 0) {
    unconfirmed.plan.set_joules_per_step(found.joules);
    unconfirmed.plan.set_watts_per_gpu(found.joules / found.num_gpus /
                                       found.seconds);
  }
  unconfirmed.shape = ShapeOf(found);
  return unconfirmed;
}

}  // namespace weir::plan
