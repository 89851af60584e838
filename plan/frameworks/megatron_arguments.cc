// SPDX-License-Identifier: Apache-2.0
// Names and meanings are those of megatron/training/arguments.py
// (NVIDIA/Megatron-LM, November 2025).
#include "plan/frameworks/megatron_arguments.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "models/context_parallel.h"
#include "models/cuda_graphs.h"
#include "models/layout.h"
#include "models/quantization.h"
#include "models/recipe.h"
#include "plan/frameworks/megatron_names.h"
#include "scenarios/cuda_graphs.h"
#include "scenarios/recomputation.h"

namespace weir::plan {
namespace {

constexpr double kDefaultBucketBytes = 25.0 * (1 << 20);

class Arguments {
 public:
  explicit Arguments(const scenarios::ResolvedScenario& resolved)
      : scenario_(resolved.scenario),
        recipe_(resolved.recipe),
        runtime_(resolved.runtime),
        model_(resolved.model.transformer()) {}

  std::vector<Setting> All() {
    AddParallelism();
    AddBatch();
    AddModel();
    AddAttention();
    AddExperts();
    AddPrecision();
    AddTraining();
    AddFusions();
    AddCudaGraphs();
    AddTrial();
    return std::move(settings_);
  }

 private:
  template <typename Value>
  void Add(absl::string_view name, const Value& value) {
    settings_.push_back({std::string(name), absl::StrCat(value), 0, true});
  }
  void Switch(bool on, absl::string_view name) {
    if (on) settings_.push_back({std::string(name), "", 0, false});
  }

  void AddParallelism() {
    const Parallelism& parallelism = scenario_.parallelism();
    Add("tensor-model-parallel-size", parallelism.tensor());
    Add("pipeline-model-parallel-size", parallelism.pipeline());
    Switch(parallelism.sequence_parallel() && parallelism.tensor() > 1,
           "sequence-parallel");
    Switch(parallelism.order() == "tp-pp-dp", "use-tp-pp-dp-mapping");
    AddContext();
    AddLayers();
    const bool blocks = scenario_.communication().transfers() == BLOCKING;
    Switch(parallelism.chunks() > 1 && blocks, "no-overlap-p2p-communication");
    Switch(!runtime_.scatters_transfers(),
           "no-scatter-gather-tensors-in-pipeline");
    const Communication& communication = scenario_.communication();
    const bool pieces = communication.has_tp_comm_overlap()
                            ? communication.tp_comm_overlap()
                            : runtime_.pipelines_tensor_collectives();
    Switch(
        pieces && parallelism.sequence_parallel() && parallelism.tensor() > 1,
        "tp-comm-overlap");
  }

  void AddContext() {
    const Parallelism& parallelism = scenario_.parallelism();
    if (parallelism.context() <= 1) return;
    Add("context-parallel-size", parallelism.context());
    Add("cp-comm-type",
        models::ContextMethodName(parallelism.context_method()));
    if (parallelism.context_method() != CONTEXT_A2A_P2P) return;
    Add("hierarchical-context-parallel-sizes",
        absl::StrJoin(parallelism.hierarchical_context(), " "));
  }

  void AddLayers() {
    const Parallelism& parallelism = scenario_.parallelism();
    const auto& blocks = parallelism.blocks_per_stage();
    std::string layout = parallelism.layout();
    if (layout.empty() && !blocks.empty()) {
      layout = models::LayoutText({blocks.begin(), blocks.end()},
                                  static_cast<int>(model_.num_mtp_modules()));
    }
    if (!layout.empty()) {
      // Megatron-LM derives the chunks per rank from the number of stages.
      Add("pipeline-model-parallel-layout", layout);
    } else if (parallelism.chunks() > 1) {
      Add("num-virtual-stages-per-pipeline-rank", parallelism.chunks());
    }
  }

  void AddBatch() {
    Add("micro-batch-size", scenario_.batch().microbatch_size());
    Add("global-batch-size", scenario_.batch().global_batch_size());
    Add("seq-length", scenario_.batch().sequence_length());
  }

