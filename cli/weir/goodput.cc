// SPDX-License-Identifier: Apache-2.0
#include "plan/goodput/goodput.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/options/overrides.h"
#include "cli/weir/commands.h"
#include "cli/weir/document_report.h"
#include "cli/weir/envelope.h"
#include "plan/goodput/goodput_views.h"
#include "scenarios/cluster/cluster.h"
#include "schedules/own_name.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

// Returns the predicted time of a step, with its interval if there is one.
absl::StatusOr<plan::StepTime> PredictStep(
    const scenarios::ResolvedScenario& scenario, const Flags& flags) {
  constexpr char kDoesNotFit[] = "the step does not fit in memory";
  if (flags.fast) {
    ASSIGN_OR_RETURN(const sim::FastEstimate run,
                     sim::FastSimulator().Estimate(scenario));
    if (!run.fits_memory) PrintWarning(kDoesNotFit, flags.output);
    return plan::StepTime{run.batch_seconds};
  }
  ProgressLine progress(flags.output);
  sim::SimulateOptions options;
  options.progress = [&](double done) {
    progress.Show(scenario.scenario.schedule(), done);
  };
  ASSIGN_OR_RETURN(const Result result, sim::Simulate(scenario, options));
  progress.Clear();
  if (!result.fits_memory()) PrintWarning(kDoesNotFit, flags.output);
  plan::StepTime step{result.batch_seconds()};
  if (result.has_batch_seconds_low()) {
    step.low_seconds = result.batch_seconds_low();
    step.high_seconds = result.batch_seconds_high();
  }
  return step;
}

constexpr int kUsualGpusPerNode = 8;

// Refuses flags that a scenario makes useless.
absl::Status CheckJobFlags(const GoodputFlags& goodput,
                           const scenarios::ResolvedScenario& scenario) {
  Problems problems("command line");
  constexpr char kGiven[] = "is given with a scenario, expected one of them";
  if (goodput.num_gpus > 0) problems.Add("--num-gpus", kGiven);
  // Given costs have no cluster and no tokens.
  if (!scenario.given_costs && goodput.gpus_per_node.has_value()) {
    problems.Add("--gpus-per-node", kGiven);
  }
  if (!scenario.given_costs && goodput.request.tokens_per_step > 0) {
    problems.Add("--tokens-per-step", kGiven);
  }
  return problems.ToStatus();
}

int NodesOf(const scenarios::ResolvedScenario& scenario, int gpus_per_node) {
  const int num_gpus = scenario.placement.num_gpus();
  if (!scenario.given_costs) {
    gpus_per_node = std::max(scenarios::NumGpus(scenario.cluster) /
                                 scenarios::NumNodes(scenario.cluster),
                             1);
  }
  return (num_gpus + gpus_per_node - 1) / gpus_per_node;
}

// Sets what the flags leave to the scenario.
absl::Status FillFromScenario(const Flags& flags,
                              plan::GoodputRequest* request) {
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario scenario,
                   ResolveFlags(flags.scenario, &flags.output));
  const GoodputFlags& goodput = flags.goodput;
  RETURN_IF_ERROR(CheckJobFlags(goodput, scenario));
  request->name =
      absl::StrCat(scenario.label, ", ",
                   schedules::OwnScheduleName(scenario.scenario.schedule()));
  request->job = {
      scenario.placement.num_gpus(),
      NodesOf(scenario, static_cast<int>(goodput.gpus_per_node.value_or(
                            kUsualGpusPerNode)))};
  if (request->step.seconds == 0) {
    ASSIGN_OR_RETURN(request->step, PredictStep(scenario, flags));
  }
  if (request->checkpoint.bytes == 0) {
    ASSIGN_OR_RETURN(request->checkpoint.bytes,
                     plan::CheckpointBytes(scenario));
  }
  const Batch& batch = scenario.scenario.batch();
  if (request->tokens_per_step == 0 && !scenario.given_costs) {
    request->tokens_per_step =
        1.0 * batch.global_batch_size() * batch.sequence_length();
  }
  if (goodput.elastic) {
    request->num_elastic_replicas =
        static_cast<int>(scenario.scenario.parallelism().data());
  }
  for (const std::string& warning : scenario.warnings) {
    PrintWarning(warning, flags.output);
  }
  return absl::OkStatus();
}

