// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/short_names.h"

#include "plan/sweep/fields.h"

namespace weir::plan {
namespace {

// The first name of a path is the one that is shown.
constexpr ShortName kShortNames[] = {
    {"tp", "parallelism.tensor"},
    {"pp", "parallelism.pipeline"},
    {"dp", "parallelism.data"},
    {"cp", "parallelism.context"},
    {"cp_comm_type", "parallelism.context_method"},
    {"ep", "parallelism.expert"},
    {"etp", "parallelism.expert_tensor"},
    {"data_replicate", "parallelism.data_replicate"},
    {"vocabulary_parallel", "parallelism.vocabulary_parallel"},
    {"chunks", "parallelism.chunks"},
    {"vpp", "parallelism.chunks"},
    {"order", "parallelism.order"},
    {"sequence_parallel", "parallelism.sequence_parallel"},
    {"nodes", "num_nodes"},
    {"topology", "cluster_changes.topology"},
    {"oversubscription", "cluster_changes.oversubscription"},
    {"routing", "cluster_changes.routing"},
    {"uplinks_per_leaf", "cluster_changes.uplinks_per_leaf"},
    {"nodes_per_leaf", "cluster_changes.nodes_per_leaf"},
    {"leaves_per_group", "cluster_changes.leaves_per_group"},
    {"nvlink_domain", "cluster_changes.nvlink_domain"},
    {"mbs", "batch.microbatch_size"},
    {"gbs", "batch.global_batch_size"},
    {"seq", "batch.sequence_length"},
    {"precision", "training.precision"},
    {"optimizer", "training.optimizer"},
    {"recompute", "training.recompute"},
    {"recompute_method", "training.recompute_method"},
    {"recompute_num_layers", "training.recompute_num_layers"},
    {"flash_attention", "training.flash_attention"},
    {"fp32_gradients", "training.fp32_gradients"},
    {"distributed_optimizer", "training.distributed_optimizer"},
    {"fully_sharded", "training.fully_sharded"},
    {"lora_rank", "training.lora.rank"},
    {"lora_target_modules", "training.lora.target_modules"},
    {"muon_num_ns_steps", "training.muon_num_ns_steps"},
    {"expert_imbalance", "training.expert_imbalance"},
    {"attention_format", "training.attention_format"},
    {"dispatch_format", "training.dispatch_format"},
    {"mtp_num_layers", "training.mtp_num_layers"},
    {"recompute_modules", "training.recompute_modules"},
    {"cpu_offloading_num_layers", "training.cpu_offloading_num_layers"},
    {"optimizer_offload_fraction", "training.optimizer_offload_fraction"},
    {"cuda_graph_scope", "training.cuda_graph_scope"},
    {"moe_router_fusion", "training.moe_router_fusion"},
    {"moe_router_num_groups", "training.moe_router_num_groups"},
    {"moe_router_group_topk", "training.moe_router_group_topk"},
    {"moe_expert_capacity_factor", "training.moe_expert_capacity_factor"},
    {"tp_comm_overlap", "communication.tp_comm_overlap"},
    {"moe_token_dispatcher_type", "communication.token_dispatcher"},
    {"moe_deepep_num_sms", "communication.dispatch_multiprocessors"},
    {"packed_sequences", "batch.packed_sequences.fixed"},
    {"transfers", "communication.transfers"},
    {"gradient_reduction", "communication.gradient_reduction"},
};

}  // namespace

std::span<const ShortName> ShortNames() { return kShortNames; }

std::string LongField(absl::string_view name) {
  for (const auto& [known, path] : kShortNames) {
    if (known == name) return std::string(path);
  }
  return std::string(name);
}

std::string ShortField(absl::string_view path) {
  for (const auto& [known, long_path] : kShortNames) {
    if (long_path == path) return std::string(known);
  }
  return std::string(path);
}

}  // namespace weir::plan
