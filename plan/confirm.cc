// SPDX-License-Identifier: Apache-2.0
#include "plan/confirm.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/processes.h"
#include "base/status_macros.h"
#include "scenarios/scenario.h"
#include "schedules/lint.h"
#include "schedules/registry.h"
#include "sim/simulate.h"

namespace weir {
namespace {

constexpr double kSecondsPerHour = 3600;

// What the linter says of the order that is simulated; empty: nothing.
absl::StatusOr<std::string> LintErrors(const ResolvedScenario& resolved,
                                       int num_batches) {
  ASSIGN_OR_RETURN(const Schedule schedule,
                   ScheduleOfScenario(resolved, num_batches));
  const LintReport report = LintSchedule(schedule, {});
  for (const Finding& finding : report.findings) {
    if (finding.severity == Finding::Severity::kError) return finding.message;
  }
  return "";
}

absl::StatusOr<Confirmed> Look(const std::string& label,
                               const Scenario& scenario) {
  ASSIGN_OR_RETURN(const ResolvedScenario resolved,
                   ResolveScenario(label, scenario));
  Confirmed confirmed;
  ASSIGN_OR_RETURN(confirmed.result, Simulate(resolved));
  *confirmed.plan.mutable_scenario() = resolved.scenario;
  ASSIGN_OR_RETURN(
      confirmed.refused,
      LintErrors(resolved, static_cast<int>(confirmed.result.num_batches())));
  confirmed.result.clear_ranks();
  confirmed.result.clear_timeline();
  return confirmed;
}

// A child's answer: the plan, the result, the reason.
std::string Packed(const Confirmed& confirmed) {
  ConfirmedWork work;
  *work.mutable_scenario() = confirmed.plan.scenario();
  work.set_result(confirmed.result.SerializeAsString());
  work.set_refused(confirmed.refused);
  return work.SerializeAsString();
}

Confirmed Unpacked(const std::string& bytes) {
  ConfirmedWork work;
  work.ParseFromString(bytes);
  Confirmed confirmed;
  *confirmed.plan.mutable_scenario() = work.scenario();
  confirmed.result.ParseFromString(work.result());
  confirmed.refused = work.refused();
  return confirmed;
}

bool ChangesTraining(const std::string& schedule) {
  const auto kind = FindScheduleKind(schedule);
  return kind.ok() && (!(*kind)->flush || (*kind)->name == "accept");
}

void Fill(const Found& found, double limit_bytes, double price,
          Confirmed* confirmed) {
  const Result& result = confirmed->result;
  Plan& plan = confirmed->plan;
  plan.set_source(found.source);
  plan.set_batch_seconds(result.batch_seconds());
  plan.set_peak_memory_bytes(result.peak_memory_bytes());
  const double bound =
      std::min(found.lower_bound_seconds, result.batch_seconds());
  plan.set_lower_bound_seconds(bound);
  if (bound > 0) plan.set_gap(result.batch_seconds() / bound - 1);
  plan.set_num_gpus(found.num_gpus);
  const double samples = plan.scenario().batch().global_batch_size();
  plan.set_samples_per_second(samples / result.batch_seconds());
  plan.set_price_per_sample(price * found.num_gpus * result.batch_seconds() /
                            samples / kSecondsPerHour);
  plan.set_changes_training(ChangesTraining(plan.scenario().schedule()));
  plan.set_semantics(result.semantics());
  if (confirmed->refused.empty() &&
      (!result.fits_memory() || result.peak_memory_bytes() > limit_bytes)) {
    confirmed->refused = "does not fit";
  }
}

}  // namespace

absl::StatusOr<std::vector<Confirmed>> Confirm(const std::string& label,
                                               const std::vector<Found>& found,
                                               double limit_bytes, double price,
                                               int num_processes) {
  std::vector<Confirmed> confirmed(found.size());
  Jobs jobs;
  jobs.num_jobs = static_cast<int>(found.size());
  jobs.num_processes = num_processes;
  jobs.run = [&](int job) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Confirmed one, Look(label, found[job].scenario));
    return Packed(one);
  };
  bool cancelled = false;
  jobs.done = [&](int job, absl::StatusOr<std::string> output) {
    if (output.ok()) {
      confirmed[job] = Unpacked(*output);
      Fill(found[job], limit_bytes, price, &confirmed[job]);
    } else {
      cancelled = cancelled || absl::IsCancelled(output.status());
      confirmed[job].refused = std::string(output.status().message());
    }
  };
  jobs.stop = [&] { return cancelled; };
  RETURN_IF_ERROR(RunJobs(jobs));
  if (cancelled) return absl::CancelledError("interrupted");
  return confirmed;
}

}  // namespace weir