  void AddModel() {
    Add("num-layers", model_.num_layers());
    Add("hidden-size", model_.hidden_size());
    Add("ffn-hidden-size", model_.feed_forward_size());
    Switch(model_.gated_feed_forward(), "swiglu");
    Add("normalization", model_.rms_norm() ? "RMSNorm" : "LayerNorm");
    if (!model_.feed_forward_bias()) {
      Switch(true, "disable-bias-linear");
      Switch(model_.attention_bias(), "add-qkv-bias");
    }
    if (model_.num_mtp_modules() > 0) {
      Add("mtp-num-layers", model_.num_mtp_modules());
    }
    AddPositions();
    Switch(!model_.tied_embeddings(), "untie-embeddings-and-output-weights");
    Add("make-vocab-size-divisible-by",
        std::max(runtime_.vocabulary_multiple(), 1u));
  }

  void AddPositions() {
    const uint32_t sequence = scenario_.batch().sequence_length();
    if (model_.num_positions() > 0) {
      Add("position-embedding-type", "learned_absolute");
      Add("max-position-embeddings",
          std::max(model_.num_positions(), sequence));
      return;
    }
    Add("position-embedding-type", "rope");
    Add("max-position-embeddings",
        std::max(model_.default_sequence_length(), sequence));
  }

  void AddAttention() {
    const uint32_t heads = model_.num_heads();
    Add("num-attention-heads", heads);
    if (model_.head_size() > 0 &&
        model_.head_size() * heads != model_.hidden_size()) {
      Add("kv-channels", model_.head_size());
    }
    if (model_.num_kv_heads() > 0 && model_.num_kv_heads() != heads) {
      Switch(true, "group-query-attention");
      Add("num-query-groups", model_.num_kv_heads());
    }
    Switch(model_.query_key_norm(), "qk-layernorm");
    if (model_.sliding_window() > 0) {
      // Tokens to the left and to the right of the current one.
      Add("window-size", absl::StrCat(model_.sliding_window() - 1, ",0"));
    }
    // The default backend depends on the machine.
    Add("attention-backend",
        scenario_.training().flash_attention() ? "flash" : "unfused");
  }

  void AddExperts() {
    if (model_.num_experts() == 0) return;
    Add("num-experts", model_.num_experts());
    Add("expert-model-parallel-size", scenario_.parallelism().expert());
    const Parallelism& parallelism = scenario_.parallelism();
    Add("expert-tensor-parallel-size", parallelism.expert_tensor() > 0
                                           ? parallelism.expert_tensor()
                                           : parallelism.tensor());
    Add("moe-router-topk", model_.experts_per_token());
    if (model_.num_router_groups() > 1 &&
        model_.router_groups_per_token() > 0) {
      Add("moe-router-num-groups", model_.num_router_groups());
      Add("moe-router-group-topk", model_.router_groups_per_token());
    }
    const uint32_t width = model_.expert_feed_forward_size() > 0
                               ? model_.expert_feed_forward_size()
                               : model_.feed_forward_size();
    Add("moe-ffn-hidden-size", width);
    if (model_.num_shared_experts() > 0) {
      Add("moe-shared-expert-intermediate-size",
          width * model_.num_shared_experts());
    }
    AddExpertBlocks();
    const Communication& communication = scenario_.communication();
    const bool deepep = communication.token_dispatcher() == TOKENS_DEEPEP;
    const bool hybrid = communication.token_dispatcher() == TOKENS_HYBRID_EP;
    Add("moe-token-dispatcher-type", deepep || hybrid ? "flex" : "alltoall");
    Switch(deepep, "moe-enable-deepep");
    if (hybrid) Add("moe-flex-dispatcher-backend", "hybridep");
    if ((deepep || hybrid) && communication.dispatch_multiprocessors() > 0) {
      Add(deepep ? "moe-deepep-num-sms" : "moe-hybridep-num-sms",
          communication.dispatch_multiprocessors());
    }
    Switch(scenarios::FusesRouter(scenario_.training(), runtime_),
           "moe-router-fusion");
    Switch(communication.overlap_expert_exchange(),
           "overlap-moe-expert-parallel-comm");
    // Megatron-LM's grouped GEMM supports only bf16.
    Switch(scenario_.training().precision() == MIXED_BF16, "moe-grouped-gemm");
    if (model_.capacity_factor() > 0) {
      Add("moe-expert-capacity-factor", model_.capacity_factor());
      Switch(!model_.unpadded_capacity(), "moe-pad-expert-input-to-capacity");
    }
  }

