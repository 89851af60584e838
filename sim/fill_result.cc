// SPDX-License-Identifier: Apache-2.0
#include "sim/fill_result.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/textproto.h"
#include "base/version.h"
#include "models/expert_load.h"
#include "schedules/semantics.h"
#include "sim/fill_batch.h"
#include "sim/fill_ranks.h"
#include "sim/report/host_copies.h"
#include "sim/report/shared_links.h"
#include "sim/report/slack.h"
#include "sim/report/timeline.h"
#include "sim/simulate.h"

namespace weir::sim {
namespace {

// Sets only what differs from usual.
void FillExperts(const scenarios::ResolvedScenario& resolved, Result* result) {
  const Parallelism& parallelism = resolved.scenario.parallelism();
  const uint32_t each = parallelism.expert_tensor();
  if (each > 0 && each != parallelism.tensor()) {
    result->set_expert_tensor_parallel(each);
  }
  if (parallelism.data_replicate() > 1) {
    result->set_data_replicate(parallelism.data_replicate());
  }
  const double load =
      models::ExpertLoad(resolved.model.transformer(),
                         resolved.scenario.training().expert_imbalance(),
                         static_cast<int>(parallelism.expert()));
  if (load > 1) result->set_expert_load(load);
}

void FillShape(const scenarios::ResolvedScenario& resolved,
               const SimulatedRun& run, Result* result) {
  const Scenario& scenario = resolved.scenario;
  result->set_name(scenario.name());
  result->set_schedule(run.schedule.name);
  result->set_method("full");
  ResultProvenance* provenance = result->mutable_provenance();
  provenance->set_weir_version(std::string(WeirVersion()));
  provenance->set_git_revision(std::string(GitRevision()));
  provenance->set_simgrid_version(SimGridVersion());
  provenance->set_scenario(PrintTextProto(scenario));
  const DeviceProfile& device = resolved.device;
  provenance->set_gpu_name(device.provenance().gpu_name());
  provenance->set_gpu_hash(device.provenance().gpu_hash());
  provenance->set_of_replays(device.purpose() == DeviceProfile::REPLAYS);
  result->set_tensor_parallel(resolved.placement.tensor);
  result->set_pipeline_parallel(resolved.placement.pipeline);
  const int context =
      std::max(static_cast<int>(scenario.parallelism().context()), 1);
  result->set_data_parallel(resolved.placement.data / context);
  if (context > 1) result->set_context_parallel(context);
  FillExperts(resolved, result);
  result->set_chunks(
      std::max(run.schedule.num_stages / run.schedule.num_ranks, 1));
  result->set_microbatch_size(scenario.batch().microbatch_size());
  result->set_global_batch_size(scenario.batch().global_batch_size());
  result->set_sequence_length(scenario.batch().sequence_length());
  result->set_num_microbatches(run.schedule.num_microbatches);
  result->set_num_batches(run.schedule.num_batches);
  result->set_forward_only(run.schedule.forward_only);
}

double TimelineBegin(const SimulatedRun& run, int num_batches) {
  if (num_batches == 0 || run.schedule.num_batches <= 2 * num_batches) return 0;
  return std::max(
      run.window.end_seconds - num_batches * run.window.batch_seconds(), 0.0);
}

}  // namespace

PipelineInputs InputsOf(const scenarios::ResolvedScenario& scenario,
                        const scenarios::Network& network,
                        const SimulatedRun& run) {
  return {run.schedule, run.semantics,      run.costs,
          network,      scenario.placement, scenario.scenario.communication()};
}

DefaultsOfResult ReportDefaults(const scenarios::UsedDefaults& used) {
  DefaultsOfResult defaults;
  defaults.set_set(used.set);
  defaults.mutable_used()->Assign(used.used.begin(), used.used.end());
  defaults.mutable_not_used()->Assign(used.not_used.begin(),
                                      used.not_used.end());
  return defaults;
}

Result MakeResult(const scenarios::ResolvedScenario& scenario,
                  const scenarios::Network& network, const SimulatedRun& run,
                  const SimulateOptions& options) {
  const PipelineInputs inputs = InputsOf(scenario, network, run);
  Result result;
  FillShape(scenario, run, &result);
  if (DefaultsOfResult defaults = ReportDefaults(scenario.used_defaults);
      !defaults.used().empty() || !defaults.not_used().empty()) {
    *result.mutable_defaults() = std::move(defaults);
  }
  for (const std::string& warning : scenario.warnings) {
    result.add_warnings(warning);
  }
  result.set_semantics(schedules::Verdict(run.schedule, run.semantics));
  FillBatch(scenario, inputs, run, &result);
  if (options.keep_timeline) {
    result.mutable_timeline()->set_from_seconds(
        TimelineBegin(run, options.timeline_batches));
  }
  FillRanks(scenario, inputs, run, options.keep_timeline, &result);
  if (options.keep_timeline) {
    FillTimeline(inputs, run.graph, run.recording, result.mutable_timeline());
    FillHostCopies(inputs, run.graph, run.recording, &result);
    FillSharedLinks(network, run.graph, run.recording, &result);
    FillSlack(
        SlackOfRun(run.schedule, run.graph, run.recording, network.links()),
        &result);
  }
  return result;
}

}  // namespace weir::sim
