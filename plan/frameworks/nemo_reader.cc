// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "plan/frameworks/imported_run.h"
#include "plan/frameworks/megatron_reader.h"
#include "plan/frameworks/nemo_keys.h"
#include "plan/frameworks/setting_values.h"

namespace weir::plan {
namespace {

// The default of megatron.bridge.peft.lora.LoRA.
constexpr uint32_t kDefaultRank = 32;

// "model_config.x" of Megatron-Bridge's first examples and "ConfigContainer.x"
// of its benchmarks are "model.x" and "x".
std::string UsualKey(absl::string_view key) {
  absl::ConsumePrefix(&key, "ConfigContainer.");
  return absl::StrReplaceAll(key, {{"model_config.", "model."},
                                   {"train_config.", "train."},
                                   {"ddp_config.", "ddp."},
                                   {"optimizer_config.", "optimizer."},
                                   {"dataset_config.", "dataset."}});
}

class NemoReader {
 public:
  NemoReader(const std::string& label, const ImportContext& context)
      : context_(context),
        problems_(label),
        sorter_(OptionTable::Of("nemo"), context.left_out, "", &run_.report,
                &problems_) {
    run_.report = ReportFor(label, OptionTable::Of("nemo"));
    settings_.runtime = "nemo";
    settings_.flags = &context.overrides;
    for (const NemoKey& known : NemoKeys()) {
      settings_.names.emplace(known.argument, known.key);
    }
    SetDefaults();
  }

  absl::StatusOr<ImportedRun> Read(const std::vector<Setting>& all) {
    // A later line replaces an earlier one with the same key, and comm_overlap
    // the settings of other sections.
    std::map<std::string, size_t> last;
    for (size_t i = 0; i < all.size(); ++i) last[UsualKey(all[i].key)] = i;
    std::vector<Setting> overlaps;
    for (size_t i = 0; i < all.size(); ++i) {
      Setting setting = all[i];
      setting.key = UsualKey(setting.key);
      if (last[setting.key] != i) continue;
      const bool is_overlap = absl::StartsWith(setting.key, "comm_overlap.");
      has_comm_overlap_ |= is_overlap;
      if (!sorter_.IsRead(setting)) continue;
      if (is_overlap) {
        overlaps.push_back(std::move(setting));
      } else {
        Take(setting);
      }
    }
    if (has_comm_overlap_) SetOverlapDefaults();
    for (const Setting& setting : overlaps) Take(setting);
    for (const NemoKey& known : NemoKeys()) {
      if (sorter_.misspelled().contains(std::string(known.key))) {
        settings_.reported.insert(std::string(known.argument));
      }
    }
    return Finish();
  }

 private:
  // Sets the defaults of GPTModelProvider and DistributedDataParallelConfig
  // where they differ from those of Megatron-LM's arguments.
  void SetDefaults() {
    settings_.fused_cross_entropy = true;
    settings_.overlap_p2p = false;
    settings_.fused_bias_act = false;
    settings_.fused_bias_dropout = false;
    settings_.bf16 = true;  // a note says so
  }

  // Sets what CommOverlapConfig chooses where it has no values.
  void SetOverlapDefaults() {
    settings_.overlap_p2p = true;  // if it interleaves
    if (!settings_.training().distributed_optimizer()) return;
    settings_.communication().set_gradient_reduction(REDUCTION_OVERLAPPED);
    settings_.overlap_param_gather = true;
    settings_.bucket_elements = 128 << 20;
  }

  void Take(const Setting& setting) {
    for (const NemoKey& known : NemoKeys()) {
      if (known.key != setting.key) continue;
      TakeArgument(known, setting);
      return;
    }
    TakeOther(setting);
  }

  void TakeArgument(const NemoKey& known, const Setting& setting) {
    Setting argument = setting;
    argument.key = std::string(known.argument);
    settings_.names[argument.key] = setting.key;
    settings_.given.insert(argument.key);
    if (known.form == NemoKey::kValue) {
      argument.value = ValueOf(known, setting);
      if (known.argument == "num-query-groups") {
        settings_.grouped_queries = true;
      }
      TakeMegatronSetting(argument, setting.key, &settings_, &problems_);
      return;
    }
    const bool is_on = known.form == NemoKey::kSwitch;
    const bool given = SwitchValue(setting, !is_on, &problems_) == is_on;
    TakeSwitch(argument, given);
  }

