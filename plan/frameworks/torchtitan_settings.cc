// SPDX-License-Identifier: Apache-2.0
// Rules of torchtitan's parallelize_llama and pipeline_llm; the table names
// their versions.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/util/message_differencer.h"
#include "models/layout.h"
#include "plan/frameworks/exported_run.h"
#include "plan/frameworks/option_table.h"
#include "plan/frameworks/torchtitan_stages.h"
#include "scenarios/recomputation.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/registry.h"
#include "sim/simulate.h"

namespace weir::plan {
namespace {

// Returns what distinguishes architectures, with defaults filled in.
Transformer Architecture(Transformer model) {
  model.clear_default_sequence_length();
  if (model.num_kv_heads() == 0) model.set_num_kv_heads(model.num_heads());
  if (model.head_size() == 0 && model.num_heads() > 0) {
    model.set_head_size(model.hidden_size() / model.num_heads());
  }
  if (model.feed_forward_size() == 0) {
    model.set_feed_forward_size(4 * model.hidden_size());
  }
  return model;
}

const FrameworkModel* FindModel(const Transformer& model) {
  const Transformer own = Architecture(model);
  for (const FrameworkModel& known :
       OptionTable::Of("torchtitan").table().models()) {
    if (google::protobuf::util::MessageDifferencer::Equals(
            own, Architecture(known.transformer()))) {
      return &known;
    }
  }
  return nullptr;
}

// Returns nullptr for a schedule that PyTorch does not have under a name.
const TorchSchedule* FindSchedule(const scenarios::ResolvedScenario& run) {
  const auto own = schedules::FindScheduleKind(run.scenario.schedule());
  if (!own.ok()) return nullptr;
  for (const TorchSchedule& one : TorchSchedules()) {
    const auto kind = schedules::FindScheduleKind(std::string(one.name));
    // Options may change the order.
    if (kind.ok() && *kind == *own &&
        run.scenario.schedule().find(':') == std::string::npos) {
      return &one;
    }
  }
  return nullptr;
}

// Returns the blocks of each stage; empty if the stages do not consist of
// blocks with the embedding before and the head after them.
std::vector<uint32_t> BlocksOf(const scenarios::ResolvedScenario& run) {
  const Parallelism& parallelism = run.scenario.parallelism();
  if (!parallelism.blocks_per_stage().empty()) {
    return {parallelism.blocks_per_stage().begin(),
            parallelism.blocks_per_stage().end()};
  }
  const uint32_t num_stages = parallelism.pipeline() * parallelism.chunks();
  std::vector<uint32_t> blocks;
  if (parallelism.layout().empty()) {
    const uint32_t layers = run.model.transformer().num_layers();
    if (num_stages == 0 || layers % num_stages != 0) return {};
    return std::vector<uint32_t>(num_stages, layers / num_stages);
  }
  const auto layout = models::ParseLayout("", parallelism.layout());
  if (!layout.ok()) return {};
  for (const auto& stage : *layout) {
    blocks.push_back(static_cast<uint32_t>(models::CountBlocks({stage})));
    if (blocks.back() == 0) return {};
  }
  return blocks;
}

class TorchtitanRules {
 public:
  explicit TorchtitanRules(const scenarios::ResolvedScenario& run)
      : run_(run), scenario_(run.scenario) {}

  std::vector<std::string> All() {
    if (!run_.model.has_transformer()) {
      return {"the model consists of measured layers"};
    }
    CheckModel();
    CheckParallelism();
    CheckTraining();
    CheckSchedule();
    return std::move(reasons_);
  }

 private:
  void Refuse(bool refused, std::string reason) {
    if (refused) reasons_.push_back(std::move(reason));
  }

  bool HasReplicas() const { return run_.placement.data > 1; }

