// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/estimator.h"

#include <time.h>

#include <filesystem>
#include <system_error>

#include "base/status_macros.h"
#include "plan/sweep/point.h"
#include "scenarios/sizes.h"
#include "schedules/source.h"

namespace weir::python {
namespace {

constexpr size_t kMostResolved = 16;

double ThreadSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

bool MayBeFile(const std::string& name) {
  std::error_code error;
  return !name.empty() && std::filesystem::exists(name, error);
}

// Returns a cache key: scenarios with equal keys load the same files and
// presets (and, if not given, have the same data-parallel size), so that they
// may share them (scenarios::ResolveAgain). Returns an empty key if the
// scenario depends on files that may change.
std::string LoadKey(const Scenario& scenario) {
  const Parallelism& sizes = scenario.parallelism();
  if (scenario.has_costs() || sizes.num_gpus() > 0 ||
      schedules::IsScheduleFile(scenario.schedule())) {
    return "";
  }
  for (const std::string* name :
       {&scenario.model(), &scenario.cluster(), &scenario.profile(),
        &scenario.runtime(), &scenario.defaults(),
        &scenario.training().recipe()}) {
    if (MayBeFile(*name)) return "";
  }
  Scenario files = scenario;
  files.clear_name();
  files.clear_schedule();
  files.clear_parallelism();
  files.clear_batch();
  files.clear_num_batches();
  files.clear_communication();
  if (sizes.data() == 0) {
    Parallelism& kept = *files.mutable_parallelism();
    kept.set_tensor(sizes.tensor());
    kept.set_pipeline(sizes.pipeline());
    kept.set_context(sizes.context());
  }
  return files.SerializeAsString();
}

// Does what ResolveScenario does, with the files of `resolved`.
absl::Status ResolveWithFiles(const std::string& label, Scenario scenario,
                              scenarios::ResolvedScenario* resolved) {
  resolved->label = label;
  Parallelism& sizes = *scenario.mutable_parallelism();
  if (sizes.data() == 0) {
    sizes.set_data(resolved->scenario.parallelism().data());
  }
  RETURN_IF_ERROR(scenarios::FillSizes(label, &scenario));
  return scenarios::ResolveAgain(scenario, resolved);
}

}  // namespace

absl::StatusOr<Estimate> Estimator::Run(const std::string& label,
                                        const Scenario& scenario) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const double begin = ThreadSeconds();
  absl::StatusOr<Estimate> estimate = RunLocked(label, scenario);
  seconds_ += ThreadSeconds() - begin;
  return estimate;
}

absl::StatusOr<Estimate> Estimator::RunLocked(const std::string& label,
                                              const Scenario& scenario) {
  const std::string files = LoadKey(scenario);
  if (!files.empty()) {
    for (auto known = resolved_.begin(); known != resolved_.end(); ++known) {
      if (known->first != files) continue;
      resolved_.splice(resolved_.begin(), resolved_, known);
      // Errors are those of ResolveScenario, which reports all of them.
      if (ResolveWithFiles(label, scenario, &known->second).ok()) {
        return Simulate(known->second);
      }
      break;
    }
  }
  ASSIGN_OR_RETURN(scenarios::ResolvedScenario resolved,
                   scenarios::ResolveScenario(label, scenario));
  absl::StatusOr<Estimate> estimate = Simulate(resolved);
  if (!files.empty() &&
      (resolved_.empty() || resolved_.front().first != files)) {
    resolved_.emplace_front(files, std::move(resolved));
    if (resolved_.size() > kMostResolved) resolved_.pop_back();
  }
  return estimate;
}

absl::StatusOr<Estimate> Estimator::Simulate(
    const scenarios::ResolvedScenario& scenario) {
  if (!simulator_.has_value()) simulator_.emplace();
  Estimate estimate;
  ASSIGN_OR_RETURN(estimate.run, simulator_->Estimate(scenario));
  estimate.values.set_num_gpus(scenario.placement.num_gpus());
  estimate.values.set_chunks(scenario.scenario.parallelism().chunks());
  estimate.values.set_microbatches(scenario.num_microbatches);
  plan::FillFigures(estimate.run, scenario, &estimate.values);
  return estimate;
}

}  // namespace weir::python
