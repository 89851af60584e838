// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/frameworks/imported_run.h"

namespace weir::plan {
namespace {

class DeepSpeedReader {
 public:
  DeepSpeedReader(const std::string& label, const ImportContext& context,
                  const Scenario& base)
      : context_(context),
        problems_(label),
        sorter_(OptionTable::Of("deepspeed"), context.left_out, "",
                &run_.report, &problems_) {
    const FrameworkTable& table = OptionTable::Of("deepspeed").table();
    run_.report.file = label;
    run_.report.framework =
        absl::StrCat(table.framework(), " ", table.version());
    run_.scenario = base;
  }

  absl::StatusOr<ImportedRun> Read(const std::vector<Setting>& settings) {
    for (const Setting& setting : settings) {
      if (setting.value == "auto") {
        // Hugging Face's Trainer fills them in.
        run_.report.ignored.push_back({setting, "left to the Trainer (auto)"});
      } else if (sorter_.IsRead(setting)) {
        Take(setting);
      }
    }
    Finish();
    RETURN_IF_ERROR(problems_.ToStatus());
    return std::move(run_);
  }

 private:
  void Problem(const Setting& setting, const std::string& expected) {
    problems_.AddAt(
        setting.line, setting.key,
        absl::StrCat("is ", setting.value, ", expected ", expected));
  }

  uint32_t CountOf(const Setting& setting) {
    uint32_t count = 0;
    if (!absl::SimpleAtoi(setting.value, &count) || count == 0) {
      Problem(setting, "a whole number, 1 or more");
      return 0;
    }
    return count;
  }

  void Take(const Setting& setting) {
    Training& training = *run_.scenario.mutable_training();
    Communication& communication = *run_.scenario.mutable_communication();
    const std::string& key = setting.key;
    const bool on = setting.value == "true";
    if (key == "train_batch_size") {
      batch_ = CountOf(setting);
    } else if (key == "train_micro_batch_size_per_gpu") {
      microbatch_ = CountOf(setting);
    } else if (key == "gradient_accumulation_steps") {
      steps_ = CountOf(setting);
    } else if (key == "fp16.enabled") {
      fp16_ = on;
    } else if (key == "bf16.enabled" || key == "bfloat16.enabled") {
      bf16_ = on;
    } else if (key == "zero_optimization.stage") {
      TakeStage(setting);
    } else if (key == "zero_optimization.overlap_comm") {
      overlaps_ = on;
    } else if (key == "zero_optimization.reduce_bucket_size") {
      double elements = 0;
      if (!absl::SimpleAtod(setting.value, &elements) || !(elements >= 1) ||
          !(elements < 1e15)) {
        Problem(setting, "a number of elements");
      } else {
        bucket_elements_ = elements;
      }
    } else if (key == "optimizer.type") {
      const std::string name = absl::AsciiStrToLower(setting.value);
      if (absl::StrContains(name, "adam")) {
        training.set_optimizer(ADAM);
      } else if (name == "sgd") {
        training.set_optimizer(SGD_MOMENTUM);
      } else {
        Problem(setting, "Adam, AdamW, FusedAdam or SGD");
      }
    } else if (key == "data_types.grad_accum_dtype") {
      training.set_fp32_gradients(setting.value == "fp32");
      has_gradient_type_ = true;
    } else if (key == "communication_data_type") {
      communication_line_ = setting;
    } else if (key == "sequence_parallel_size") {
      TakeContext(CountOf(setting));
    } else if (CountOf(setting) > 1) {  // tensor parallelism
      Problem(setting, "1");
    }
    communication.set_transfers(communication.transfers());
  }

  // DeepSpeed-Ulysses.
  void TakeContext(uint32_t size) {
    if (size <= 1) return;
    Parallelism& parallelism = *run_.scenario.mutable_parallelism();
    parallelism.set_context(size);
    parallelism.set_context_method(CONTEXT_A2A);
  }

  void TakeStage(const Setting& setting) {
    if (setting.value == "0" || setting.value == "1" || setting.value == "3") {
      stage_ = setting.value[0] - '0';
    } else {
      Problem(setting,
              "0, 1 or 3 (ZeRO-2, which shards gradients but not weights, is "
              "not simulated)");
    }
  }

