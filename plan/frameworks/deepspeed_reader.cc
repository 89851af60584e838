// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/frameworks/imported_run.h"
#include "plan/frameworks/setting_values.h"

namespace weir::plan {
namespace {

// Keys.
constexpr char kBatch[] = "train_batch_size";
constexpr char kMicrobatch[] = "train_micro_batch_size_per_gpu";
constexpr char kSteps[] = "gradient_accumulation_steps";
constexpr char kStage[] = "zero_optimization.stage";
constexpr char kBucket[] = "zero_optimization.reduce_bucket_size";
constexpr char kTransferType[] = "communication_data_type";
constexpr char kGradientType[] = "data_types.grad_accum_dtype";

class DeepSpeedReader {
 public:
  DeepSpeedReader(const std::string& label, const ImportContext& context,
                  const Scenario& base)
      : table_(OptionTable::Of("deepspeed")),
        context_(context),
        problems_(label),
        sorter_(table_, context.left_out, "", &run_.report, &problems_),
        values_(table_, &problems_) {
    run_.report = ReportFor(label, table_);
    run_.scenario = base;
  }

  absl::StatusOr<ImportedRun> Read(const std::vector<Setting>& settings) {
    for (const Setting& setting : settings) {
      if (setting.value == "auto") {
        // Hugging Face's Trainer fills them in.
        run_.report.ignored.push_back({setting, "left to the Trainer (auto)"});
      } else if (sorter_.IsRead(setting)) {
        values_.Add(setting);
      }
    }
    for (const std::string& meant : sorter_.misspelled()) {
      values_.Suppress(meant);
    }
    const char* tensor = "tensor_parallel.autotp_size";
    if (values_.Whole(tensor, 1) > 1) values_.Report(tensor, "1");
    TakeContext(values_.Whole("sequence_parallel_size", 1));
    TakeTraining();
    TakeCommunication();
    run_.scenario.set_runtime("megatron-deepspeed");
    TakeBatch();
    RETURN_IF_ERROR(problems_.ToStatus());
    return std::move(run_);
  }

 private:
  void TakeTraining() {
    Training& training = *run_.scenario.mutable_training();
    const bool fp16 = values_.Switch("fp16.enabled", false);
    const bool bf16 = values_.Switch("bf16.enabled", false) ||
                      values_.Switch("bfloat16.enabled", false);
    if (fp16 && bf16) {
      values_.Report("fp16.enabled", "false with bf16.enabled");
    }
    training.set_precision(fp16 ? MIXED_FP16 : bf16 ? MIXED_BF16 : FP32);
    const std::string stage = values_.Text(kStage, "0");
    if (stage != "0" && stage != "1" && stage != "3") {
      values_.Report(kStage,
                     "0, 1 or 3 (ZeRO-2, which shards gradients but not "
                     "weights, is not simulated)");
    }
    sharded_ = stage == "3";
    training.set_distributed_optimizer(stage == "1");
    training.set_fully_sharded(sharded_);
    // DeepSpeed's BF16_Optimizer accumulates in fp32; ZeRO keeps the gradients
    // in the format of the weights.
    training.set_fp32_gradients(values_.Has(kGradientType)
                                    ? values_.Text(kGradientType, "") == "fp32"
                                    : training.precision() == FP32 ||
                                          (bf16 && stage == "0"));
    training.set_post_validation(false);
    TakeOptimizer();
  }

  // DeepSpeed-Ulysses.
  void TakeContext(int64_t size) {
    if (size <= 1) return;
    Parallelism& parallelism = *run_.scenario.mutable_parallelism();
    parallelism.set_context(static_cast<uint32_t>(size));
    parallelism.set_context_method(CONTEXT_A2A);
  }

  void TakeOptimizer() {
    Training& training = *run_.scenario.mutable_training();
    const std::string name =
        absl::AsciiStrToLower(values_.Text("optimizer.type", ""));
    if (absl::StrContains(name, "adam")) {
      training.set_optimizer(ADAM);
    } else if (name == "sgd") {
      training.set_optimizer(SGD_MOMENTUM);
    } else if (!name.empty()) {
      values_.Report("optimizer.type", "Adam, AdamW, FusedAdam or SGD");
    }
    if (training.optimizer() == OPTIMIZER_UNSPECIFIED) {
      training.set_optimizer(ADAM);
    }
  }

