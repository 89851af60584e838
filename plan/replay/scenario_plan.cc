// SPDX-License-Identifier: Apache-2.0
#include "plan/replay/scenario_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "calibrate/execute/host_memory.h"
#include "models/layer_work.h"
#include "results/result_enums.h"
#include "scenarios/stage_cut.h"
#include "schedules/semantics.h"
#include "schedules/source.h"
#include "sim/costs/work_spec.h"
#include "sim/simulate.h"

namespace weir::plan {
namespace {

constexpr int kDefaultCompressedBits = 8;

calibrate::ElementFormat FormatOf(Precision precision) {
  if (precision == FP32) return calibrate::ElementFormat::kFp32;
  return precision == MIXED_BF16 ? calibrate::ElementFormat::kBf16
                                 : calibrate::ElementFormat::kFp16;
}

void CheckParallelism(const Scenario& scenario, Problems* problems) {
  const auto one = [&](absl::string_view field, uint32_t found,
                       absl::string_view flag) {
    if (found <= 1) return;
    problems->Add(
        absl::StrCat("parallelism.", field),
        absl::StrCat("is ", found,
                     ", expected 1: a replay runs a single pipeline (", flag,
                     " 1)"));
  };
  one("tensor", scenario.parallelism().tensor(), "--tp");
  one("data", scenario.parallelism().data(), "--dp");
  one("context", scenario.parallelism().context(), "--cp");
  one("expert", scenario.parallelism().expert(), "--ep");
  if (scenario.parallelism().vocabulary_parallel() !=
      VOCABULARY_PARALLEL_UNSPECIFIED) {
    problems->Add("parallelism.vocabulary_parallel",
                  "is given, expected none: the first and the last stage have "
                  "the vocabulary");
  }
  if (scenario.batch().has_packed_sequences()) {
    problems->Add("batch.packed_sequences",
                  "is given, expected none: a sequence is one document");
  }
}

void CheckTraining(const Scenario& scenario, Problems* problems) {
  const Training& training = scenario.training();
  const auto refuse = [&](bool found, absl::string_view field,
                          absl::string_view what) {
    if (found) problems->Add(absl::StrCat("training.", field), what);
  };
  refuse(
      training.recompute() > RECOMPUTE_NONE, "recompute",
      "is on, expected none: stages save all activations (--recompute none)");
  refuse(!training.recipe().empty(), "recipe",
         "is given, expected none: stages compute in 16 or 32 bits "
         "(--precision bf16)");
  refuse(training.attention_format() != OPERAND_16_BIT, "attention_format",
         "is given, expected none: stages compute in 16 or 32 bits");
  refuse(training.lora().rank() > 0, "lora",
         "is given, expected none: stages train all weights");
  refuse(training.optimizer() == MUON || training.optimizer() == DIST_MUON,
         "optimizer", "is Muon, expected adam or sgd (--optimizer adam)");
  refuse(training.cpu_offloading_num_layers() > 0, "cpu_offloading_num_layers",
         "is above 0, expected 0: stages keep activations on the GPU");
  refuse(training.optimizer_offload_fraction() > 0,
         "optimizer_offload_fraction",
         "is above 0, expected 0: stages keep optimizer states on the GPU");
  refuse(training.precision() != FP32 && !training.fp32_gradients(),
         "fp32_gradients",
         "is off, expected on: stages accumulate gradients in fp32 "
         "(--fp32-gradients)");
  refuse(training.fully_sharded(), "fully_sharded",
         "is on, expected off: a replay has no data-parallel ranks");
  refuse(training.distributed_optimizer(), "distributed_optimizer",
         "is on, expected off: a replay has no data-parallel ranks");
  if (scenario.communication().transfers() == BLOCKING) {
    problems->Add("communication.transfers",
                  "is blocking, expected overlapped: ranks compute while they "
                  "send (--transfers overlapped)");
  }
}

// A stashed version has the format of the weights that passes compute with.
void CheckStash(const Scenario& scenario, int num_versions,
                Problems* problems) {
  const Training& training = scenario.training();
  const double given = training.stash_bytes_per_parameter();
  const double found = given > 0 ? given : 4;
  const int kept = calibrate::BytesOf(FormatOf(training.precision()));
  if (num_versions < 2 || found == kept) return;
  problems->Add(
      "training.stash_bytes_per_parameter",
      absl::StrCat("is ", found, ", expected ", kept,
                   ": a replay keeps versions in the weights' own format "
                   "(--stash-bytes-per-parameter ",
                   kept, ")"));
}

void CheckGpu(const scenarios::ResolvedScenario& resolved,
              const ReplaySettings& settings, Problems* problems) {
  const Training& training = resolved.scenario.training();
  if (training.precision() == FP32) {
    problems->Add("training.precision",
                  "is fp32, expected bf16 or fp16 on a GPU (--precision bf16), "
                  "or --cpu");
  }
  const int num_ranks = resolved.placement.pipeline;
  if (settings.num_partitions > 0 && settings.num_partitions != num_ranks) {
    problems->Add("parallelism.pipeline",
                  absl::StrCat("is ", num_ranks, ", but --partitions is ",
                               settings.num_partitions,
                               ", expected one partition per rank"));
  }
}

absl::Status CheckScenario(const scenarios::ResolvedScenario& resolved,
                           const ReplaySettings& settings) {
  const Scenario& scenario = resolved.scenario;
  Problems problems(resolved.label);
  if (resolved.given_costs) {
    problems.Add("costs", "are given (--costs), expected a model to train");
    return problems.ToStatus();
  }
  if (!resolved.model.has_transformer()) {
    problems.Add("model",
                 "consists of measured layers, expected a transformer");
  } else if (resolved.model.transformer().num_experts() > 0) {
    problems.Add("model", "has experts, expected none");
  }
  if (resolved.runtime.name() != "weir") {
    problems.Add(
        "runtime",
        absl::StrCat(
            "is ", resolved.runtime.name(),
            ", expected weir, whose kernels replays run (--runtime weir)"));
  }
  if (!resolved.other_devices.empty()) {
    problems.Add("cluster", "has different kinds of GPUs, expected one kind");
  }
  CheckParallelism(scenario, &problems);
  CheckTraining(scenario, &problems);
  if (settings.on_gpu) CheckGpu(resolved, settings, &problems);
  return problems.ToStatus();
}

// What the simulator decides about a replay.
struct Predicted {
  int num_batches = 1;             // as many as it examines
  std::vector<double> peak_bytes;  // [rank]
};

// Returns the peak of what a rank allocates itself, without context, libraries
// and communicators.
double AllocatedPeak(const RankResult& rank) {
  double bytes = rank.peak_memory_bytes() - rank.communicator_bytes();
  for (const MemoryClass& memory : rank.peak_memory_classes()) {
    if (memory.name() == results::NameOf(MemoryClass::RESERVED)) {
      bytes -= memory.bytes();
    }
  }
  return bytes;
}

absl::StatusOr<Predicted> Predict(const scenarios::ResolvedScenario& resolved,
                                  const ReplaySettings& settings) {
  ASSIGN_OR_RETURN(const bool flush,
                   schedules::ScheduleFlushes(resolved.scenario.schedule()));
  Predicted predicted;
  if (flush && !settings.on_gpu) return predicted;
  ASSIGN_OR_RETURN(const Result result, sim::Simulate(resolved));
  if (!flush) predicted.num_batches = static_cast<int>(result.num_batches());
  for (const RankResult& rank : result.ranks()) {
    predicted.peak_bytes.push_back(AllocatedPeak(rank));
  }
  return predicted;
}

absl::Status CheckSchedule(const scenarios::ResolvedScenario& resolved,
                           const schedules::Schedule& schedule) {
  ASSIGN_OR_RETURN(const schedules::Semantics semantics,
                   schedules::InterpretSchedule(schedule));
  Problems problems(resolved.label);
  CheckStash(resolved.scenario,
             *std::max_element(semantics.max_live_versions.begin(),
                               semantics.max_live_versions.end()),
             &problems);
  return problems.ToStatus();
}

calibrate::StageOptimizer OptimizerOf(const Training& training,
                                      double learning_rate) {
  calibrate::StageOptimizer optimizer;
  optimizer.kind = training.optimizer();
  const double usual =
      optimizer.kind == SGD_MOMENTUM ? kSgdLearningRate : kAdamLearningRate;
  optimizer.learning_rate = learning_rate > 0 ? learning_rate : usual;
  return optimizer;
}

// Sets the links for the bytes that stages send, which are the same everywhere.
void SetLinks(const scenarios::ResolvedScenario& resolved,
              calibrate::ExecutionPlan* plan) {
  double bytes = 0;
  for (const auto& program : plan->programs) {
    if (program->output < 0) continue;
    bytes = std::max<double>(bytes, program->buffers[program->output].bytes());
  }
  if (plan->schedule.compressed_transfers) {
    bytes *=
        plan->compressed_bits / (8.0 * calibrate::BytesOf(plan->spec.format));
  }
  const int num_ranks = plan->schedule.num_ranks;
  for (int from = 0; from < num_ranks; ++from) {
    for (int to = 0; to < num_ranks; ++to) {
      calibrate::LinkSpec link;
      if (from != to && bytes > 0) {
        const sim::UncontendedTransfer alone =
            sim::TransferAlone(resolved, from, to, bytes);
        link.latency_seconds = alone.latency_seconds;
        link.bytes_per_second =
            alone.link_seconds > 0 ? bytes / alone.link_seconds : 0;
      }
      plan->links[from * num_ranks + to] = link;
    }
  }
}

}  // namespace

absl::StatusOr<calibrate::ExecutionPlan> PlanOfScenario(
    const scenarios::ResolvedScenario& resolved,
    const ReplaySettings& settings) {
  RETURN_IF_ERROR(CheckScenario(resolved, settings));
  const Training& training = resolved.scenario.training();
  calibrate::ExecutionRequest request;
  ASSIGN_OR_RETURN(const Predicted predicted, Predict(resolved, settings));
  ASSIGN_OR_RETURN(request.schedule,
                   sim::ScheduleOfScenario(resolved, predicted.num_batches));
  RETURN_IF_ERROR(CheckSchedule(resolved, request.schedule));
  request.model = resolved.model;
  request.spec.work = sim::MakeWorkSpec(resolved);
  request.spec.format = FormatOf(training.precision());
  request.spec.dropout = training.dropout() ? kDropout : 0;
  request.spec.fused_attention = training.flash_attention();
  ASSIGN_OR_RETURN(
      const models::Partition partition,
      scenarios::CutIntoStages(
          resolved, models::LayersOf(request.model, request.spec.work),
          request.schedule.num_stages));
  request.first_layer = partition.first;
  request.optimizer = OptimizerOf(training, settings.learning_rate);
  request.num_steps = request.schedule.flush ? settings.num_steps : 1;
  request.seed = settings.seed;
  absl::StatusOr<calibrate::ExecutionPlan> plan =
      calibrate::MakeExecutionPlan(request);
  if (!plan.ok()) {
    return absl::Status(
        plan.status().code(),
        absl::StrCat(resolved.label, ": ", plan.status().message()));
  }
  const int bits = static_cast<int>(
      resolved.scenario.communication().compressed_bits_per_element());
  plan->compressed_bits = plan->schedule.compressed_transfers
                              ? (bits > 0 ? bits : kDefaultCompressedBits)
                              : 0;
  plan->timeout_seconds = settings.timeout_seconds;
  if (!settings.on_gpu) {
    absl::Status fits = calibrate::CheckHostMemory(*plan);
    fits.Update(calibrate::CheckHostSize(*plan, settings.is_checked ? 2 : 1));
    if (!fits.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(resolved.label, ": ", fits.message()));
    }
  }
  plan->returns_weights = settings.is_checked;
  plan->predicted_peak_bytes = predicted.peak_bytes;
  SetLinks(resolved, &*plan);
  return plan;
}

}  // namespace weir::plan