  void Finish() {
    Training& training = *run_.scenario.mutable_training();
    training.set_precision(fp16_ ? MIXED_FP16 : bf16_ ? MIXED_BF16 : FP32);
    if (fp16_ && bf16_) {
      problems_.Add("fp16.enabled", "cannot be combined with bf16.enabled");
    }
    // DeepSpeed's BF16_Optimizer accumulates in fp32; ZeRO keeps the gradients
    // in the format of the weights.
    if (!has_gradient_type_) {
      training.set_fp32_gradients(training.precision() == FP32 ||
                                  (bf16_ && stage_ == 0));
    }
    training.set_distributed_optimizer(stage_ == 1);
    training.set_fully_sharded(stage_ == 3);
    training.set_post_validation(false);
    if (training.optimizer() == OPTIMIZER_UNSPECIFIED) {
      training.set_optimizer(ADAM);
    }
    if (!communication_line_.key.empty()) {
      const std::string expected = training.fp32_gradients() ? "fp32"
                                   : fp16_                   ? "fp16"
                                                             : "bf16";
      if (communication_line_.value != expected) {
        Problem(communication_line_,
                absl::StrCat(expected, ", the format of the gradients"));
      }
    }
    Communication& communication = *run_.scenario.mutable_communication();
    // On by default only with stage 3.
    communication.set_gradient_reduction(overlaps_.value_or(stage_ == 3)
                                             ? REDUCTION_OVERLAPPED
                                             : REDUCTION_BLOCKING);
    if (bucket_elements_ > 0) {
      communication.set_bucket_bytes(bucket_elements_ *
                                     (training.fp32_gradients() ? 4 : 2));
    }
    run_.scenario.set_runtime("megatron-deepspeed");
    FinishBatch();
  }

  // train_batch_size = microbatch x gradient accumulation x replicas.
  void FinishBatch() {
    Batch& batch = *run_.scenario.mutable_batch();
    const Parallelism& parallelism = run_.scenario.parallelism();
    const uint64_t group = uint64_t{std::max(parallelism.tensor(), 1u)} *
                           std::max(parallelism.pipeline(), 1u) *
                           std::max(parallelism.context(), 1u);
    const uint64_t replicas =
        parallelism.data() > 0 ? parallelism.data() : context_.num_gpus / group;
    const auto fits = [](uint64_t n) { return n > 0 && n < (1u << 31); };
    if (microbatch_ == 0 && batch_ > 0 && replicas > 0) {
      const uint64_t parts = replicas * std::max(steps_, 1u);
      if (batch_ % parts != 0) {
        problems_.Add("train_batch_size",
                      absl::StrCat("is ", batch_, ", expected a multiple of ",
                                   parts, " (data-parallel ranks x ",
                                   "gradient_accumulation_steps)"));
        return;
      }
      microbatch_ = static_cast<uint32_t>(batch_ / parts);
    }
    if (batch_ == 0 && microbatch_ > 0 && replicas > 0) {
      const uint64_t size =
          uint64_t{microbatch_} * std::max(steps_, 1u) * replicas;
      if (fits(size)) batch_ = static_cast<uint32_t>(size);
    }
    if (batch_ > 0) batch.set_global_batch_size(batch_);
    if (microbatch_ > 0) batch.set_microbatch_size(microbatch_);
    if (batch_ == 0 && batch.global_batch_size() == 0) {
      run_.report.notes.push_back("no batch size: give --mbs and --gbs");
    }
  }

  const ImportContext& context_;
  Problems problems_;
  ImportedRun run_;
  SettingSorter sorter_;
  Setting communication_line_;
  uint32_t batch_ = 0, microbatch_ = 0, steps_ = 0;
  double bucket_elements_ = 0;
  int stage_ = 0;
  bool fp16_ = false, bf16_ = false, has_gradient_type_ = false;
  std::optional<bool> overlaps_;
};

}  // namespace

absl::StatusOr<ImportedRun> ReadDeepSpeedConfig(const std::string& label,
                                                absl::string_view text,
                                                const ImportContext& context,
                                                const Scenario& base) {
  ASSIGN_OR_RETURN(const std::vector<Setting> settings,
                   ReadJsonSettings(label, text));
  return DeepSpeedReader(label, context, base).Read(settings);
}

}  // namespace weir::plan