  // Adds a Python list of which blocks have experts. By default all blocks do.
  void AddExpertBlocks() {
    const uint32_t dense = model_.num_dense_blocks();
    const uint32_t interval = std::max(model_.expert_block_interval(), 1u);
    if (dense == 0 && interval == 1) return;
    std::vector<std::string> blocks;
    for (uint32_t b = 0; b < model_.num_layers(); ++b) {
      const bool has = b >= dense && (b - dense) % interval == 0;
      blocks.push_back(has ? "1" : "0");
    }
    Add("moe-layer-freq", absl::StrCat("[", absl::StrJoin(blocks, ","), "]"));
  }

  void AddPrecision() {
    const Training& training = scenario_.training();
    Switch(training.precision() == MIXED_FP16, "fp16");
    Switch(training.precision() == MIXED_BF16, "bf16");
    if (training.precision() == FP32) return;
    // Without either flag, gradients are fp32 for bf16 and fp16 for fp16.
    Switch(training.fp32_gradients(), "accumulate-allreduce-grads-in-fp32");
    Switch(training.precision() == MIXED_BF16 && !training.fp32_gradients(),
           "grad-reduce-in-bf16");
    AddFormats(recipe_);
  }

  // MegatronObstacles refuses other recipes.
  void AddFormats(const Recipe& recipe) {
    const std::pair<const char*, StateFormat> states[] = {
        {"main-params-dtype", recipe.main_weights()},
        {"exp-avg-dtype", recipe.first_moment()},
        {"exp-avg-sq-dtype", recipe.second_moment()}};
    bool any = false;
    for (const auto& [argument, format] : states) {
      if (models::StateBytes(format) == 4) continue;
      Add(argument, MegatronName(format));
      any = true;
    }
    Switch(any, "use-precision-aware-optimizer");
    if (models::FormatsOf(recipe).empty()) return;
    if (recipe.forward() == OPERAND_NVFP4) {
      Add("fp4-format", "e2m1");
    } else {
      Add("fp8-format", recipe.forward() == OPERAND_FP8 ? "hybrid" : "e4m3");
      Add("fp8-recipe", MegatronRecipe(recipe));
    }
    Switch(recipe.quantized_parameters(), "fp8-param-gather");
    if (recipe.first_blocks_in_16_bits() + recipe.last_blocks_in_16_bits() == 0)
      return;
    Switch(true, "first-last-layers-bf16");
    Add("num-layers-at-start-in-bf16", recipe.first_blocks_in_16_bits());
    Add("num-layers-at-end-in-bf16", recipe.last_blocks_in_16_bits());
  }

  void AddTraining() {
    const Training& training = scenario_.training();
    AddRecomputation();
    if (training.cpu_offloading_num_layers() > 0) {
      Add("cpu-offloading-num-layers", training.cpu_offloading_num_layers());
    }
    const double dropout = training.dropout() ? 0.1 : 0;
    Add("attention-dropout", dropout);
    Add("hidden-dropout", dropout);
    Add("optimizer", MegatronOptimizer(training.optimizer()));
    if (training.muon_num_ns_steps() > 0) {
      Add("muon-num-ns-steps", training.muon_num_ns_steps());
    }
    Switch(
        training.distributed_optimizer() && training.optimizer() != DIST_MUON,
        "use-distributed-optimizer");
    if (training.distributed_optimizer() &&
        scenario_.parallelism().data_replicate() > 1) {
      Add("num-distributed-optimizer-instances",
          scenario_.parallelism().data_replicate());
    }
    Switch(training.fully_sharded(), "use-torch-fsdp2");
    AddReduction();
  }

  void AddRecomputation() {
    const models::Recompute recompute =
        scenarios::RecomputeOf(scenario_.training());
    if (recompute.mode() == RECOMPUTE_SELECTIVE) {
      Add("recompute-granularity", "selective");
      std::vector<std::string> modules;
      const Recomputation chosen = recompute.ToProto();
      for (const int module : chosen.modules()) {
        modules.emplace_back(
            models::Name(static_cast<RecomputeModule>(module)));
      }
      if (!modules.empty()) {
        Add("recompute-modules", absl::StrJoin(modules, " "));
      }
    } else if (recompute.mode() == RECOMPUTE_FULL) {
      Add("recompute-granularity", "full");
      Add("recompute-method", models::Name(recompute.method()));
      Add("recompute-num-layers", std::max(recompute.num_layers(), 1));
    }
  }

