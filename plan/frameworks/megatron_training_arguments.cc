// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "models/cuda_graphs.h"
#include "models/recompute.h"
#include "plan/frameworks/argument_values.h"
#include "plan/frameworks/megatron_argument_groups.h"
#include "plan/frameworks/megatron_argument_table.h"
#include "plan/frameworks/megatron_settings.h"

namespace weir::plan {
namespace {

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

// Sets what CUDA graphs launch; returns what is expected, or "".
std::string TakeGraphScope(const std::string& text,
                           MegatronSettings* settings) {
  Training& training = settings->training();
  training.clear_cuda_graph_scope();
  std::vector<std::string> known;
  for (const CudaGraphScope scope : models::CudaGraphScopes()) {
    known.emplace_back(models::Name(scope));
  }
  for (const absl::string_view name :
       absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end()) return absl::StrJoin(known, ", ");
    training.add_cuda_graph_scope(
        models::CudaGraphScopes()[found - known.begin()]);
  }
  return "";
}

}  // namespace

std::map<std::string, MegatronArgument> TrainingArguments() {
  return {
      {"micro-batch-size", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->batch().set_microbatch_size(n);
       })},
      {"global-batch-size", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->batch().set_global_batch_size(n);
       })},
      {"seq-length", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->batch().set_sequence_length(n);
       })},
      {"fp16", SwitchArgument([](MegatronSettings* p) { p->fp16 = true; })},
      {"bf16", SwitchArgument([](MegatronSettings* p) { p->bf16 = true; })},
      {"accumulate-allreduce-grads-in-fp32",
       SwitchArgument([](MegatronSettings* p) { p->fp32_gradients = true; })},
      {"grad-reduce-in-bf16", SwitchArgument([](MegatronSettings* p) {
         p->gradients_in_bf16 = true;
       })},
      {"main-grads-dtype",
       WordArgument(
           {{"fp32", [](MegatronSettings* p) { p->fp32_gradients = true; }},
            {"bf16",
             [](MegatronSettings* p) { p->gradients_in_bf16 = true; }}})},
      {"main-params-dtype", StateWordArgument(&Training::set_main_weights)},
      {"exp-avg-dtype", StateWordArgument(&Training::set_first_moment)},
      {"exp-avg-sq-dtype", StateWordArgument(&Training::set_second_moment)},
      {"use-precision-aware-optimizer",
       SwitchArgument([](MegatronSettings*) {})},
      {"fp8-format",
       WordArgument(
           {{"hybrid", [](MegatronSettings* p) { p->fp8_format = "hybrid"; }},
            {"e4m3", [](MegatronSettings* p) { p->fp8_format = "e4m3"; }}})},
      {"fp8-recipe",
       WordArgument(
           {{"delayed", [](MegatronSettings* p) { p->fp8_recipe = "delayed"; }},
            {"tensorwise",
             [](MegatronSettings* p) { p->fp8_recipe = "tensorwise"; }},
            {"blockwise",
             [](MegatronSettings* p) { p->fp8_recipe = "blockwise"; }},
            {"mxfp8", [](MegatronSettings* p) { p->fp8_recipe = "mxfp8"; }}})},
      {"fp4-format",
       WordArgument(
           {{"e2m1", [](MegatronSettings* p) { p->fp4_format = "e2m1"; }}})},
      {"fp8-param-gather", SwitchArgument([](MegatronSettings* p) {
         p->training().set_quantized_parameters(true);
       })},
      {"first-last-layers-bf16", SwitchArgument([](MegatronSettings* p) {
         p->first_last_in_bf16 = true;
       })},
      {"num-layers-at-start-in-bf16",
       CountArgument(
           [](MegatronSettings* p, uint32_t n) { p->first_in_bf16 = n; })},
      {"num-layers-at-end-in-bf16",
       CountArgument(
           [](MegatronSettings* p, uint32_t n) { p->last_in_bf16 = n; })},
      {"attention-backend",
       WordArgument(
           {{"flash", [](MegatronSettings* p) { p->fused_attention = true; }},
            {"fused", [](MegatronSettings* p) { p->fused_attention = true; }},
            {"unfused",
             [](MegatronSettings* p) { p->fused_attention = false; }},
            {"auto", [](MegatronSettings*) {}}})},
      {"use-flash-attn",
       SwitchArgument([](MegatronSettings* p) { p->fused_attention = true; })},
      {"no-masked-softmax-fusion",
       SwitchArgument([](MegatronSettings* p) { p->fused_softmax = false; })},
      {"no-bias-gelu-fusion",
       SwitchArgument([](MegatronSettings* p) { p->fused_bias_act = false; })},
      {"no-bias-swiglu-fusion",
       SwitchArgument([](MegatronSettings* p) { p->fused_bias_act = false; })},
      {"no-bias-dropout-fusion", SwitchArgument([](MegatronSettings* p) {
         p->fused_bias_dropout = false;
       })},
      {"no-gradient-accumulation-fusion",
       SwitchArgument(
           [](MegatronSettings* p) { p->fused_accumulation = false; })},
      {"cross-entropy-loss-fusion", SwitchArgument([](MegatronSettings* p) {
         p->fused_cross_entropy = true;
       })},
      {"tp-comm-overlap",
       SwitchArgument([](MegatronSettings* p) { p->tp_comm_overlap = true; })},
      {"overlap-param-gather", SwitchArgument([](MegatronSettings* p) {
         p->overlap_param_gather = true;
       })},
      {"recompute-granularity",
       WordArgument({{"full",
                      [](MegatronSettings* p) {
                        p->training().set_recompute(RECOMPUTE_FULL);
                      }},
                     {"selective",
                      [](MegatronSettings* p) {
                        p->training().set_recompute(RECOMPUTE_SELECTIVE);
                      }}})},
      {"recompute-activations", SwitchArgument([](MegatronSettings* p) {
         p->training().set_recompute(RECOMPUTE_SELECTIVE);
       })},
      {"recompute-method",
       WordArgument({{"uniform",
                      [](MegatronSettings* p) {
                        p->training().set_recompute_method(RECOMPUTE_UNIFORM);
                      }},
                     {"block",
                      [](MegatronSettings* p) {
                        p->training().set_recompute_method(RECOMPUTE_BLOCK);
                      }}})},
      {"recompute-num-layers",
       SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->training().set_recompute_num_layers(n);
       })},
      {"recompute-modules", {true, TakeRecomputeModules, true}},
      {"cpu-offloading-num-layers",
       CountArgument([](MegatronSettings* p, uint32_t n) {
         p->training().set_cpu_offloading_num_layers(n);
       })},
      {"optimizer-cpu-offload", SwitchArgument([](MegatronSettings* p) {
         p->optimizer_cpu_offload = true;
       })},
      {"optimizer-offload-fraction",
       NumberArgument([](MegatronSettings* p, double n) {
         p->optimizer_offload_fraction = n;
       })},
      {"cuda-graph-impl",
       WordArgument(
           {{"none", [](MegatronSettings* p) { p->cuda_graphs = false; }},
            {"local",
             [](MegatronSettings* p) {
               p->cuda_graphs = p->local_graphs = true;
             }},
            {"transformer_engine",
             [](MegatronSettings* p) { p->cuda_graphs = true; }}})},
      {"cuda-graph-scope", {true, TakeGraphScope, true}},
      {"moe-router-fusion", SwitchArgument([](MegatronSettings* p) {
         p->training().set_moe_router_fusion(true);
       })},
      {"attention-dropout", NumberArgument([](MegatronSettings* p, double n) {
         p->attention_dropout = n;
       })},
      {"hidden-dropout", NumberArgument([](MegatronSettings* p, double n) {
         p->hidden_dropout = n;
       })},
      {"optimizer",
       WordArgument(
           {{"adam",
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
      {"muon-num-ns-steps", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->muon_num_ns_steps = n;
       })},
      {"use-distributed-optimizer", SwitchArgument([](MegatronSettings* p) {
         p->training().set_distributed_optimizer(true);
       })},
      {"use-torch-fsdp2", SwitchArgument([](MegatronSettings* p) {
         p->training().set_fully_sharded(true);
       })},
      {"overlap-grad-reduce", SwitchArgument([](MegatronSettings* p) {
         p->communication().set_gradient_reduction(REDUCTION_OVERLAPPED);
       })},
      {"ddp-bucket-size", SizeArgument([](MegatronSettings* p, uint32_t n) {
         p->bucket_elements = n;
       })},
  };
}

}  // namespace weir::plan
