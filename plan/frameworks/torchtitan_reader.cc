// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "plan/frameworks/imported_run.h"
#include "plan/frameworks/setting_values.h"
#include "plan/frameworks/torchtitan_schedule.h"

namespace weir::plan {
namespace {

constexpr uint32_t kMostLayers = 100000;

class TorchtitanReader {
 public:
  TorchtitanReader(const std::string& label, const ImportContext& context)
      : label_(label),
        table_(OptionTable::Of("torchtitan")),
        context_(context),
        problems_(label),
        sorter_(table_, context.left_out, "", &run_.report, &problems_),
        values_(table_, &problems_) {
    run_.report = ReportFor(label, table_);
  }

  absl::StatusOr<ImportedRun> Read(const std::vector<Setting>& settings) {
    for (const Setting& setting : settings) {
      if (sorter_.IsRead(setting)) values_.Add(setting);
    }
    for (const std::string& meant : sorter_.misspelled()) {
      values_.Suppress(meant);
    }
    TakeModel();
    // Unknown degrees would cause other problems.
    if (TakeDegrees()) {
      TakeReplicas();
      TakeTorchtitanSchedule(label_, pipeline_, &values_, &problems_,
                             &run_.scenario);
      TakeBatch();
    }
    TakeTraining();
    RETURN_IF_ERROR(problems_.ToStatus());
    return std::move(run_);
  }

 private:
  void TakeModel() {
    const std::string name = values_.Text("model.name", "llama3");
    const std::string flavor = values_.Text("model.flavor", "debugmodel");
    if (context_.left_out.contains("model.name") ||
        context_.left_out.contains("model.flavor")) {
      if (!context_.HasModel()) {
        run_.report.missing.emplace_back("the model: give --model");
      }
      return;
    }
    if (values_.IsReported("model.name") ||
        values_.IsReported("model.flavor")) {
      return;
    }
    std::vector<std::string> known;
    for (const FrameworkModel& model : table_.table().models()) {
      if (model.name() == name && model.flavor() == flavor) {
        *run_.scenario.mutable_transformer() = model.transformer();
        return;
      }
      known.push_back(absl::StrCat(model.name(), " ", model.flavor()));
    }
    problems_.AddAt(values_.LineOf("model.flavor"), "model.flavor",
                    absl::StrCat("is ", name, " ", flavor, ", expected one of ",
                                 absl::StrJoin(known, ", "),
                                 ", or --leave-out model.flavor with --model"));
  }

  // Returns false if a degree was reported.
  bool TakeDegrees() {
    Parallelism& parallelism = *run_.scenario.mutable_parallelism();
    tensor_ = values_.Whole("parallelism.tensor_parallel_degree", 1);
    pipeline_ = values_.Whole("parallelism.pipeline_parallel_degree", 1);
    replicate_ = values_.Whole("parallelism.data_parallel_replicate_degree", 1);
    shard_ = values_.Whole("parallelism.data_parallel_shard_degree", -1);
    TakeContext();
    parallelism.set_tensor(static_cast<uint32_t>(tensor_));
    parallelism.set_pipeline(static_cast<uint32_t>(pipeline_));
    TakeExperts();
    parallelism.set_order("tp-dp-pp");
    parallelism.set_sequence_parallel(tensor_ > 1);
    for (const char* key : {"parallelism.tensor_parallel_degree",
                            "parallelism.pipeline_parallel_degree",
                            "parallelism.data_parallel_replicate_degree",
                            "parallelism.data_parallel_shard_degree"}) {
      if (values_.IsReported(key)) return false;
    }
    return true;
  }

  // Experts borrow the ranks of other dimensions; with a tensor-parallel degree
  // of 1, the default, also tensor-parallel ones (ParallelDims in torchtitan).
  void TakeExperts() {
    const std::string key = "parallelism.expert_tensor_parallel_degree";
    const int64_t experts =
        values_.Whole("parallelism.expert_parallel_degree", 1);
    const int64_t each = values_.Whole(key, 1);
    Parallelism& parallelism = *run_.scenario.mutable_parallelism();
    parallelism.set_expert(static_cast<uint32_t>(experts));
    if (experts == 1) return;  // tensor-parallel like other layers
    if (each != 1 && each != tensor_) {
      values_.Report(key, "1 or parallelism.tensor_parallel_degree");
    }
    if (each != tensor_) parallelism.set_expert_tensor(1);
  }

