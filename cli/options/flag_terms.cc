// SPDX-License-Identifier: Apache-2.0
#include "cli/options/flag_terms.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "plan/sweep/fields.h"

namespace weir::cli {
namespace {

struct Term {
  std::string field;
  std::string flag;
};

// Fields whose flag is not the short name that sweeps use.
constexpr std::pair<absl::string_view, absl::string_view> kOtherFlags[] = {
    {"parallelism.num_gpus", "--gpus"},
    {"parallelism.gpus", "--placement"},
    {"parallelism.blocks_per_stage", "--blocks-per-stage"},
    {"parallelism.layout", "--layout"},
    {"parallelism.decoder_first_pipeline_num_layers",
     "--decoder-first-pipeline-num-layers"},
    {"parallelism.decoder_last_pipeline_num_layers",
     "--decoder-last-pipeline-num-layers"},
    {"parallelism.account_for_embedding_in_pipeline_split",
     "--account-for-embedding-in-pipeline-split"},
    {"parallelism.account_for_loss_in_pipeline_split",
     "--account-for-loss-in-pipeline-split"},
    {"batch.packed_sequences.uniform.shortest",
     "the shortest length of --packed-sequences"},
    {"batch.packed_sequences.uniform.longest",
     "the longest length of --packed-sequences"},
    {"batch.packed_sequences.log_normal.mean",
     "the mean of --packed-sequences"},
    {"batch.packed_sequences.log_normal.deviation",
     "the deviation of --packed-sequences"},
    {"batch.packed_sequences.histogram.lengths", "--packed-sequences"},
    {"batch.packed_sequences", "--packed-sequences"},
    {"parallelism.hierarchical_context",
     "--hierarchical-context-parallel-sizes"},
    {"training.dropout", "--dropout"},
    {"training.lora", "--lora-rank"},
    {"communication.overlap_expert_exchange",
     "--overlap-moe-expert-parallel-comm"},
    {"communication.tp_comm_overlap", "--tp-comm-overlap"},
    {"training.cuda_graph_scope", "--cuda-graph-scope"},
    {"training.moe_router_fusion", "--moe-router-fusion"},
    {"training.moe_router_num_groups", "--moe-router-num-groups"},
    {"training.moe_router_group_topk", "--moe-router-group-topk"},
    {"training.moe_expert_capacity_factor", "--moe-expert-capacity-factor"},
    {"training.moe_pad_expert_input_to_capacity",
     "--moe-pad-expert-input-to-capacity"},
    {"training.quantized_parameters", "--fp8-param-gather"},
    {"training.first_blocks_in_16_bits", "--num-layers-at-start-in-bf16"},
    {"training.last_blocks_in_16_bits", "--num-layers-at-end-in-bf16"},
    {"training.first_moment", "--exp-avg-dtype"},
    {"training.second_moment", "--exp-avg-sq-dtype"},
    {"training.main_weights", "--main-params-dtype"},
    {"training.recipe", "--precision"},
    {"training.stash_bytes_per_parameter", "--stash-bytes-per-parameter"},
    {"training.post_validation", "--post-validation"},
    {"training.rollback_fraction", "--rollback-fraction"},
    {"communication.bucket_bytes", "--bucket-bytes"},
    {"num_microbatches", "--microbatches"},
    {"num_batches", "--batches"},
    {"space.gpus", "--gpus"},
    {"space.tensor", "--tp"},
    {"space.pipeline", "--pp"},
    {"space.context", "--cp"},
    {"space.data", "--dp"},
    {"space.expert", "--ep"},
    {"space.expert_tensor", "--etp"},
    {"space.data_replicate", "--data-replicate"},
    {"space.chunks", "--chunks"},
    {"space.microbatch_size", "--mbs"},
    {"space.partial_recompute", "--recompute"},
    {"space.schedules", "--schedule"},
    {"space.orders", "--order"},
    {"space.sharding", "--sharding"},
};

// Values of fields that flags spell differently.
struct Value {
  absl::string_view field;
  absl::string_view name;
  absl::string_view spelling;
};
constexpr Value kValues[] = {
    {"training.optimizer", "ADAM", "adam"},
    {"training.optimizer", "SGD_MOMENTUM", "sgd"},
    {"training.optimizer", "MUON", "muon"},
    {"training.optimizer", "DIST_MUON", "dist_muon"},
    {"training.recompute", "RECOMPUTE_OPERATORS", "operators"},
    {"training.precision", "FP32", "fp32"},
    {"training.precision", "MIXED_FP16", "fp16"},
    {"training.precision", "MIXED_BF16", "bf16"},
    {"training.lora.target_modules", "LINEAR_QKV", "linear_qkv"},
    {"training.lora.target_modules", "LINEAR_PROJ", "linear_proj"},
    {"training.lora.target_modules", "LINEAR_FC1", "linear_fc1"},
    {"training.lora.target_modules", "LINEAR_FC2", "linear_fc2"},
    {"communication.token_dispatcher", "TOKENS_ALL_TO_ALL", "alltoall"},
    {"communication.token_dispatcher", "TOKENS_DEEPEP", "flex"},
    {"communication.token_dispatcher", "TOKENS_HYBRID_EP", "hybridep"},
    {"parallelism.vocabulary_parallel", "VOCABULARY_ONE_BARRIER",
     "one-barrier"},
    {"parallelism.vocabulary_parallel", "VOCABULARY_TWO_BARRIERS",
     "two-barriers"},
};

const std::vector<Term>& Terms() {
  static const auto& terms = *new std::vector<Term>([] {
    std::vector<Term> all;
    for (const std::string& path : plan::FieldPaths(*Scenario::descriptor())) {
      const std::string name = plan::ShortField(path);
      if (name == path) continue;
      all.push_back(
          {path, absl::StrCat("--", absl::StrReplaceAll(name, {{"_", "-"}}))});
    }
    for (const auto& [field, flag] : kOtherFlags) {
      all.push_back({std::string(field), std::string(flag)});
    }
    return all;
  }());
  return terms;
}

// Fields that are also words: replaced only at the beginning of a message.
constexpr std::pair<absl::string_view, absl::string_view> kWords[] = {
    {"model", "--model"},       {"cluster", "--cluster"},
    {"profile", "--profile"},   {"runtime", "--runtime"},
    {"schedule", "--schedule"}, {"defaults", "--defaults"},
    {"costs", "--costs"},       {"slow", "--slow"},
    {"failed", "--failed"},     {"background", "--background"},
};

bool IsSet(const google::protobuf::Message& message, absl::string_view path) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(path, absl::MaxSplits('.', 1));
  const auto* field = message.GetDescriptor()->FindFieldByName(parts.first);
  if (field == nullptr) return false;
  const auto* reflection = message.GetReflection();
  if (field->is_repeated()) return reflection->FieldSize(message, field) > 0;
  if (!reflection->HasField(message, field)) return false;
  return parts.second.empty() ||
         IsSet(reflection->GetMessage(message, field), parts.second);
}

bool IsGiven(const ScenarioFlags& flags, absl::string_view field) {
  if (flags.scenario.empty() || absl::StartsWith(field, "space.")) return true;
  if (field == "schedule") return !flags.schedules.empty();
  if (field == "parallelism.sequence_parallel") {
    return flags.sequence_parallel.has_value();
  }
  if (field == "training.flash_attention") {
    return flags.flash_attention.has_value();
  }
  if (field == "training.dropout") return flags.dropout.has_value();
  if (field == "training.fp32_gradients") {
    return flags.fp32_gradients.has_value();
  }
  if (field == "training.fully_sharded") {
    return flags.fully_sharded.has_value();
  }
  if (field == "training.distributed_optimizer") {
    return flags.distributed_optimizer.has_value();
  }
  if (field == "training.post_validation") {
    return flags.post_validation.has_value();
  }
  // Lengths may be 0, which counts as not set.
  if (absl::StartsWith(field, "batch.packed_sequences")) {
    return flags.overrides.batch().has_packed_sequences();
  }
  return IsSet(flags.overrides, field);
}

bool IsPartOfName(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '/' || c == '-';
}

void Replace(const std::string& field, const std::string& flag,
             std::string* text) {
  size_t at = 0;
  while ((at = text->find(field, at)) != std::string::npos) {
    const size_t end = at + field.size();
    const bool whole = (at == 0 || (!IsPartOfName((*text)[at - 1]) &&
                                    (*text)[at - 1] != '.')) &&
                       (end == text->size() || !IsPartOfName((*text)[end]));
    if (!whole) {
      at = end;
      continue;
    }
    text->replace(at, field.size(), flag);
    at += flag.size();
  }
}

std::string Translated(absl::string_view line, const ScenarioFlags& flags) {
  std::string text(line);
  // "interleaved-1f1b:v=3" states the chunks.
  if (flags.schedules.size() == 1 &&
      flags.overrides.parallelism().chunks() == 0 &&
      absl::StrContains(flags.schedules[0], ":v=")) {
    text = absl::StrReplaceAll(
        text, {{"parallelism.chunks ", "v="}, {"parallelism.chunks", "v"}});
  }
  text = InFlagTerms(std::move(text), flags);
  const size_t label = text.find(": ");
  if (label == std::string::npos) return text;
  const size_t begin = label + 2;
  for (const auto& [field, flag] : kWords) {
    const absl::string_view rest = absl::string_view(text).substr(begin);
    if (!absl::StartsWith(rest, absl::StrCat(field, " ")) ||
        !IsGiven(flags, field)) {
      continue;
    }
    text.replace(begin, field.size(), std::string(flag));
    break;
  }
  return text;
}

}  // namespace

std::string InFlagTerms(std::string warning, const ScenarioFlags& flags) {
  for (const Term& term : Terms()) {
    if (IsGiven(flags, term.field)) Replace(term.field, term.flag, &warning);
  }
  for (const Value& value : kValues) {
    if (!IsGiven(flags, value.field)) continue;
    Replace(std::string(value.name), std::string(value.spelling), &warning);
  }
  return warning;
}

absl::Status InFlagTerms(const absl::Status& status,
                         const ScenarioFlags& flags) {
  if (status.ok()) return status;
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    lines.push_back(Translated(line, flags));
  }
  return absl::Status(status.code(), absl::StrJoin(lines, "\n"));
}

}  // namespace weir::cli
