// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "models/recipe.h"
#include "plan/frameworks/exported_run.h"
#include "plan/frameworks/megatron_arguments.h"
#include "plan/frameworks/nemo_keys.h"

namespace weir::plan {
namespace {

class NemoSettings {
 public:
  explicit NemoSettings(const scenarios::ResolvedScenario& run) : run_(run) {
    for (Setting& setting : MegatronSettingsOf(run)) {
      arguments_[setting.key] = std::move(setting);
    }
    // The same switch under two names.
    if (arguments_.contains("no-bias-swiglu-fusion")) {
      arguments_["no-bias-gelu-fusion"] = {};
    }
  }

  std::vector<Setting> All() {
    for (const NemoKey& key : NemoKeys()) {
      if (key.is_written) AddKey(key);
    }
    const bool gated = run_.model.transformer().gated_feed_forward();
    Add("model.activation_func", gated ? "silu" : "gelu");
    Add("model.should_pad_vocab", "true");
    Add("model.moe_grouped_gemm",
        arguments_.contains("moe-grouped-gemm") ? "true" : "false");
    if (arguments_.contains("moe-pad-expert-input-to-capacity")) {
      Add("model.moe_pad_expert_input_to_capacity", "true");
    }
    AddContext();
    AddInstances();
    AddDispatcher();
    if (run_.model.transformer().num_experts() > 0) {
      Add("model.moe_router_fusion",
          arguments_.contains("moe-router-fusion") ? "true" : "false");
    }
    AddWords("recompute-modules", "model.recompute_modules");
    AddWords("cuda-graph-scope", "model.cuda_graph_scope");
    AddPrecision();
    AddFormats();
    Add("train.train_iters", arguments_["train-iters"].value);
    Add("optimizer.lr", "0.0001");
    // YAML lists the keys of a section together.
    std::stable_sort(settings_.begin(), settings_.end(),
                     [](const Setting& a, const Setting& b) {
                       return SectionOf(a) < SectionOf(b);
                     });
    return std::move(settings_);
  }

 private:
  static std::string SectionOf(const Setting& setting) {
    return setting.key.substr(0, setting.key.find('.'));
  }

  void Add(absl::string_view key, const std::string& value) {
    settings_.push_back({std::string(key), value, 0, true});
  }

  void AddKey(const NemoKey& key) {
    const bool given = arguments_.contains(std::string(key.argument));
    if (key.form != NemoKey::kValue) {
      Add(key.key, given == (key.form == NemoKey::kSwitch) ? "true" : "false");
    } else if (key.argument == "padded-vocab-size") {
      Add(key.key, absl::StrCat(run_.model.transformer().vocabulary_size()));
    } else if (key.argument == "window-size") {
      Add(key.key, given
                       ? absl::StrCat("[", arguments_["window-size"].value, "]")
                       : "null");
    } else {
      // The recipe may have set what is not given.
      Add(key.key, given ? arguments_[std::string(key.argument)].value
                         : DefaultOf(key.argument));
    }
  }

  // Adds a list of words.
  void AddWords(const std::string& argument, absl::string_view key) {
    const auto words = arguments_.find(argument);
    if (words == arguments_.end()) return;
    Add(key,
        absl::StrCat(
            "[", absl::StrReplaceAll(words->second.value, {{" ", ", "}}), "]"));
  }

  void AddInstances() {
    const auto found = arguments_.find("num-distributed-optimizer-instances");
    if (found == arguments_.end()) return;
    Add("ddp.num_distributed_optimizer_instances", found->second.value);
  }

  void AddContext() {
    const auto method = arguments_.find("cp-comm-type");
    if (method == arguments_.end()) return;
    Add("model.cp_comm_type", method->second.value);
    const auto sizes = arguments_.find("hierarchical-context-parallel-sizes");
    if (sizes == arguments_.end()) return;
    Add("model.hierarchical_context_parallel_sizes",
        absl::StrCat(
            "[", absl::StrReplaceAll(sizes->second.value, {{" ", ","}}), "]"));
  }

  void AddDispatcher() {
    for (const NemoKey& key : NemoKeys()) {
      const std::string argument(key.argument);
      if ((argument == "moe-enable-deepep" ||
           argument == "moe-deepep-num-sms" ||
           argument == "moe-flex-dispatcher-backend" ||
           argument == "moe-hybridep-num-sms" ||
           argument == "muon-num-ns-steps" || argument == "cuda-graph-impl" ||
           argument == "moe-router-num-groups" ||
           argument == "moe-router-group-topk" ||
           key.key == "comm_overlap.overlap_moe_expert_parallel_comm") &&
          arguments_.contains(argument)) {
        AddKey(key);
      }
    }
  }

  static std::string DefaultOf(absl::string_view argument) {
    for (const char* one : {"context-parallel-size",
                            "expert-model-parallel-size", "moe-layer-freq"}) {
      if (argument == one) return "1";
    }
    if (argument == "moe-router-topk") return "2";
    if (argument == "moe-token-dispatcher-type") return "alltoall";
    return "null";
  }

  void AddFormats() {
    for (const NemoKey& key : NemoKeys()) {
      if (absl::StartsWith(key.key, "mixed_precision.") &&
          arguments_.contains(std::string(key.argument)) &&
          key.key != "mixed_precision.fp8_param") {
        AddKey(key);
      }
    }
  }

  void AddPrecision() {
    const Training& training = run_.scenario.training();
    const Precision precision = training.precision();
    const std::string type = precision == MIXED_BF16   ? "torch.bfloat16"
                             : precision == MIXED_FP16 ? "torch.float16"
                                                       : "torch.float32";
    Add("mixed_precision._target_",
        "megatron.bridge.training.mixed_precision.MixedPrecisionConfig");
    Add("mixed_precision.bf16", precision == MIXED_BF16 ? "true" : "false");
    Add("mixed_precision.fp16", precision == MIXED_FP16 ? "true" : "false");
    Add("mixed_precision.fp32", precision == FP32 ? "true" : "false");
    for (const char* name : {"params_dtype", "pipeline_dtype"}) {
      Add(absl::StrCat("mixed_precision.", name, "._target_"), type);
      Add(absl::StrCat("mixed_precision.", name, "._call_"), "false");
    }
    const bool wide = precision == FP32 || training.fp32_gradients();
    Add("mixed_precision.grad_reduce_in_fp32", wide ? "true" : "false");
    Add("ddp.grad_reduce_in_fp32", wide ? "true" : "false");
  }

  const scenarios::ResolvedScenario& run_;
  std::map<std::string, Setting> arguments_;
  std::vector<Setting> settings_;
};

}  // namespace

std::vector<std::string> NemoObstacles(const scenarios::ResolvedScenario& run) {
  std::vector<std::string> reasons = MegatronObstacles(run);
  for (const StateFormat format :
       {run.recipe.main_weights(), run.recipe.first_moment(),
        run.recipe.second_moment()}) {
    if (models::StateBytes(format) == 4) continue;
    reasons.emplace_back(
        "weir does not write its settings of optimizer states in 8 or 16 bits");
    break;
  }
  if (!run.model.has_transformer()) return reasons;
  const Transformer& model = run.model.transformer();
  if (model.num_positions() > 0 &&
      model.num_positions() != run.scenario.batch().sequence_length()) {
    reasons.push_back(
        absl::StrCat("its learned positions have the length of a sequence, ",
                     run.scenario.batch().sequence_length(), ", not ",
                     model.num_positions()));
  }
  return reasons;
}

std::vector<Setting> NemoSettingsOf(const scenarios::ResolvedScenario& run) {
  return NemoSettings(run).All();
}

}  // namespace weir::plan
