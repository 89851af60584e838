// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "plan/frameworks/imported_run.h"
#include "plan/frameworks/torchtitan_stages.h"

namespace weir::plan {
namespace {

constexpr uint32_t kMaxDegree = 1000000;

class TorchtitanReader {
 public:
  TorchtitanReader(const std::string& label, const ImportContext& context)
      : label_(label),
        context_(context),
        problems_(label),
        sorter_(OptionTable::Of("torchtitan"), context.left_out, "",
                &run_.report, &problems_) {
    const FrameworkTable& table = OptionTable::Of("torchtitan").table();
    run_.report.file = label;
    run_.report.framework =
        absl::StrCat(table.framework(), " ", table.version());
  }

  absl::StatusOr<ImportedRun> Read(const std::vector<Setting>& settings) {
    for (const Setting& setting : settings) {
      if (sorter_.IsRead(setting)) read_[setting.key] = setting;
    }
    TakeModel();
    TakeParallelism();
    TakeBatch();
    TakeTraining();
    RETURN_IF_ERROR(problems_.ToStatus());
    return std::move(run_);
  }

 private:
  bool Has(const std::string& key) const { return read_.contains(key); }

  std::string Text(const std::string& key, const std::string& otherwise) const {
    const auto found = read_.find(key);
    return found == read_.end() ? otherwise : found->second.value;
  }

  void Problem(const std::string& key, absl::string_view expected) {
    const auto found = read_.find(key);
    problems_.AddAt(
        found == read_.end() ? 0 : found->second.line, key,
        absl::StrCat("is ",
                     found == read_.end() ? "not given" : found->second.value,
                     ", expected ", expected));
  }

  // Returns a whole number from `least`, which -1 also is if `otherwise` is.
  int64_t Whole(const std::string& key, int64_t otherwise, int64_t least = 1) {
    const auto found = read_.find(key);
    if (found == read_.end()) return otherwise;
    int64_t number = 0;
    if (absl::SimpleAtoi(found->second.value, &number) &&
        ((number >= least && number <= kMaxDegree) ||
         (number == -1 && otherwise == -1))) {
      return number;
    }
    Problem(key, absl::StrCat("a whole number from ", least, " to ", kMaxDegree,
                              otherwise == -1 ? ", or -1" : ""));
    return otherwise == -1 ? 1 : otherwise;
  }

  void TakeModel() {
    const std::string name = Text("model.name", "llama3");
    const std::string flavor = Text("model.flavor", "debugmodel");
    if (context_.left_out.contains("model.name") ||
        context_.left_out.contains("model.flavor")) {
      run_.report.notes.push_back("no description of the model: give --model");
      return;
    }
    std::vector<std::string> known;
    for (const FrameworkModel& model :
         OptionTable::Of("torchtitan").table().models()) {
      if (model.name() == name && model.flavor() == flavor) {
        *run_.scenario.mutable_transformer() = model.transformer();
        return;
      }
      known.push_back(absl::StrCat(model.name(), " ", model.flavor()));
    }
    problems_.AddAt(Has("model.flavor") ? read_["model.flavor"].line : 0,
                    "model.flavor",
                    absl::StrCat("is ", name, " ", flavor, ", expected one of ",
                                 absl::StrJoin(known, ", "),
                                 ", or --leave-out model.flavor with --model"));
  }

  void TakeParallelism() {
    Parallelism& parallelism = *run_.scenario.mutable_parallelism();
    tensor_ = Whole("parallelism.tensor_parallel_degree", 1);
    pipeline_ = Whole("parallelism.pipeline_parallel_degree", 1);
    replicate_ = Whole("parallelism.data_parallel_replicate_degree", 1);
    shard_ = Whole("parallelism.data_parallel_shard_degree", -1);
    const std::string experts = "parallelism.expert_parallel_degree";
    if (Whole(experts, 1) > 1) Problem(experts, "1");
    TakeContext();
    parallelism.set_tensor(static_cast<uint32_t>(tensor_));
    parallelism.set_pipeline(static_cast<uint32_t>(pipeline_));
    parallelism.set_expert(1);
    parallelism.set_order("tp-dp-pp");
    parallelism.set_sequence_parallel(tensor_ > 1);
    TakeReplicas();
    TakeSchedule();
  }