  void CheckModel() {
    const Transformer& model = run_.model.transformer();
    std::vector<std::string> known;
    for (const FrameworkModel& one :
         OptionTable::Of("torchtitan").table().models()) {
      known.push_back(absl::StrCat(one.name(), " ", one.flavor()));
    }
    Refuse(
        FindModel(model) == nullptr,
        absl::StrCat("its models are defined in Python, and weir knows only ",
                     absl::StrJoin(known, ", ")));
    Refuse(model.tied_embeddings() && scenario_.parallelism().pipeline() > 1,
           "tied embeddings do not go with pipeline parallelism");
  }

  void CheckParallelism() {
    const Parallelism& parallelism = scenario_.parallelism();
    const uint32_t model_size = parallelism.tensor() * parallelism.pipeline();
    Refuse(!parallelism.gpus().empty() ||
               (parallelism.order() != "tp-dp-pp" && HasReplicas() &&
                parallelism.pipeline() > 1),
           "it numbers GPUs only as tp-dp-pp");
    Refuse(parallelism.tensor() > 1 && !parallelism.sequence_parallel(),
           "its tensor parallelism is always sequence parallel: use "
           "--sequence-parallel");
    Refuse(parallelism.expert() > 1 && parallelism.expert_tensor() > 1 &&
               parallelism.expert_tensor() != parallelism.tensor(),
           "its experts are shared by one GPU or a tensor-parallel group: use "
           "--etp 1");
    Refuse(parallelism.vocabulary_parallel() != VOCABULARY_PARALLEL_UNSPECIFIED,
           "it does not shard the vocabulary across pipeline ranks");
    Refuse(scenario_.batch().has_packed_sequences(),
           "weir does not write its datasets of packed sequences");
    Refuse(parallelism.context_method() == CONTEXT_A2A ||
               parallelism.context_method() == CONTEXT_A2A_P2P,
           "its context parallelism does not exchange tokens for heads: use "
           "--cp-comm-type p2p or all_gather");
    CheckSharding(model_size);
  }

  // All reasons that --fully-sharded removes are one. What FSDP2 itself needs
  // is reported as if it were given, so that all reasons hold together.
  void CheckSharding(uint32_t model_size) {
    const Training& training = scenario_.training();
    const bool replicated = HasReplicas();
    const bool bf16 = training.precision() == MIXED_BF16;
    Refuse(bf16 && !replicated,
           "mixed precision with bf16 needs sharded data parallelism: use --dp "
           "2 or more");
    sharded_ = training.fully_sharded();
    if (sharded_ || !replicated) return;
    std::vector<std::string> reasons;
    if (scenario_.parallelism().context() > 1) {
      reasons.emplace_back("context-parallel ranks shard the weights");
    }
    if (model_size > 1) {
      reasons.emplace_back(
          "its DDP does not go with tensor or pipeline parallelism");
    }
    if (bf16) reasons.emplace_back("mixed precision with bf16 needs FSDP2");
    if (training.distributed_optimizer()) {
      reasons.emplace_back(
          "it shards the optimizer only together with the weights");
    }
    if (reasons.empty()) return;
    sharded_ = true;
    reasons_.push_back(absl::StrCat(
        absl::StrJoin(reasons, ", and "), ": use --fully-sharded",
        training.distributed_optimizer() ? " --distributed-optimizer=false"
                                         : ""));
  }

