// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/megatron_settings.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "calibrate/profile/runtime.h"
#include "models/recipe.h"
#include "plan/frameworks/megatron_combinations.h"
#include "scenarios/cuda_graphs.h"
#include "scenarios/recomputation.h"

namespace weir::plan {
namespace {

void FinishBatch(uint32_t num_gpus, MegatronSettings* settings) {
  Batch& batch = settings->batch();
  const Parallelism& parallelism = settings->parallelism();
  batch.set_microbatch_size(std::max(batch.microbatch_size(), 1u));
  const uint32_t group = parallelism.tensor() * parallelism.pipeline() *
                         std::max(parallelism.context(), 1u);
  if (batch.global_batch_size() > 0 || num_gpus < group) return;
  batch.set_global_batch_size(batch.microbatch_size() * (num_gpus / group));
  if (settings->flags != nullptr &&
      settings->flags->batch().global_batch_size() > 0) {
    return;
  }
  settings->notes.push_back("one microbatch per batch, the default");
}

// Drops what has no effect.
void FinishContext(Parallelism* parallelism) {
  if (parallelism->context() <= 1) {
    parallelism->clear_context();
    parallelism->clear_context_method();
  } else if (parallelism->context_method() == CONTEXT_METHOD_UNSPECIFIED) {
    parallelism->set_context_method(CONTEXT_P2P);
  }
  if (parallelism->context_method() != CONTEXT_A2A_P2P) {
    parallelism->clear_hierarchical_context();
  }
}

// Sets switches that are off or on by default.
void FinishParallelism(MegatronSettings* settings) {
  Parallelism& parallelism = settings->parallelism();
  parallelism.set_tensor(std::max(parallelism.tensor(), 1u));
  parallelism.set_pipeline(std::max(parallelism.pipeline(), 1u));
  parallelism.set_expert(std::max(parallelism.expert(), 1u));
  if (settings->expert_tensor != parallelism.tensor()) {
    parallelism.set_expert_tensor(settings->expert_tensor);
  }
  FinishContext(&parallelism);
  if (parallelism.order().empty()) parallelism.set_order("tp-dp-pp");
  // Megatron-LM turns it off without tensor parallelism.
  parallelism.set_sequence_parallel(parallelism.sequence_parallel() &&
                                    parallelism.tensor() > 1);
}

void FinishTraining(MegatronSettings* settings) {
  Training& training = settings->training();
  const bool half = training.precision() != FP32;
  if (!settings->fused_attention.has_value() && half) {
    settings->notes.push_back(
        "fused attention, since the framework chooses the backend");
  }
  training.set_flash_attention(settings->fused_attention.value_or(half));
  training.set_fully_sharded(training.fully_sharded());
  training.set_distributed_optimizer(training.distributed_optimizer());
  training.set_post_validation(false);
  if (training.optimizer() == OPTIMIZER_UNSPECIFIED) {
    training.set_optimizer(ADAM);
  }
  if (training.optimizer() == MUON || training.optimizer() == DIST_MUON) {
    training.set_muon_num_ns_steps(settings->muon_num_ns_steps);
  }
  // Its ranks own matrices without --use-distributed-optimizer.
  if (training.optimizer() == DIST_MUON) {
    training.set_distributed_optimizer(true);
  }
  if (settings->optimizer_cpu_offload) {
    training.set_optimizer_offload_fraction(
        settings->optimizer_offload_fraction);
  }
  // Without the granularity, Megatron-LM ignores the other arguments.
  scenarios::SetRecompute(scenarios::RecomputeOf(training), &training);
}

void FinishCudaGraphs(MegatronSettings* settings, Problems* problems) {
  Training& training = settings->training();
  // Off unless given, also if the runtime fuses it.
  if (settings->model().num_experts() > 0) {
    training.set_moe_router_fusion(training.moe_router_fusion());
  }
  // Megatron-LM ignores the scope without the program that makes graphs.
  if (!settings->cuda_graphs) {
    training.clear_cuda_graph_scope();
  } else if (training.cuda_graph_scope().empty()) {
    problems->Add(
        settings->NameOf("cuda-graph-impl"),
        absl::StrCat("requires ", settings->NameOf("cuda-graph-scope"),
                     ", without which its meaning depends on the version"));
  } else if (scenarios::LaunchesWholeSteps(training) &&
             !settings->local_graphs) {
    problems->Add(settings->NameOf("cuda-graph-scope"),
                  absl::StrCat("is full_iteration, which requires ",
                               settings->NameOf("cuda-graph-impl"), " local"));
  }
}

void FinishDispatcher(MegatronSettings* settings, Problems* problems) {
  if (!settings->flex_dispatcher) return;
  if (settings->deepep == settings->hybridep) {
    problems->Add(
        settings->NameOf("moe-token-dispatcher-type"),
        absl::StrCat("is flex, expected ", settings->deepep ? "either " : "",
                     settings->NameOf("moe-enable-deepep"), " or ",
                     settings->NameOf("moe-flex-dispatcher-backend"),
                     " hybridep with it",
                     settings->deepep ? ""
                                      : ": other programs of this dispatcher "
                                        "are not simulated"));
    return;
  }
  Communication& communication = settings->communication();
  communication.set_token_dispatcher(settings->hybridep ? TOKENS_HYBRID_EP
                                                        : TOKENS_DEEPEP);
  communication.set_dispatch_multiprocessors(
      settings->hybridep ? settings->hybridep_multiprocessors
                         : settings->deepep_multiprocessors);
}

void FinishCommunication(MegatronSettings* settings) {
  Communication& communication = settings->communication();
  if (communication.gradient_reduction() == REDUCTION_UNSPECIFIED) {
    communication.set_gradient_reduction(REDUCTION_BLOCKING);
  }
  // Megatron-LM overlaps transfers between pipeline ranks only if it
  // interleaves.
  const bool interleaved = settings->scenario.schedule() == "interleaved-1f1b";
  communication.set_transfers(
      settings->overlap_p2p &&
              (interleaved || settings->parallelism().pipeline() == 1)
          ? OVERLAPPED
          : BLOCKING);
}

// Sets the switches of the runtime that differ from those of its preset.
absl::Status FinishRuntime(MegatronSettings* settings) {
  ASSIGN_OR_RETURN(const Runtime preset,
                   calibrate::LoadRuntime(settings->runtime));
  Scenario& scenario = settings->scenario;
  scenario.set_runtime(settings->runtime);
  const auto set = [&](absl::string_view name, const std::string& argument,
                       bool preset_value, bool value) {
    if (value == preset_value) return;
    const std::string figure =
        absl::StrCat("runtime.", name, "=", value ? "true" : "false");
    scenario.add_set_figures(figure);
    const std::string known = settings->NameOf(argument);
    settings->figures.push_back(
        {figure, settings->given.contains(argument)
                     ? known
                     : absl::StrCat("the default of ", known)});
  };
  const Training& training = scenario.training();
  set("unfused_softmax", "no-masked-softmax-fusion", preset.unfused_softmax(),
      !settings->fused_softmax);
  set("unfused_bias_gelu", "no-bias-gelu-fusion", preset.unfused_bias_gelu(),
      !settings->fused_bias_act);
  set("unfused_bias_dropout_add", "no-bias-dropout-fusion",
      preset.unfused_bias_dropout_add(), !settings->fused_bias_dropout);
  // FSDP2 needs this switch.
  if (!training.fully_sharded()) {
    set("unfused_gradient_accumulation", "no-gradient-accumulation-fusion",
        preset.unfused_gradient_accumulation(), !settings->fused_accumulation);
  }
  set("unfused_cross_entropy", "cross-entropy-loss-fusion",
      preset.unfused_cross_entropy(), !settings->fused_cross_entropy);
  set("scatters_transfers", "no-scatter-gather-tensors-in-pipeline",
      preset.scatters_transfers(), settings->scatters_transfers);
  if (training.distributed_optimizer()) {
    set("overlaps_step_gather", "overlap-param-gather",
        preset.overlaps_step_gather(), settings->overlap_param_gather);
  }
  if (settings->parallelism().sequence_parallel()) {
    set("pipelines_tensor_collectives", "tp-comm-overlap",
        preset.pipelines_tensor_collectives(), settings->tp_comm_overlap);
  }
  return absl::OkStatus();
}

// Sets the recipe that --fp8-format or --fp4-format turns on.
void FinishFormats(MegatronSettings* settings, Problems* problems) {
  Training& training = settings->training();
  if (settings->fp8_format.empty() && settings->fp4_format.empty()) {
    training.clear_quantized_parameters();
    return;
  }
  const char* format =
      settings->fp8_format.empty() ? "fp4-format" : "fp8-format";
  if (!settings->fp8_format.empty() && !settings->fp4_format.empty()) {
    ReportCombination(*settings, {"fp4-format"},
                      "cannot be combined with --fp8-format", problems);
  }
  if (training.precision() == FP32) {
    ReportCombination(*settings, {format}, "needs --bf16 or --fp16", problems);
  }
  training.set_recipe(settings->fp8_format.empty()
                          ? "nvfp4"
                          : models::RecipeNamed(settings->fp8_recipe));
  if (!settings->first_last_in_bf16) return;
  training.set_first_blocks_in_16_bits(settings->first_in_bf16);
  training.set_last_blocks_in_16_bits(settings->last_in_bf16);
}

void FinishRun(MegatronSettings* settings, Problems* problems) {
  Training& training = settings->training();
  if (settings->fp16 && settings->bf16) {
    ReportCombination(*settings, {"fp16"}, "cannot be combined with --bf16",
                      problems);
  }
  training.set_precision(settings->fp16   ? MIXED_FP16
                         : settings->bf16 ? MIXED_BF16
                                          : FP32);
  FinishFormats(settings, problems);
  const bool wide =
      training.precision() == FP32 || settings->fp32_gradients ||
      (training.precision() == MIXED_BF16 && !settings->gradients_in_bf16);
  training.set_fp32_gradients(wide);
  // Megatron-LM switches these on only where arguments ask for them.
  Parallelism& parallelism = settings->parallelism();
  parallelism.set_sequence_parallel(parallelism.sequence_parallel());
  training.set_distributed_optimizer(training.distributed_optimizer());
  if (settings->communication().gradient_reduction() == REDUCTION_UNSPECIFIED) {
    settings->communication().set_gradient_reduction(REDUCTION_BLOCKING);
  }
  training.set_dropout(settings->attention_dropout > 0 ||
                       settings->hidden_dropout > 0);
  if (settings->bucket_elements > 0) {
    settings->communication().set_bucket_bytes(settings->bucket_elements *
                                               (wide ? 4.0 : 2.0));
  }
  FinishTraining(settings);
  FinishParallelism(settings);
  FinishStages(settings, problems);
  FinishCommunication(settings);
  FinishCudaGraphs(settings, problems);
  FinishDispatcher(settings, problems);
}

}  // namespace

void ReportCombination(const MegatronSettings& settings,
                       const std::vector<std::string>& arguments,
                       absl::string_view what, Problems* problems) {
  for (const std::string& argument : arguments) {
    if (settings.reported.contains(argument)) return;
  }
  problems->Add(settings.NameOf(arguments[0]), what);
}

std::string MegatronSettings::NameOf(const std::string& argument) const {
  const auto found = names.find(argument);
  return found == names.end() ? absl::StrCat("--", argument) : found->second;
}

absl::Status CombineSettings(uint32_t num_gpus, MegatronSettings* settings,
                             Problems* problems) {
  FinishRun(settings, problems);
  FinishBatch(num_gpus, settings);
  if (settings->scenario.transformer().num_layers() > 0) {
    FinishModel(settings, problems);
  } else {
    settings->scenario.clear_transformer();
    const bool has_model =
        settings->flags != nullptr && (!settings->flags->model().empty() ||
                                       settings->flags->has_transformer());
    if (!has_model) settings->missing.emplace_back("the model: give --model");
  }
  return FinishRuntime(settings);
}

}  // namespace weir::plan