  void TakeContext() {
    context_size_ = Whole("parallelism.context_parallel_degree", 1);
    const std::string key = "parallelism.context_parallel_rotate_method";
    const std::string method = Text(key, "allgather");
    if (method != "allgather" && method != "alltoall") {
      Problem(key, "allgather or alltoall");
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
        problems_.Add("parallelism",
                      absl::StrCat("needs a multiple of ", group,
                                   " GPUs, but there are ", context_.num_gpus));
      }
      shard_ = std::max<int64_t>(context_.num_gpus / group, 1);
    }
    if (replicate_ > 1 && shard_ > 1) {
      Problem("parallelism.data_parallel_replicate_degree",
              "1 with sharding (hybrid sharding is not simulated)");
    }
    if (replicate_ > 1 && tensor_ * pipeline_ > 1) {
      Problem("parallelism.data_parallel_replicate_degree",
              "1 with tensor or pipeline parallelism, which torchtitan's DDP "
              "does not support");
    }
    if (shard_ > 0) {
      run_.scenario.mutable_parallelism()->set_data(
          static_cast<uint32_t>(replicate_ * shard_));
    }
    // Unless the number of GPUs is unknown, when data parallelism shards.
    // Context-parallel ranks shard, too.
    sharded_ = shard_ != 1 || context_size_ > 1;
    run_.scenario.mutable_training()->set_fully_sharded(sharded_);
    run_.scenario.mutable_training()->set_distributed_optimizer(false);
    if (!sharded_) return;
    const std::string reshard =
        Text("parallelism.fsdp_reshard_after_forward", "default");
    if (reshard == "never" || (reshard == "default" && pipeline_ > 1)) {
      run_.report.notes.push_back(
          "simulated as fsdp_reshard_after_forward = \"always\": weights are "
          "gathered again for every pass, not kept");
    }
  }

  void TakeSchedule() {
    Scenario& scenario = run_.scenario;
    Parallelism& parallelism = *scenario.mutable_parallelism();
    if (pipeline_ == 1) {
      scenario.set_schedule("1f1b");
      parallelism.set_chunks(1);
      return;
    }
    const std::string key = "parallelism.pipeline_parallel_schedule";
    const std::string name = Text(key, "1F1B");
    const std::string csv =
        Text("parallelism.pipeline_parallel_schedule_csv", "");
    bool has_chunks = name != "PipelineScheduleSingle";
    if (!csv.empty()) {
      scenario.set_schedule(
          (std::filesystem::path(label_).parent_path() / csv).string());
      if (scenario.schedule().find('/') == std::string::npos) {
        scenario.set_schedule("./" + scenario.schedule());
      }
    } else {
      const auto& all = TorchSchedules();
      const auto found = std::find_if(
          all.begin(), all.end(),
          [&](const TorchSchedule& one) { return one.torch_name == name; });
      if (found == all.end()) {
        Problem(key, absl::StrJoin(all, ", ", [](auto* out, const auto& one) {
                  absl::StrAppend(out, one.torch_name);
                }));
        return;
      }
      scenario.set_schedule(std::string(found->name));
      has_chunks = found->has_chunks;
    }
    TakeStages(has_chunks);
  }

  void TakeStages(bool has_chunks) {
    Parallelism& parallelism = *run_.scenario.mutable_parallelism();
    const uint32_t layers = run_.scenario.transformer().num_layers();
    const std::string modules = "parallelism.module_fqns_per_model_part";
    std::vector<uint32_t> blocks;
    if (Has(modules) && Text(modules, "") != "[]") {
      const auto read = BlocksOfModules(Text(modules, ""), layers);
      if (!read.ok()) {
        Problem(modules, read.status().message());
        return;
      }
      blocks = *read;
      if (blocks.size() % pipeline_ != 0) {
        Problem(modules, absl::StrCat("a multiple of ", pipeline_, " stages"));
        return;
      }
    } else {
      const auto first = static_cast<uint32_t>(
          Whole("parallelism.pipeline_parallel_first_stage_less_layers", 1, 0));
      const auto last = static_cast<uint32_t>(
          Whole("parallelism.pipeline_parallel_last_stage_less_layers", 1, 0));
      const std::string key = "parallelism.pipeline_parallel_layers_per_stage";
      const int64_t each = Whole(key, 0);
      int64_t num_stages = pipeline_ * (has_chunks ? 2 : 1);
      if (each > 0) {
        num_stages = (int64_t{layers} + first + last + each - 1) / each;
        if (num_stages % pipeline_ != 0 ||
            (num_stages > pipeline_) != has_chunks) {
          Problem(key,
                  absl::StrCat("a number that gives ",
                               has_chunks ? "two or more stages" : "one stage",
                               " per pipeline rank, not ", num_stages,
                               " stages on ", pipeline_, " ranks"));
          return;
        }
      }
      if (layers > 0 && num_stages <= kMaxDegree) {
        blocks = TorchtitanBlocks(static_cast<uint32_t>(num_stages), layers,
                                  first, last);
      }
      if (blocks.empty()) {
        problems_.Add("parallelism",
                      absl::StrCat("asks for ", num_stages,
                                   " stages, into which torchtitan cannot "
                                   "divide ",
                                   layers, " layers"));
        return;
      }
    }
    if (std::count(blocks.begin(), blocks.end(), 0u) > 0) {
      problems_.Add("parallelism",
                    "has a stage without layers, which is not simulated");
      return;
    }
    parallelism.set_chunks(static_cast<uint32_t>(blocks.size() / pipeline_));
    if (std::adjacent_find(blocks.begin(), blocks.end(),
                           std::not_equal_to<>()) != blocks.end()) {
      parallelism.mutable_blocks_per_stage()->Assign(blocks.begin(),
                                                     blocks.end());
    }
  }