absl::Status FillFromFlags(const Flags& flags, plan::GoodputRequest* request) {
  const GoodputFlags& goodput = flags.goodput;
  if (goodput.num_gpus == 0 || request->step.seconds == 0 ||
      request->checkpoint.bytes == 0) {
    return absl::InvalidArgumentError(
        "command line: no scenario is given, expected one, or --step-seconds, "
        "--num-gpus and --checkpoint-bytes");
  }
  if (goodput.elastic) {
    return absl::InvalidArgumentError(
        "command line: --elastic needs the replicas of a scenario, found none");
  }
  const int gpus_per_node =
      static_cast<int>(goodput.gpus_per_node.value_or(kUsualGpusPerNode));
  const int num_gpus = static_cast<int>(goodput.num_gpus);
  request->name = "command line";
  request->job = {num_gpus, (num_gpus + gpus_per_node - 1) / gpus_per_node};
  return absl::OkStatus();
}

bool HasScenario(const ScenarioFlags& flags) {
  const ImportFlags& imports = flags.imports;
  return !flags.scenario.empty() || !flags.costs.empty() ||
         !flags.overrides.model().empty() || !imports.megatron_args.empty() ||
         !imports.sbatch.empty() || !imports.nemo.empty() ||
         !imports.torchtitan.empty();
}

absl::StatusOr<plan::GoodputRequest> GoodputRequestOf(const Flags& flags) {
  const GoodputFlags& goodput = flags.goodput;
  plan::GoodputRequest request = goodput.request;
  ASSIGN_OR_RETURN(request.reliability,
                   plan::LoadReliability(goodput.reliability));
  if (!goodput.mtbf.empty()) {
    RETURN_IF_ERROR(plan::OverrideRates(goodput.mtbf, &request.reliability));
  }
  if (goodput.detection_seconds.has_value()) {
    request.reliability.set_detection_seconds(*goodput.detection_seconds);
  }
  if (goodput.restart_seconds.has_value()) {
    request.reliability.set_restart_seconds(*goodput.restart_seconds);
  }
  if (goodput.num_spares.has_value()) {
    request.num_spares = static_cast<int>(*goodput.num_spares);
  }
  if (goodput.async_save &&
      goodput.checkpoint.value_or(plan::CheckpointMode::kAsync) !=
          plan::CheckpointMode::kAsync) {
    return absl::InvalidArgumentError(
        "command line: --async-save is given with another --checkpoint, "
        "expected async or one of the two flags");
  }
  if (goodput.checkpoint.has_value()) {
    request.checkpoint.mode = *goodput.checkpoint;
  }
  if (goodput.async_save) {
    request.checkpoint.mode = plan::CheckpointMode::kAsync;
  }
  request.interval_steps = goodput.interval_steps;
  request.num_runs = static_cast<int>(goodput.num_runs);
  request.seed = goodput.seed;
  if (request.checkpoint.storage_bytes_per_second == 0 &&
      request.checkpoint.mode != plan::CheckpointMode::kInMemory) {
    return absl::InvalidArgumentError(
        "command line: --checkpoint-bandwidth is not given, expected bytes per "
        "second of storage, or --checkpoint in-memory");
  }
  RETURN_IF_ERROR(HasScenario(flags.scenario)
                      ? FillFromScenario(flags, &request)
                      : FillFromFlags(flags, &request));
  return request;
}

absl::StatusOr<plan::GoodputReport> PredictWithProgress(const Flags& flags) {
  RETURN_IF_ERROR(CheckDocumentReport(flags.output));
  ASSIGN_OR_RETURN(const plan::GoodputRequest request, GoodputRequestOf(flags));
  ElapsedLine line(flags.output, "simulating failures");
  return plan::PredictGoodput(request);
}

}  // namespace

int RunGoodput(const Flags& flags) {
  const absl::StatusOr<plan::GoodputReport> report = PredictWithProgress(flags);
  if (!report.ok()) return PrintError(report.status(), flags.output);
  const auto json = [&] {
    return Envelope(flags.command, plan::GoodputConfigJson(*report),
                    plan::GoodputJson(*report));
  };
  absl::Status done =
      PrintResult(flags.output.format == OutputFlags::Format::kJson
                      ? json()
                      : plan::GoodputTable(*report));
  done.Update(WriteDocumentReport(flags.output, json));
  return done.ok() ? kExitOk : PrintError(done, flags.output);
}

}  // namespace weir::cli