  void TakeCommunication() {
    const Training& training = run_.scenario.training();
    if (values_.Has(kTransferType)) {
      const std::string expected = training.fp32_gradients() ? "fp32"
                                   : training.precision() == MIXED_FP16
                                       ? "fp16"
                                       : "bf16";
      if (values_.Text(kTransferType, "") != expected) {
        values_.Report(kTransferType,
                       absl::StrCat(expected, ", the format of the gradients"));
      }
    }
    Communication& communication = *run_.scenario.mutable_communication();
    // On by default only with stage 3.
    communication.set_gradient_reduction(
        values_.Switch("zero_optimization.overlap_comm", sharded_)
            ? REDUCTION_OVERLAPPED
            : REDUCTION_BLOCKING);
    if (!values_.Has(kBucket)) return;
    double elements = 0;
    if (!absl::SimpleAtod(values_.Text(kBucket, ""), &elements) ||
        !(elements >= 1) || !(elements < 1e15)) {
      values_.Report(kBucket, "a number of elements");
      return;
    }
    communication.set_bucket_bytes(elements *
                                   (training.fp32_gradients() ? 4 : 2));
  }

  // Returns 0 if the number of GPUs is unknown.
  int64_t NumReplicas() const {
    const Parallelism& parallelism = run_.scenario.parallelism();
    if (parallelism.data() > 0) return parallelism.data();
    return context_.num_gpus / (int64_t{std::max(parallelism.tensor(), 1u)} *
                                std::max(parallelism.pipeline(), 1u) *
                                std::max(parallelism.context(), 1u));
  }

  // train_batch_size = microbatch x gradient accumulation x replicas, two of
  // which determine the third.
  void TakeBatch() {
    int64_t size = values_.Whole(kBatch, 0);
    int64_t microbatch = values_.Whole(kMicrobatch, 0);
    const int64_t steps = values_.Whole(kSteps, 0);
    const int64_t replicas = NumReplicas();
    for (const char* key : {kBatch, kMicrobatch, kSteps}) {
      if (values_.IsReported(key)) return;
    }
    if (size > 0 && replicas > 0) CheckBatch(size, microbatch, steps, replicas);
    const int64_t parts = replicas * std::max<int64_t>(steps, 1);
    if (microbatch == 0 && size > 0 && parts > 0) microbatch = size / parts;
    if (size == 0 && microbatch > 0) size = microbatch * parts;
    if (size >= int64_t{1} << 31) size = 0;
    Batch& batch = *run_.scenario.mutable_batch();
    if (size > 0) batch.set_global_batch_size(static_cast<uint32_t>(size));
    if (microbatch > 0) {
      batch.set_microbatch_size(static_cast<uint32_t>(microbatch));
    }
    if (batch.global_batch_size() == 0) {
      run_.report.missing.emplace_back("the batch size: give --mbs and --gbs");
    }
  }

  // DeepSpeed asserts that the sizes agree. Sizes of the command line replace
  // those of the file, which then need not.
  void CheckBatch(int64_t size, int64_t microbatch, int64_t steps,
                  int64_t replicas) {
    const Batch& flags = context_.overrides.batch();
    if (flags.global_batch_size() > 0 || flags.microbatch_size() > 0) return;
    const int64_t parts =
        std::max<int64_t>(microbatch, 1) * std::max<int64_t>(steps, 1);
    const bool exact = microbatch > 0 && steps > 0;
    if (exact ? size == parts * replicas : size % (parts * replicas) == 0) {
      return;
    }
    std::string product;
    if (microbatch > 0)
      absl::StrAppend(&product, kMicrobatch, " (", microbatch, ") x ");
    if (steps > 0) absl::StrAppend(&product, kSteps, " (", steps, ") x ");
    values_.Report(kBatch,
                   absl::StrCat(exact ? "" : "a multiple of ", parts * replicas,
                                ", which is ", product, "data-parallel ranks (",
                                replicas, ")"));
  }

  const OptionTable& table_;
  const ImportContext& context_;
  Problems problems_;
  ImportedRun run_;
  SettingSorter sorter_;
  SettingValues values_;
  bool sharded_ = false;
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