  void TakeContext() {
    context_size_ = values_.Whole("parallelism.context_parallel_degree", 1);
    const std::string key = "parallelism.context_parallel_rotate_method";
    const std::string method = values_.Text(key, "allgather");
    if (method != "allgather" && method != "alltoall") {
      values_.Report(key, "allgather or alltoall");
    }
    if (context_size_ == 1) return;
    Parallelism& parallelism = *run_.scenario.mutable_parallelism();
    parallelism.set_context(static_cast<uint32_t>(context_size_));
    // Each step of "alltoall" sends to the next rank of the ring only.
    parallelism.set_context_method(method == "alltoall" ? CONTEXT_P2P
                                                        : CONTEXT_ALL_GATHER);
  }

  void TakeReplicas() {
    const int64_t group = tensor_ * pipeline_ * context_size_ * replicate_;
    if (shard_ == -1 && context_.num_gpus > 0) {
      if (context_.num_gpus % group != 0) {
        problems_.Add(
            "parallelism",
            absl::StrCat("has tensor_parallel_degree ", tensor_,
                         " x pipeline_parallel_degree ", pipeline_,
                         " x context_parallel_degree ", context_size_,
                         " x data_parallel_replicate_degree ", replicate_,
                         " = ", group, ", expected a divisor of the ",
                         context_.num_gpus, " GPUs"));
      }
      shard_ = std::max<int64_t>(context_.num_gpus / group, 1);
    }
    // Unless the number of GPUs is unknown, when data parallelism shards.
    // Context-parallel ranks shard, too.
    sharded_ = shard_ != 1 || context_size_ > 1;
    if (replicate_ > 1 && sharded_) {
      run_.scenario.mutable_parallelism()->set_data_replicate(
          static_cast<uint32_t>(replicate_));
    } else if (replicate_ > 1 && tensor_ * pipeline_ > 1) {
      values_.Report(
          "parallelism.data_parallel_replicate_degree",
          "1, or data_parallel_shard_degree above 1: torchtitan's DDP does not "
          "support tensor or pipeline parallelism");
    }
    if (shard_ > 0) {
      run_.scenario.mutable_parallelism()->set_data(
          static_cast<uint32_t>(replicate_ * shard_));
    }
    run_.scenario.mutable_training()->set_fully_sharded(sharded_);
    run_.scenario.mutable_training()->set_distributed_optimizer(false);
    if (!sharded_) return;
    const std::string reshard =
        values_.Text("parallelism.fsdp_reshard_after_forward", "default");
    if (reshard == "never" || (reshard == "default" && pipeline_ > 1)) {
      run_.report.notes.push_back(
          "simulated as fsdp_reshard_after_forward = \"always\": weights are "
          "gathered again for every pass, not kept");
    }
  }

  void TakeBatch() {
    Batch& batch = *run_.scenario.mutable_batch();
    batch.set_sequence_length(
        static_cast<uint32_t>(values_.Whole("training.seq_len", 2048)));
    const char* local_key = values_.Has("training.batch_size")
                                ? "training.batch_size"
                                : "training.local_batch_size";
    const int64_t local = values_.Whole(local_key, 8);
    const int64_t global = values_.Whole("training.global_batch_size", -1);
    const int64_t replicas = shard_ > 0 ? replicate_ * shard_ : 0;
    const int64_t part =
        pipeline_ > 1
            ? values_.Whole("parallelism.pipeline_parallel_microbatch_size", 1)
            : local;
    if (local % part != 0) {
      values_.Report("parallelism.pipeline_parallel_microbatch_size",
                     absl::StrCat("a divisor of ", local_key, ", ", local));
    }
    batch.set_microbatch_size(static_cast<uint32_t>(part));
    if (replicas == 0 && global == -1) {
      run_.report.missing.emplace_back(
          "the batch, which depends on the number of GPUs: give --cluster and "
          "--nodes");
      return;
    }
    const int64_t size = global == -1 ? local * replicas : global;
    if (size > std::numeric_limits<int32_t>::max()) {
      problems_.Add(local_key, "is too large");
      return;
    }
    batch.set_global_batch_size(static_cast<uint32_t>(size));
    if (replicas == 0 || size % (local * replicas) != 0) return;
    const int64_t num_steps = size / (local * replicas);
    if (num_steps > 1 && pipeline_ > 1) {
      values_.Report(
          "training.global_batch_size",
          absl::StrCat(local * replicas,
                       " (gradient accumulation over several runs of a "
                       "pipeline is not simulated)"));
    } else if (num_steps > 1 && sharded_) {
      run_.report.notes.push_back(
          "gradients are reduced once per batch in the simulation, but once "
          "per microbatch by torchtitan");
    }
  }