  void CheckTraining() {
    const Training& training = scenario_.training();
    const Precision precision = training.precision();
    Refuse(precision == MIXED_FP16, "no fp16: use --precision bf16");
    Refuse(precision == MIXED_BF16 && !training.fp32_gradients(),
           "it reduces gradients in fp32: use --fp32-gradients");
    Refuse(!training.recipe().empty(),
           "weir does not write its settings of 8-bit formats: use --precision "
           "bf16");
    Refuse(!training.flash_attention(),
           "its attention is fused: use --flash-attention");
    Refuse(training.dropout(),
           "its models have no dropout: use --dropout=false");
    Refuse(training.lora().rank() > 0, "weir does not write its adapters");
    Refuse(training.attention_format() != OPERAND_16_BIT ||
               training.dispatch_format() != OPERAND_16_BIT,
           "weir does not write its settings of 8-bit formats");
    Refuse(training.optimizer() != ADAM, "only Adam: use --optimizer adam");
    Refuse(training.recompute() == RECOMPUTE_SELECTIVE,
           "its selective recomputation is that of operators: use --recompute "
           "operators");
    const RecomputeMethod method = scenarios::RecomputeOf(training).method();
    Refuse(method == RECOMPUTE_BLOCK || method == RECOMPUTE_UNIFORM,
           "it recomputes every n-th layer: use --recompute-method every");
    Refuse(training.cpu_offloading_num_layers() > 0 ||
               training.optimizer_offload_fraction() > 0,
           "weir does not write its offloading to the host");
    Refuse(training.post_validation(), "no post-validation of steps");
    const Communication& communication = scenario_.communication();
    Refuse(communication.has_tp_comm_overlap(),
           "weir does not write its asynchronous tensor parallelism");
    const bool reduces = HasReplicas();
    Refuse(
        reduces && communication.gradient_reduction() != REDUCTION_OVERLAPPED,
        "it overlaps the reduction of gradients: use --overlap-grad-reduce");
    Refuse(reduces && !sharded_ &&
               communication.bucket_bytes() != 100.0 * (1 << 20),
           "its DDP reduces buckets of 100 MiB: use --bucket-bytes 100MiB");
    Refuse(sharded_ && communication.bucket_bytes() != 0,
           "FSDP2 reduces block by block, without buckets of a given size: "
           "leave out --bucket-bytes");
    Refuse(communication.transfers() == BLOCKING &&
               scenario_.parallelism().pipeline() > 1,
           "it overlaps transfers: use --transfers overlapped");
    Refuse(sharded_ && run_.num_microbatches > 1 &&
               scenario_.parallelism().pipeline() == 1,
           "it reduces sharded gradients after every microbatch, not once per "
           "batch: use --microbatches 1");
  }

  void CheckSchedule() {
    const Parallelism& parallelism = scenario_.parallelism();
    if (parallelism.pipeline() == 1) {
      Refuse(parallelism.chunks() > 1, "no chunks without pipeline ranks");
      return;
    }
    Refuse(BlocksOf(run_).empty(),
           "a stage has no block, or the embedding or head is not at an end");
    const TorchSchedule* named = FindSchedule(run_);
    if (named != nullptr) {
      Refuse(named->has_chunks != (parallelism.chunks() > 1),
             absl::StrCat(named->torch_name,
                          named->has_chunks ? " needs at least two stages"
                                            : " has one stage",
                          " per pipeline rank"));
      return;
    }
    const auto schedule = sim::ScheduleOfScenario(run_, 1);
    if (!schedule.ok()) {
      Refuse(true, std::string(schedule.status().message()));
      return;
    }
    const absl::Status readable = schedules::CheckPyTorchReads(*schedule);
    Refuse(!readable.ok(),
           absl::StrReplaceAll(readable.message(), {{"\n", "; "}}));
    const auto kind = schedules::FindScheduleKind(scenario_.schedule());
    Refuse(kind.ok() && !(*kind)->flush, "it has only schedules with a flush");
    for (int stage = 0; stage < schedule->num_stages; ++stage) {
      const std::vector<int> ranks = schedule->RanksOf(stage);
      if (ranks.size() == 1 &&
          ranks[0] == stage % static_cast<int>(parallelism.pipeline())) {
        continue;
      }
      Refuse(true, "a schedule from a file has its stages on ranks in turn");
      return;
    }
  }