  // Sets a switch also if it is off, because some are on by default.
  void TakeSwitch(Setting argument, bool given) {
    if (argument.key == "cross-entropy-loss-fusion") {
      settings_.fused_cross_entropy = given;
    } else if (argument.key == "tp-comm-overlap") {
      settings_.tp_comm_overlap = given;
    } else if (argument.key == "overlap-param-gather") {
      settings_.overlap_param_gather = given;
    } else if (argument.key == "no-overlap-p2p-communication") {
      settings_.overlap_p2p = !given;
    } else if (argument.key == "no-bias-gelu-fusion") {
      settings_.fused_bias_act = !given;
    } else if (argument.key == "no-bias-dropout-fusion") {
      settings_.fused_bias_dropout = !given;
    } else if (argument.key == "overlap-grad-reduce") {
      settings_.communication().set_gradient_reduction(
          given ? REDUCTION_OVERLAPPED : REDUCTION_BLOCKING);
    } else if (given) {
      argument.value.clear();
      TakeMegatronSetting(argument, argument.key, &settings_, &problems_);
    }
  }

  static std::string ValueOf(const NemoKey& known, const Setting& setting) {
    if (known.argument == "window-size") {
      return absl::StrReplaceAll(
          setting.value,
          {{"[", ""}, {"]", ""}, {"(", ""}, {")", ""}, {" ", ""}});
    }
    if (known.argument == "recompute-modules" ||
        known.argument == "cuda-graph-scope") {
      return absl::StrReplaceAll(
          setting.value,
          {{"[", ""}, {"]", ""}, {"\"", ""}, {", ", " "}, {",", " "}});
    }
    if (known.argument == "position-embedding-type" &&
        setting.value == "yarn") {
      return "rope";
    }
    if (known.argument == "attention-backend") {
      return std::string(absl::StripPrefix(setting.value, "AttnBackend."));
    }
    return setting.value;
  }

  void TakeOther(const Setting& setting) {
    if (setting.key == "mixed_precision" ||
        setting.key == "trainer.precision") {
      TakePrecision(setting);
    } else if (setting.key == "mixed_precision.bf16" ||
               setting.key == "mixed_precision.fp16" ||
               setting.key == "mixed_precision.fp32") {
      has_precision_ = true;
      // All three come together; the last one that is on decides.
      if (!SwitchValue(setting, false, &problems_)) return;
      settings_.bf16 = setting.key == "mixed_precision.bf16";
      settings_.fp16 = setting.key == "mixed_precision.fp16";
    } else if (setting.key == "mixed_precision.grad_reduce_in_fp32") {
      fp32_gradients_ = SwitchValue(setting, true, &problems_);
    } else if (setting.key == "ddp.grad_reduce_in_fp32") {
      ddp_fp32_gradients_ = SwitchValue(setting, true, &problems_);
    } else if (setting.key == "model.activation_func" ||
               setting.key == "model.activation_func._target_" ||
               setting.key == "model.activation") {
      TakeActivation(setting);
    } else if (absl::StartsWith(setting.key, "peft")) {
      TakeAdapters(setting);
    } else if (setting.key == "trainer.num_nodes") {
      num_nodes_ = CountValue(setting, kMaxSettingCount, &problems_);
    } else if (setting.key == "trainer.devices") {
      devices_ = CountValue(setting, kMaxSettingCount, &problems_);
    }
  }

  void TakeAdapters(const Setting& setting) {
    Lora& lora = *settings_.training().mutable_lora();
    if (setting.key == "peft.dim") {
      lora.set_rank(CountValue(setting, kMaxSettingCount, &problems_));
    } else if (setting.key == "peft.target_modules") {
      lora.clear_target_modules();
      for (const absl::string_view name : absl::StrSplit(
               setting.value, absl::ByAnyChar("[]\"', "), absl::SkipEmpty())) {
        LoraModule module = LORA_MODULE_UNSPECIFIED;
        LoraModule_Parse(absl::AsciiStrToUpper(name), &module);
        if (module == LORA_MODULE_UNSPECIFIED) {
          ReportValue(setting,
                      "some of linear_qkv, linear_proj, linear_fc1, linear_fc2",
                      &problems_);
          return;
        }
        lora.add_target_modules(module);
      }
    } else if (setting.value == "lora" ||
               absl::EndsWith(setting.value, ".LoRA")) {
      has_adapters_ = true;
    } else if (setting.value != "null" && setting.value != "none") {
      ReportValue(setting, "lora", &problems_);
    }
  }

  void TakePrecision(const Setting& setting) {
    const std::string name =
        absl::StrReplaceAll(setting.value, {{"-", "_"}, {" ", ""}});
    has_precision_ = true;
    settings_.bf16 = settings_.fp16 = false;
    if (TakeRecipe(name)) return;
    if (name == "bf16_mixed" || name == "bf16") {
      settings_.bf16 = true;
    } else if (name == "fp16_mixed" || name == "16_mixed" || name == "16") {
      settings_.fp16 = true;
      if (!fp32_gradients_.has_value()) fp32_gradients_ = false;
    } else if (name != "32" && name != "fp32" && name != "32_true") {
      ReportValue(setting,
                  "bf16_mixed, fp16_mixed, 32, or a recipe such as "
                  "bf16_with_fp8_current_scaling_mixed",
                  &problems_);
    }
  }