  void AddCudaGraphs() {
    const Training& training = scenario_.training();
    if (training.cuda_graph_scope().empty()) return;
    Add("cuda-graph-impl", scenarios::LaunchesWholeSteps(training)
                               ? "local"
                               : "transformer_engine");
    std::vector<std::string> parts;
    for (const int scope : training.cuda_graph_scope()) {
      parts.emplace_back(models::Name(static_cast<CudaGraphScope>(scope)));
    }
    Add("cuda-graph-scope", absl::StrJoin(parts, " "));
  }

  void AddReduction() {
    if (scenario_.communication().gradient_reduction() != REDUCTION_OVERLAPPED)
      return;
    Switch(true, "overlap-grad-reduce");
    const Training& training = scenario_.training();
    // Needs overlapped reductions.
    Switch(runtime_.overlaps_step_gather() && training.distributed_optimizer(),
           "overlap-param-gather");
    const double given = scenario_.communication().bucket_bytes();
    // Then the buckets are those that Megatron-LM itself chooses.
    if (given == 0 && runtime_.bucket_elements() > 0) return;
    const bool wide = training.precision() == FP32 || training.fp32_gradients();
    Add("ddp-bucket-size",
        std::llround((given > 0 ? given : kDefaultBucketBytes) /
                     (wide ? 4 : 2)));
  }

  void AddFusions() {
    Switch(runtime_.unfused_softmax(), "no-masked-softmax-fusion");
    Switch(runtime_.unfused_bias_gelu(), model_.gated_feed_forward()
                                             ? "no-bias-swiglu-fusion"
                                             : "no-bias-gelu-fusion");
    Switch(runtime_.unfused_bias_dropout_add(), "no-bias-dropout-fusion");
    Switch(runtime_.unfused_gradient_accumulation() ||
               scenario_.training().fully_sharded(),
           "no-gradient-accumulation-fusion");
    Switch(!runtime_.unfused_cross_entropy(), "cross-entropy-loss-fusion");
  }

  void AddTrial() {
    Switch(true, "mock-data");
    Add("tokenizer-type", "NullTokenizer");
    Add("vocab-size", model_.vocabulary_size() - 1);  // end token is added
    Add("train-iters", 20);
    Add("lr", "1e-4");
  }

  const Scenario& scenario_;
  const Recipe& recipe_;
  const Runtime& runtime_;
  const Transformer& model_;
  std::vector<Setting> settings_;
};

std::string HeadOf(const scenarios::ResolvedScenario& scenario) {
  const Parallelism& parallelism = scenario.scenario.parallelism();
  std::string head = absl::StrCat(
      "# Arguments of Megatron-LM's pretrain_gpt.py for ",
      parallelism.tensor() * parallelism.pipeline() * parallelism.data() *
          std::max(parallelism.context(), 1u),
      " GPUs:\n# grep -v '^#' FILE | xargs torchrun ... pretrain_gpt.py\n");
  if (parallelism.tensor() > 1) {
    absl::StrAppend(&head,
                    "# Needs CUDA_DEVICE_MAX_CONNECTIONS=1 in the "
                    "environment.\n");
  }
  absl::StrAppend(
      &head,
      "# Trains on random tokens: replace the last arguments with your data,\n"
      "# tokenizer and learning rates. A rotary base other than 10000 needs\n"
      "# --rotary-base.\n");
  return head;
}

}  // namespace

std::vector<Setting> MegatronSettingsOf(
    const scenarios::ResolvedScenario& scenario) {
  return Arguments(scenario).All();
}

std::string MegatronArguments(const scenarios::ResolvedScenario& scenario) {
  std::string text = HeadOf(scenario);
  for (const Setting& setting : MegatronSettingsOf(scenario)) {
    const bool quoted =
        setting.value.find_first_of("|*[]()") != std::string::npos;
    const char* quote = quoted ? "\"" : "";
    absl::StrAppend(&text, "--", setting.key, setting.has_value ? " " : "",
                    quote, setting.value, quote, "\n");
  }
  return text;
}

}  // namespace weir::plan