  const scenarios::ResolvedScenario& run_;
  const Scenario& scenario_;
  std::vector<std::string> reasons_;
  bool sharded_ = false;  // with the flags that the reasons name
};

}  // namespace

bool NeedsCsv(const scenarios::ResolvedScenario& run) {
  return run.scenario.parallelism().pipeline() > 1 &&
         FindSchedule(run) == nullptr;
}

std::vector<std::string> TorchtitanObstacles(
    const scenarios::ResolvedScenario& run) {
  return TorchtitanRules(run).All();
}

std::vector<Setting> TorchtitanSettingsOf(
    const scenarios::ResolvedScenario& run, const std::string& csv) {
  const Scenario& scenario = run.scenario;
  const Parallelism& parallelism = scenario.parallelism();
  const Batch& batch = scenario.batch();
  std::vector<Setting> settings;
  const auto add = [&](absl::string_view key, const auto& value) {
    settings.push_back({std::string(key), absl::StrCat(value), 0, true});
  };
  const FrameworkModel* model = FindModel(run.model.transformer());
  add("model.name", model == nullptr ? "" : model->name());
  add("model.flavor", model == nullptr ? "" : model->flavor());
  add("optimizer.name", "AdamW");
  add("optimizer.lr", "0.0003");
  const bool pipelined = parallelism.pipeline() > 1;
  add("training.local_batch_size",
      pipelined ? batch.global_batch_size() / parallelism.data()
                : batch.microbatch_size());
  add("training.global_batch_size", batch.global_batch_size());
  add("training.seq_len", batch.sequence_length());
  add("training.steps", 20);
  add("training.dataset", "c4_test");
  add("training.mixed_precision_param",
      scenario.training().precision() == FP32 ? "float32" : "bfloat16");
  add("training.mixed_precision_reduce", "float32");
  const bool sharded = scenario.training().fully_sharded();
  const uint32_t replicate =
      sharded ? std::max(parallelism.data_replicate(), 1u) : parallelism.data();
  add("parallelism.data_parallel_replicate_degree", replicate);
  add("parallelism.data_parallel_shard_degree", parallelism.data() / replicate);
  add("parallelism.fsdp_reshard_after_forward", "always");
  add("parallelism.tensor_parallel_degree", parallelism.tensor());
  add("parallelism.pipeline_parallel_degree", parallelism.pipeline());
  if (parallelism.expert() > 1) {
    add("parallelism.expert_parallel_degree", parallelism.expert());
    add("parallelism.expert_tensor_parallel_degree",
        parallelism.expert_tensor() > 0 ? parallelism.expert_tensor()
                                        : parallelism.tensor());
  }
  add("parallelism.context_parallel_degree",
      std::max(parallelism.context(), 1u));
  if (parallelism.context() > 1) {
    add("parallelism.context_parallel_rotate_method",
        parallelism.context_method() == CONTEXT_ALL_GATHER ? "allgather"
                                                           : "alltoall");
  }
  if (pipelined) {
    const TorchSchedule* named = FindSchedule(run);
    add("parallelism.pipeline_parallel_schedule",
        named != nullptr ? named->torch_name : "PipelineScheduleMulti");
    if (named == nullptr) {
      add("parallelism.pipeline_parallel_schedule_csv", csv);
    }
    add("parallelism.pipeline_parallel_microbatch_size",
        batch.microbatch_size());
    add("parallelism.module_fqns_per_model_part",
        TorchtitanModules(BlocksOf(run)));
  }
  const models::Recompute recompute =
      scenarios::RecomputeOf(scenario.training());
  const bool operators = recompute == RECOMPUTE_OPERATORS;
  add("activation_checkpoint.mode", recompute == RECOMPUTE_FULL ? "full"
                                    : operators || recompute.by_stage()
                                        ? "selective"
                                        : "none");
  if (operators || recompute.by_stage()) {
    add("activation_checkpoint.selective_ac_option",
        operators ? "op" : absl::StrCat(recompute.num_layers()));
    settings.back().form = Setting::Form::kString;
  }
  add("compile.enable",
      run.runtime.name() == "torchtitan-compile" ? "true" : "false");
  return settings;
}

}  // namespace weir::plan