  void TakeRecomputation(Training& training) {
    const std::string mode =
        values_.Text("activation_checkpoint.mode", "selective");
    const std::string option =
        values_.Text("activation_checkpoint.selective_ac_option", "2");
    training.set_recompute(RECOMPUTE_NONE);
    if (mode == "full") {
      training.set_recompute(RECOMPUTE_FULL);
    } else if (mode == "selective" && option == "op") {
      training.set_recompute(RECOMPUTE_OPERATORS);
    } else if (uint32_t n = 0; mode == "selective" &&
                               absl::SimpleAtoi(option, &n) && n > 0 &&
                               n <= kMostLayers) {
      // The n-th layer of each pipeline stage, and so on.
      training.set_recompute(RECOMPUTE_FULL);
      if (n > 1) {
        training.set_recompute_method(RECOMPUTE_EVERY);
        training.set_recompute_num_layers(n);
      }
    } else if (mode == "selective" &&
               !context_.left_out.contains(
                   "activation_checkpoint.selective_ac_option")) {
      values_.Report("activation_checkpoint.selective_ac_option",
                     "op, or n to recompute every n-th layer");
    } else if (mode != "selective" && mode != "none" &&
               !context_.left_out.contains("activation_checkpoint.mode")) {
      values_.Report(
          "activation_checkpoint.mode",
          "none, selective or full (others are not simulated; --leave-out "
          "activation_checkpoint.mode predicts without recomputation)");
    }
  }

  void TakeTraining() {
    Training& training = *run_.scenario.mutable_training();
    if (values_.Text("training.dtype", "float32") != "float32") {
      values_.Report("training.dtype", "float32");
    }
    if (values_.Text("training.mixed_precision_reduce", "float32") !=
        "float32") {
      values_.Report("training.mixed_precision_reduce", "float32");
    }
    const bool bf16 = values_.Text("training.mixed_precision_param",
                                   "bfloat16") == "bfloat16";
    if (bf16 && !sharded_ && tensor_ * pipeline_ == 1) {
      values_.Report(
          "training.mixed_precision_param",
          "float32 without sharding (torch.autocast is not simulated)");
    }
    if (bf16 && !sharded_ && tensor_ * pipeline_ > 1) {
      run_.report.notes.push_back(
          "fp32, because torchtitan has no mixed precision for tensor or "
          "pipeline parallelism without sharding");
    }
    training.set_precision(bf16 && sharded_ ? MIXED_BF16 : FP32);
    training.set_fp32_gradients(true);
    training.set_flash_attention(true);  // scaled_dot_product_attention
    training.set_dropout(false);
    training.set_optimizer(ADAM);
    training.set_post_validation(false);
    TakeRecomputation(training);
    Communication& communication = *run_.scenario.mutable_communication();
    communication.set_transfers(OVERLAPPED);
    communication.set_gradient_reduction(REDUCTION_OVERLAPPED);
    if (replicate_ > 1 && !sharded_) {
      communication.set_bucket_bytes(100.0 * (1 << 20));  // apply_ddp
    }
    const bool compiled = values_.Switch("compile.enable", false) ||
                          values_.Switch("training.compile", false);
    run_.scenario.set_runtime(compiled ? "torchtitan-compile" : "torchtitan");
  }

  const std::string& label_;
  const OptionTable& table_;
  const ImportContext& context_;
  Problems problems_;
  ImportedRun run_;
  SettingSorter sorter_;
  SettingValues values_;
  int64_t tensor_ = 1, pipeline_ = 1, replicate_ = 1, shard_ = -1;
  int64_t context_size_ = 1;
  bool sharded_ = false;
};

}  // namespace

absl::StatusOr<ImportedRun> ReadTorchtitanJob(const std::string& label,
                                              absl::string_view text,
                                              const ImportContext& context) {
  ASSIGN_OR_RETURN(const std::vector<Setting> settings,
                   ReadTomlSettings(label, text));
  return TorchtitanReader(label, context).Read(settings);
}

}  // namespace weir::plan