  void TakeBatch() {
    Batch& batch = *run_.scenario.mutable_batch();
    batch.set_sequence_length(
        static_cast<uint32_t>(Whole("training.seq_len", 2048)));
    const char* local_key = Has("training.batch_size")
                                ? "training.batch_size"
                                : "training.local_batch_size";
    const int64_t local = Whole(local_key, 8);
    const int64_t global = Whole("training.global_batch_size", -1);
    const int64_t replicas = shard_ > 0 ? replicate_ * shard_ : 0;
    const int64_t part =
        pipeline_ > 1
            ? Whole("parallelism.pipeline_parallel_microbatch_size", 1)
            : local;
    if (local % part != 0) {
      Problem("parallelism.pipeline_parallel_microbatch_size",
              absl::StrCat("a divisor of ", local_key, ", ", local));
    }
    batch.set_microbatch_size(static_cast<uint32_t>(part));
    if (replicas == 0 && global == -1) {
      run_.report.notes.push_back(
          "the batch depends on the number of GPUs: give --cluster and "
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
      Problem("training.global_batch_size",
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
    const std::string mode = Text("activation_checkpoint.mode", "selective");
    const std::string option =
        Text("activation_checkpoint.selective_ac_option", "2");
    training.set_recompute(RECOMPUTE_NONE);
    if (mode == "full") {
      training.set_recompute(RECOMPUTE_FULL);
    } else if (mode == "selective" && option == "op") {
      training.set_recompute(RECOMPUTE_OPERATORS);
    } else if (mode == "selective" &&
               !context_.left_out.contains(
                   "activation_checkpoint.selective_ac_option")) {
      Problem("activation_checkpoint.selective_ac_option",
              "op (recomputing every n-th layer is not simulated; --leave-out "
              "activation_checkpoint.selective_ac_option predicts without "
              "recomputation)");
    } else if (mode != "selective" && mode != "none" &&
               !context_.left_out.contains("activation_checkpoint.mode")) {
      Problem("activation_checkpoint.mode",
              "none, selective or full (others are not simulated; --leave-out "
              "activation_checkpoint.mode predicts without recomputation)");
    }
  }

  void TakeTraining() {
    Training& training = *run_.scenario.mutable_training();
    if (Text("training.dtype", "float32") != "float32") {
      Problem("training.dtype", "float32");
    }
    if (Text("training.mixed_precision_reduce", "float32") != "float32") {
      Problem("training.mixed_precision_reduce", "float32");
    }
    const bool bf16 =
        Text("training.mixed_precision_param", "bfloat16") == "bfloat16";
    if (bf16 && !sharded_ && tensor_ * pipeline_ == 1) {
      Problem("training.mixed_precision_param",
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
    if (replicate_ > 1) {
      communication.set_bucket_bytes(100.0 * (1 << 20));  // apply_ddp
    }
    const bool compiled = Text("compile.enable", "false") == "true" ||
                          Text("training.compile", "false") == "true";
    run_.scenario.set_runtime(compiled ? "torchtitan-compile" : "torchtitan");
  }

  const std::string& label_;
  const ImportContext& context_;
  Problems problems_;
  ImportedRun run_;
  SettingSorter sorter_;
  std::map<std::string, Setting> read_;
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