  // Takes the name of a recipe of Megatron-Bridge; false: it is none. Its
  // parameters are gathered in FP8, except with NVFP4.
  bool TakeRecipe(absl::string_view name) {
    const std::pair<const char*, const char*> recipes[] = {
        {"bf16_with_fp8_mixed", "delayed"},
        {"bf16_with_fp8_delayed_scaling_mixed", "delayed"},
        {"bf16_with_fp8_current_scaling_mixed", "tensorwise"},
        {"bf16_with_fp8_subchannel_scaling_mixed", "blockwise"},
        {"bf16_with_mxfp8_mixed", "mxfp8"}};
    settings_.bf16 = true;
    if (name == "bf16_with_nvfp4_mixed") {
      settings_.fp4_format = "e2m1";
      return true;
    }
    for (const auto& [known, recipe] : recipes) {
      if (name != known) continue;
      settings_.fp8_format = "hybrid";
      settings_.fp8_recipe = recipe;
      settings_.training().set_quantized_parameters(true);
      settings_.first_last_in_bf16 =
          name == "bf16_with_fp8_current_scaling_mixed";
      return true;
    }
    settings_.bf16 = false;
    return false;
  }

  void TakeActivation(const Setting& setting) {
    for (const char* name : {"silu", "swiglu", "swish"}) {
      if (absl::StrContains(setting.value, name)) {
        if (setting.key == "model.activation") {
          settings_.model().set_gated_feed_forward(true);
        }
        return;
      }
    }
    if (absl::StrContains(setting.value, "gelu") &&
        !absl::StrContains(setting.value, "geglu")) {
      return;
    }
    ReportValue(setting, "silu or gelu", &problems_);
  }

  absl::StatusOr<ImportedRun> Finish() {
    // MixedPrecisionConfig overrides the setting of DDP; its default is fp32.
    const bool wide =
        fp32_gradients_.value_or(ddp_fp32_gradients_.value_or(!settings_.fp16));
    settings_.fp32_gradients = wide;
    settings_.gradients_in_bf16 = !wide;
    // Learned positions have the length of a sequence.
    if (settings_.max_positions == 0) {
      settings_.max_positions = settings_.batch().sequence_length();
    }
    Lora& lora = *settings_.training().mutable_lora();
    has_adapters_ |= lora.rank() > 0 || !lora.target_modules().empty();
    if (has_adapters_ && lora.rank() == 0) {
      lora.set_rank(kDefaultRank);
      settings_.notes.push_back(absl::StrCat("adapters of rank ", kDefaultRank,
                                             ", since peft.dim is not given"));
    }
    if (!has_adapters_) settings_.training().clear_lora();
    RETURN_IF_ERROR(CombineSettings(context_.num_gpus, &settings_, &problems_));
    RETURN_IF_ERROR(problems_.ToStatus());
    run_.num_gpus = num_nodes_ * devices_;
    run_.scenario = std::move(settings_.scenario);
    if (num_nodes_ > 0) run_.scenario.set_num_nodes(num_nodes_);
    AddNotes();
    ReportTo(&run_.report, &settings_);
    return std::move(run_);
  }

  void AddNotes() {
    std::vector<std::string>& notes = settings_.notes;
    if (!has_precision_) {
      notes.emplace_back("bf16_mixed, since mixed_precision is not given");
    }
    // Switches that recipes often turn on.
    std::vector<std::string> off;
    for (const char* argument :
         {"tp-comm-overlap", "no-overlap-p2p-communication",
          "overlap-grad-reduce", "overlap-param-gather", "no-bias-gelu-fusion",
          "no-bias-dropout-fusion"}) {
      const bool chosen =
          has_comm_overlap_ && absl::StrContains(argument, "overlap");
      if (!chosen && !settings_.given.contains(argument)) {
        off.push_back(settings_.NameOf(argument));
      }
    }
    if (!off.empty()) {
      notes.push_back(
          absl::StrCat("off, since not given: ", absl::StrJoin(off, ", ")));
    }
    notes.emplace_back(
        "settings that the file does not give are those of Megatron-Bridge's "
        "GPTModelProvider, not of your recipe");
  }

  const ImportContext& context_;
  Problems problems_;
  ImportedRun run_;
  SettingSorter sorter_;
  MegatronSettings settings_;
  std::optional<bool> fp32_gradients_, ddp_fp32_gradients_;
  uint32_t num_nodes_ = 0, devices_ = 0;
  bool has_comm_overlap_ = false, has_precision_ = false;
  bool has_adapters_ = false;
};

}  // namespace

absl::StatusOr<ImportedRun> ReadNemoSettings(const std::string& label,
                                             absl::string_view text,
                                             const ImportContext& context) {
  ASSIGN_OR_RETURN(const std::vector<Setting> settings,
                   ReadYamlSettings(label, text));
  return NemoReader(label, context).Read(settings);
}

}  // namespace weir::plan
