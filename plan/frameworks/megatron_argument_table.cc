// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/megatron_argument_table.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "models/recompute.h"

namespace weir::plan {
namespace {

MegatronArgument Switch(std::function<void(MegatronSettings*)> set) {
  return {false, [set = std::move(set)](const std::string&,
                                        MegatronSettings* settings) {
            set(settings);
            return std::string();
          }};
}

MegatronArgument Count(std::function<void(MegatronSettings*, uint32_t)> set) {
  return {true, [set = std::move(set)](const std::string& text,
                                       MegatronSettings* settings) {
            uint32_t count = 0;
            if (!absl::SimpleAtoi(text, &count)) {
              return std::string("a whole number");
            }
            set(settings, count);
            return std::string();
          }};
}

// A count of 1 or more.
MegatronArgument Size(std::function<void(MegatronSettings*, uint32_t)> set) {
  return {true, [set = std::move(set)](const std::string& text,
                                       MegatronSettings* settings) {
            uint32_t count = 0;
            if (!absl::SimpleAtoi(text, &count) || count == 0) {
              return std::string("a whole number, 1 or more");
            }
            set(settings, count);
            return std::string();
          }};
}

MegatronArgument Number(std::function<void(MegatronSettings*, double)> set) {
  return {true, [set = std::move(set)](const std::string& text,
                                       MegatronSettings* settings) {
            double number = 0;
            if (!absl::SimpleAtod(text, &number))
              return std::string("a number");
            set(settings, number);
            return std::string();
          }};
}

MegatronArgument Word(
    std::map<std::string, std::function<void(MegatronSettings*)>> words) {
  return {true, [words = std::move(words)](const std::string& text,
                                           MegatronSettings* settings) {
            const auto found = words.find(text);
            if (found == words.end()) {
              return absl::StrJoin(words, " or ",
                                   [](std::string* out, const auto& word) {
                                     absl::StrAppend(out, word.first);
                                   });
            }
            found->second(settings);
            return std::string();
          }};
}

// A format of a value that the optimizer keeps.
MegatronArgument StateWord(void (Training::*set)(StateFormat)) {
  const auto to = [set](StateFormat format) {
    return [set, format](MegatronSettings* settings) {
      (settings->training().*set)(format);
    };
  };
  return Word({{"fp32", to(STATE_FP32)},
               {"bf16", to(STATE_BF16)},
               {"fp16", to(STATE_FP16)},
               {"fp8", to(STATE_FP8)}});
}

// Returns an argument that accepts only the list `expected` and sets nothing.
std::string TakeRecomputeModules(const std::string& text,
                                 MegatronSettings* settings) {
  Training& training = settings->training();
  training.clear_recompute_modules();
  Recomputation all;
  if (!models::ParseRecomputation(
          absl::StrCat("selective:", absl::StrReplaceAll(text, {{" ", "+"}})),
          &all)) {
    return "core_attn, mlp, moe, layernorm, moe_act, mla_up_proj or "
           "shared_experts";
  }
  *training.mutable_recompute_modules() = all.modules();
  return "";
}

// Returns an argument for a type of exchange. Megatron-LM takes one for all
// layers, or a list with one per layer, which is not simulated.
MegatronArgument ContextMethods() {
  const auto method = [](ContextMethod of) {
    return
        [of](MegatronSettings* p) { p->parallelism().set_context_method(of); };
  };
  MegatronArgument argument = Word({{"p2p", method(CONTEXT_P2P)},
                                    {"all_gather", method(CONTEXT_ALL_GATHER)},
                                    {"a2a", method(CONTEXT_A2A)},
                                    {"a2a+p2p", method(CONTEXT_A2A_P2P)}});
  argument.is_list = true;
  return argument;
}

std::string TakeContextSizes(const std::string& text,
                             MegatronSettings* settings) {
  settings->parallelism().clear_hierarchical_context();
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar("[], "), absl::SkipEmpty())) {
    uint32_t size = 0;
    if (!absl::SimpleAtoi(word, &size) || size == 0) {
      return "whole numbers, as in 2 4";
    }
    settings->parallelism().add_hierarchical_context(size);
  }
  return "";
}

