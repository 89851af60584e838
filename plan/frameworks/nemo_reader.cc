// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "calibrate/profile/runtime.h"
#include "plan/frameworks/imported_run.h"
#include "plan/frameworks/megatron_reader.h"
#include "plan/frameworks/nemo_keys.h"

namespace weir::plan {
namespace {

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
    const FrameworkTable& table = OptionTable::Of("nemo").table();
    run_.report.file = label;
    run_.report.framework =
        absl::StrCat(table.framework(), " ", table.version());
    settings_.runtime = "nemo";
  }

  absl::StatusOr<ImportedRun> Read(const std::vector<Setting>& all) {
    RETURN_IF_ERROR(SetDefaults());
    // A later line replaces an earlier one with the same key.
    std::map<std::string, size_t> last;
    for (size_t i = 0; i < all.size(); ++i) last[UsualKey(all[i].key)] = i;
    for (size_t i = 0; i < all.size(); ++i) {
      Setting setting = all[i];
      setting.key = UsualKey(setting.key);
      if (last[setting.key] == i && sorter_.IsRead(setting)) Take(setting);
    }
    Finish();
    RETURN_IF_ERROR(CombineSettings(context_.num_gpus, &settings_, &problems_));
    RETURN_IF_ERROR(problems_.ToStatus());
    run_.num_gpus = num_nodes_ * devices_;
    run_.scenario = std::move(settings_.scenario);
    if (num_nodes_ > 0) run_.scenario.set_num_nodes(num_nodes_);
    run_.report.notes = std::move(settings_.notes);
    run_.report.notes.push_back(
        "settings that the file does not give are those of Megatron-Bridge's "
        "GPTModelProvider, not of your recipe");
    return std::move(run_);
  }

 private:
  // Recipes choose the fusions and overlaps that the runtime has.
  absl::Status SetDefaults() {
    ASSIGN_OR_RETURN(const Runtime runtime,
                     calibrate::LoadRuntime(settings_.runtime));
    settings_.fused_cross_entropy = !runtime.unfused_cross_entropy();
    settings_.tp_comm_overlap = runtime.pipelines_tensor_collectives();
    settings_.overlap_param_gather = runtime.overlaps_step_gather();
    settings_.bf16 = true;
    return absl::OkStatus();
  }

  void Problem(const Setting& setting, const std::string& expected) {
    problems_.AddAt(
        setting.line, setting.key,
        absl::StrCat("is ", setting.value, ", expected ", expected));
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
    if (known.form == NemoKey::kValue) {
      argument.value = ValueOf(known, setting);
      if (known.argument == "num-query-groups") {
        settings_.grouped_queries = true;
      }
      TakeMegatronSetting(argument, setting.key, &settings_, &problems_);
      return;
    }
    const std::string value = absl::AsciiStrToLower(setting.value);
    if (value != "true" && value != "false") {
      Problem(setting, "true or false");
      return;
    }
    const bool given = (value == "true") == (known.form == NemoKey::kSwitch);
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
    if (known.argument == "recompute-modules") {
      return absl::StrReplaceAll(
          setting.value, {{"[", ""}, {"]", ""}, {"\"", ""}, {",", " "}});
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
    const std::string value = absl::AsciiStrToLower(setting.value);
    const bool on = value == "true";
    if (setting.key == "mixed_precision" ||
        setting.key == "trainer.precision") {
      TakePrecision(setting);
    } else if (setting.key == "mixed_precision.bf16" ||
               setting.key == "mixed_precision.fp16" ||
               setting.key == "mixed_precision.fp32") {
      // All three come together; the last one that is on decides.
      if (!on) return;
      settings_.bf16 = setting.key == "mixed_precision.bf16";
      settings_.fp16 = setting.key == "mixed_precision.fp16";
    } else if (setting.key == "mixed_precision.grad_reduce_in_fp32") {
      fp32_gradients_ = on;
    } else if (setting.key == "ddp.grad_reduce_in_fp32") {
      ddp_fp32_gradients_ = on;
    } else if (setting.key == "model.activation_func" ||
               setting.key == "model.activation_func._target_" ||
               setting.key == "model.activation") {
      TakeActivation(setting);
    } else if (setting.key == "trainer.num_nodes") {
      TakeCount(setting, &num_nodes_);
    } else if (setting.key == "trainer.devices") {
      TakeCount(setting, &devices_);
    }
  }

  void TakeCount(const Setting& setting, uint32_t* count) {
    if (!absl::SimpleAtoi(setting.value, count) || *count == 0 ||
        *count > 1000000) {
      Problem(setting, "a whole number, 1 to 1000000");
      *count = 0;
    }
  }

  void TakePrecision(const Setting& setting) {
    const std::string name =
        absl::StrReplaceAll(setting.value, {{"-", "_"}, {" ", ""}});
    settings_.bf16 = settings_.fp16 = false;
    if (name == "bf16_mixed" || name == "bf16") {
      settings_.bf16 = true;
    } else if (name == "fp16_mixed" || name == "16_mixed" || name == "16") {
      settings_.fp16 = true;
      if (!fp32_gradients_.has_value()) fp32_gradients_ = false;
    } else if (name != "32" && name != "fp32" && name != "32_true") {
      Problem(setting, "bf16_mixed, fp16_mixed or 32 (fp8 is not simulated)");
    }
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
    Problem(setting, "silu or gelu");
  }

  void Finish() {
    // MixedPrecisionConfig overrides the setting of DDP; its default is fp32.
    const bool wide =
        fp32_gradients_.value_or(ddp_fp32_gradients_.value_or(!settings_.fp16));
    settings_.fp32_gradients = wide;
    settings_.gradients_in_bf16 = !wide;
    // Learned positions have the length of a sequence.
    if (settings_.max_positions == 0) {
      settings_.max_positions = settings_.batch().sequence_length();
    }
  }

  const ImportContext& context_;
  Problems problems_;
  ImportedRun run_;
  SettingSorter sorter_;
  MegatronSettings settings_;
  std::optional<bool> fp32_gradients_, ddp_fp32_gradients_;
  uint32_t num_nodes_ = 0, devices_ = 0;
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