std::string TakeWindow(const std::string& text, MegatronSettings* settings) {
  const std::string inside(
      absl::StripSuffix(absl::StripPrefix(text, "("), ")"));
  const std::vector<std::string> sides = absl::StrSplit(inside, ',');
  uint32_t left = 0;
  if (sides.size() != 2 || !absl::SimpleAtoi(sides[0], &left) ||
      sides[1] != "0") {
    return "tokens to the left and 0 to the right, as in 4095,0";
  }
  settings->model().set_sliding_window(left + 1);
  return "";
}

// Takes a list of 0 and 1, or 1 for all blocks.
std::string TakeExpertBlocks(const std::string& text,
                             MegatronSettings* settings) {
  if (text == "1") return "";
  for (const absl::string_view word : absl::StrSplit(
           absl::StripSuffix(absl::StripPrefix(text, "["), "]"), ',')) {
    if (word != "0" && word != "1") return "1 or a list such as [0,1,1]";
    settings->expert_blocks.push_back(word == "1");
  }
  return "";
}

std::map<std::string, MegatronArgument> ModelArguments() {
  return {
      {"num-layers", Size([](MegatronSettings* p, uint32_t n) {
         p->model().set_num_layers(n);
       })},
      {"hidden-size", Size([](MegatronSettings* p, uint32_t n) {
         p->model().set_hidden_size(n);
       })},
      {"ffn-hidden-size", Size([](MegatronSettings* p, uint32_t n) {
         p->model().set_feed_forward_size(n);
       })},
      {"num-attention-heads", Size([](MegatronSettings* p, uint32_t n) {
         p->model().set_num_heads(n);
       })},
      {"kv-channels", Size([](MegatronSettings* p, uint32_t n) {
         p->model().set_head_size(n);
       })},
      {"group-query-attention",
       Switch([](MegatronSettings* p) { p->grouped_queries = true; })},
      {"num-query-groups",
       Size([](MegatronSettings* p, uint32_t n) { p->query_groups = n; })},
      {"swiglu", Switch([](MegatronSettings* p) {
         p->model().set_gated_feed_forward(true);
       })},
      {"normalization",
       Word({{"RMSNorm",
              [](MegatronSettings* p) { p->model().set_rms_norm(true); }},
             {"LayerNorm",
              [](MegatronSettings* p) { p->model().set_rms_norm(false); }}})},
      {"disable-bias-linear",
       Switch([](MegatronSettings* p) { p->disable_bias_linear = true; })},
      {"add-qkv-bias",
       Switch([](MegatronSettings* p) { p->add_qkv_bias = true; })},
      {"qk-layernorm", Switch([](MegatronSettings* p) {
         p->model().set_query_key_norm(true);
       })},
      {"position-embedding-type",
       Word(
           {{"rope", [](MegatronSettings* p) { p->learned_positions = false; }},
            {"learned_absolute",
             [](MegatronSettings* p) { p->learned_positions = true; }}})},
      {"max-position-embeddings",
       Size([](MegatronSettings* p, uint32_t n) { p->max_positions = n; })},
      {"mtp-num-layers", Count([](MegatronSettings* p, uint32_t n) {
         p->model().set_num_mtp_modules(n);
       })},
      {"untie-embeddings-and-output-weights",
       Switch([](MegatronSettings* p) { p->untied = true; })},
      {"vocab-size",
       Size([](MegatronSettings* p, uint32_t n) { p->vocabulary = n; })},
      {"padded-vocab-size",
       Size([](MegatronSettings* p, uint32_t n) { p->padded_vocabulary = n; })},
      {"tokenizer-type",
       {true,
        [](const std::string& text, MegatronSettings* p) {
          p->tokenizer = text;
          return std::string();
        }}},
      // The padding is that of the runtime.
      {"make-vocab-size-divisible-by",
       Size([](MegatronSettings*, uint32_t) {})},
      {"use-rotary-position-embeddings",
       Switch([](MegatronSettings* p) { p->learned_positions = false; })},
      {"window-size", {true, TakeWindow}},
      {"num-experts", Count([](MegatronSettings* p, uint32_t n) {
         p->model().set_num_experts(n);
         p->experts = n > 0;
       })},
      {"moe-router-topk", Size([](MegatronSettings* p, uint32_t n) {
         p->model().set_experts_per_token(n);
       })},
      {"moe-ffn-hidden-size", Size([](MegatronSettings* p, uint32_t n) {
         p->model().set_expert_feed_forward_size(n);
       })},
      {"moe-shared-expert-intermediate-size",
       Count([](MegatronSettings* p, uint32_t n) { p->shared_width = n; })},
      {"moe-expert-capacity-factor", Number([](MegatronSettings* p, double n) {
         p->model().set_capacity_factor(n);
       })},
      {"moe-layer-freq", {true, TakeExpertBlocks}},
      {"moe-token-dispatcher-type",
       Word(
           {{"alltoall", [](MegatronSettings*) {}},
            {"flex", [](MegatronSettings* p) { p->flex_dispatcher = true; }}})},
      {"moe-enable-deepep",
       Switch([](MegatronSettings* p) { p->deepep = true; })},
      {"moe-flex-dispatcher-backend",
       Word({{"deepep", [](MegatronSettings* p) { p->deepep = true; }}})},
      {"moe-deepep-num-sms", Size([](MegatronSettings* p, uint32_t n) {
         p->deepep_multiprocessors = n;
       })},
  };
}

std::map<std::string, MegatronArgument> RunArguments() {
  return {
      {"tensor-model-parallel-size", Size([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_tensor(n);
       })},
      {"pipeline-model-parallel-size",
       Size([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_pipeline(n);
       })},
      {"expert-model-parallel-size", Size([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_expert(n);
       })},
      {"num-virtual-stages-per-pipeline-rank",
       Size([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_chunks(n);
       })},
      {"pipeline-model-parallel-layout",
       {true,
        [](const std::string& text, MegatronSettings* p) {
          p->parallelism().set_layout(text);
          return std::string();
        }}},
      {"decoder-first-pipeline-num-layers",
       Size([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_decoder_first_pipeline_num_layers(n);
       })},
      {"decoder-last-pipeline-num-layers",
       Size([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_decoder_last_pipeline_num_layers(n);
       })},
      {"account-for-embedding-in-pipeline-split",
       Switch([](MegatronSettings* p) {
         p->parallelism().set_account_for_embedding_in_pipeline_split(true);
       })},
      {"account-for-loss-in-pipeline-split", Switch([](MegatronSettings* p) {
         p->parallelism().set_account_for_loss_in_pipeline_split(true);
       })},
      {"num-layers-per-virtual-pipeline-stage",
       Size([](MegatronSettings* p, uint32_t n) { p->layers_per_stage = n; })},
      {"context-parallel-size", Size([](MegatronSettings* p, uint32_t n) {
         p->parallelism().set_context(n);
       })},
      {"cp-comm-type", ContextMethods()},
      {"hierarchical-context-parallel-sizes",
       {true, TakeContextSizes, /*is_list=*/true}},
      {"expert-tensor-parallel-size",
       Size([](MegatronSettings* p, uint32_t n) { p->expert_tensor = n; })},
      {"num-distributed-optimizer-instances",
       Size([](MegatronSettings* p, uint32_t n) {
         if (n > 1) p->parallelism().set_data_replicate(n);
       })},
      {"sequence-parallel", Switch([](MegatronSettings* p) {
         p->parallelism().set_sequence_parallel(true);
       })},
      {"use-tp-pp-dp-mapping", Switch([](MegatronSettings* p) {
         p->parallelism().set_order("tp-pp-dp");
       })},
      {"no-overlap-p2p-communication",
       Switch([](MegatronSettings* p) { p->overlap_p2p = false; })},
      {"no-scatter-gather-tensors-in-pipeline",
       Switch([](MegatronSettings* p) { p->scatters_transfers = false; })},
      {"micro-batch-size", Size([](MegatronSettings* p, uint32_t n) {
         p->batch().set_microbatch_size(n);
       })},
      {"global-batch-size", Size([](MegatronSettings* p, uint32_t n) {
         p->batch().set_global_batch_size(n);
       })},
      {"seq-length", Size([](MegatronSettings* p, uint32_t n) {
         p->batch().set_sequence_length(n);
       })},
      {"fp16", Switch([](MegatronSettings* p) { p->fp16 = true; })},
      {"bf16", Switch([](MegatronSettings* p) { p->bf16 = true; })},
      {"accumulate-allreduce-grads-in-fp32",
       Switch([](MegatronSettings* p) { p->fp32_gradients = true; })},
      {"grad-reduce-in-bf16",
       Switch([](MegatronSettings* p) { p->gradients_in_bf16 = true; })},
      {"main-grads-dtype",
       Word({{"fp32", [](MegatronSettings* p) { p->fp32_gradients = true; }},
             {"bf16",
              [](MegatronSettings* p) { p->gradients_in_bf16 = true; }}})},
      {"main-params-dtype", StateWord(&Training::set_main_weights)},
      {"exp-avg-dtype", StateWord(&Training::set_first_moment)},
      {"exp-avg-sq-dtype", StateWord(&Training::set_second_moment)},
      {"use-precision-aware-optimizer", Switch([](MegatronSettings*) {})},
      {"fp8-format",
       Word({{"hybrid", [](MegatronSettings* p) { p->fp8_format = "hybrid"; }},
             {"e4m3", [](MegatronSettings* p) { p->fp8_format = "e4m3"; }}})},
      {"fp8-recipe",
       Word(
           {{"delayed", [](MegatronSettings* p) { p->fp8_recipe = "delayed"; }},
            {"tensorwise",
             [](MegatronSettings* p) { p->fp8_recipe = "tensorwise"; }},
            {"blockwise",
             [](MegatronSettings* p) { p->fp8_recipe = "blockwise"; }},
            {"mxfp8", [](MegatronSettings* p) { p->fp8_recipe = "mxfp8"; }}})},
      {"fp4-format",
       Word({{"e2m1", [](MegatronSettings* p) { p->fp4_format = "e2m1"; }}})},
      {"fp8-param-gather", Switch([](MegatronSettings* p) {
         p->training().set_quantized_parameters(true);
       })},
      {"first-last-layers-bf16",
       Switch([](MegatronSettings* p) { p->first_last_in_bf16 = true; })},
      {"num-layers-at-start-in-bf16",
       Count([](MegatronSettings* p, uint32_t n) { p->first_in_bf16 = n; })},
      {"num-layers-at-end-in-bf16",
       Count([](MegatronSettings* p, uint32_t n) { p->last_in_bf16 = n; })},
      {"attention-backend",
       Word({{"flash", [](MegatronSettings* p) { p->fused_attention = true; }},
             {"fused", [](MegatronSettings* p) { p->fused_attention = true; }},
             {"unfused",
              [](MegatronSettings* p) { p->fused_attention = false; }},
             {"auto", [](MegatronSettings*) {}}})},
      {"use-flash-attn",
       Switch([](MegatronSettings* p) { p->fused_attention = true; })},
      {"no-masked-softmax-fusion",
       Switch([](MegatronSettings* p) { p->fused_softmax = false; })},
      {"no-bias-gelu-fusion",
       Switch([](MegatronSettings* p) { p->fused_bias_act = false; })},
      {"no-bias-swiglu-fusion",
       Switch([](MegatronSettings* p) { p->fused_bias_act = false; })},
      {"no-bias-dropout-fusion",
       Switch([](MegatronSettings* p) { p->fused_bias_dropout = false; })},
      {"no-gradient-accumulation-fusion",
       Switch([](MegatronSettings* p) { p->fused_accumulation = false; })},
      {"cross-entropy-loss-fusion",
       Switch([](MegatronSettings* p) { p->fused_cross_entropy = true; })},
      {"tp-comm-overlap",
       Switch([](MegatronSettings* p) { p->tp_comm_overlap = true; })},
      {"overlap-param-gather",
       Switch([](MegatronSettings* p) { p->overlap_param_gather = true; })},
      {"recompute-granularity",
       Word({{"full",
              [](MegatronSettings* p) {
                p->training().set_recompute(RECOMPUTE_FULL);
              }},
             {"selective",
              [](MegatronSettings* p) {
                p->training().set_recompute(RECOMPUTE_SELECTIVE);
              }}})},
      {"recompute-activations", Switch([](MegatronSettings* p) {
         p->training().set_recompute(RECOMPUTE_SELECTIVE);
       })},
      {"recompute-method",
       Word({{"uniform",
              [](MegatronSettings* p) {
                p->training().set_recompute_method(RECOMPUTE_UNIFORM);
              }},
             {"block",
              [](MegatronSettings* p) {
                p->training().set_recompute_method(RECOMPUTE_BLOCK);
              }}})},
      {"recompute-num-layers", Size([](MegatronSettings* p, uint32_t n) {
         p->training().set_recompute_num_layers(n);
       })},
      {"recompute-modules", {true, TakeRecomputeModules, true}},
      {"cpu-offloading-num-layers", Count([](MegatronSettings* p, uint32_t n) {
         p->training().set_cpu_offloading_num_layers(n);
       })},
      {"optimizer-cpu-offload",
       Switch([](MegatronSettings* p) { p->optimizer_cpu_offload = true; })},
      {"optimizer-offload-fraction", Number([](MegatronSettings* p, double n) {
         p->optimizer_offload_fraction = n;
       })},
      {"cuda-graph-impl", Word({{"none", [](MegatronSettings*) {}}})},
      {"attention-dropout",
       Number([](MegatronSettings* p, double n) { p->attention_dropout = n; })},
      {"hidden-dropout",
       Number([](MegatronSettings* p, double n) { p->hidden_dropout = n; })},
      {"optimizer",
       Word({{"adam",
              [](MegatronSettings* p) { p->training().set_optimizer(ADAM); }},
             {"sgd",
              [](MegatronSettings* p) {
                p->training().set_optimizer(SGD_MOMENTUM);
              }},
             {"muon",
              [](MegatronSettings* p) { p->training().set_optimizer(MUON); }},
             {"dist_muon",
              [](MegatronSettings* p) {
                p->training().set_optimizer(DIST_MUON);
              }}})},
      {"muon-num-ns-steps",
       Size([](MegatronSettings* p, uint32_t n) { p->muon_num_ns_steps = n; })},
      {"use-distributed-optimizer", Switch([](MegatronSettings* p) {
         p->training().set_distributed_optimizer(true);
       })},
      {"use-torch-fsdp2", Switch([](MegatronSettings* p) {
         p->training().set_fully_sharded(true);
       })},
      {"overlap-grad-reduce", Switch([](MegatronSettings* p) {
         p->communication().set_gradient_reduction(REDUCTION_OVERLAPPED);
       })},
      {"ddp-bucket-size",
       Size([](MegatronSettings* p, uint32_t n) { p->bucket_elements = n; })},
  };
}

}  // namespace

const std::map<std::string, MegatronArgument>& MegatronArgumentTable() {
  static const auto& table = *new std::map<std::string, MegatronArgument>([] {
    std::map<std::string, MegatronArgument> all = ModelArguments();
    for (auto& [name, argument] : all) argument.is_model = true;
    all.merge(RunArguments());
    return all;
  }());
  return table;
}

}  // namespace weir::plan
