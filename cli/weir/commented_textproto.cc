// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/commented_textproto.h"

#include <google/protobuf/descriptor.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/textproto.h"

namespace weir::cli {
namespace {

using Comment = std::pair<absl::string_view, absl::string_view>;

// By field name.
constexpr Comment kComments[] = {
    // weir.Model
    {"num_layers", "transformer blocks"},
    {"hidden_size", "units of the residual stream"},
    {"num_heads", "query heads"},
    {"num_kv_heads", "key-value heads; fewer than num_heads: grouped queries"},
    {"feed_forward_size", "units of the feed-forward layer, or of each expert"},
    {"vocabulary_size", "without padding"},
    {"gated_feed_forward", "SwiGLU or GeGLU: two input matrices"},
    {"num_experts", "per layer; 0: dense"},
    {"tied_embeddings", "the head uses the weights of the embedding"},
    // weir.Cluster. Rates are bytes per second in one direction.
    {"count", "nodes of this kind"},
    {"num_gpus", "GPUs of a node"},
    {"device", "profile of the GPU (weir profile list), or a file"},
    {"nv_switch", "NVLink through a switch: rate of one GPU in one direction"},
    {"nv_link_mesh", "point-to-point NVLinks"},
    {"pcie", "used where there is no NVLink, and for NICs"},
    {"nics", "network adapters: 400 Gb/s are 50e9 bytes per second"},
    {"fabric", "the network between nodes"},
    {"nodes_per_leaf", "0: all nodes under one switch"},
    {"oversubscription", "downlinks over uplinks of a leaf; 1: non-blocking"},
    {"rail_optimized", "GPU i of all nodes shares leaf switches"},
    {"dragonfly", "groups of leaf switches instead of a spine"},
    {"leaves_per_group", "leaf switches of a group of a dragonfly"},
    // weir.Scenario
    {"model",
     "preset (weir model list), or a file, relative to the folder in "
     "which weir runs"},
    {"cluster", "preset (weir cluster list), or a file"},
    {"num_nodes", "0 or absent: as in the cluster"},
    {"tensor", "--tp: GPUs that share each layer"},
    {"pipeline", "--pp: ranks, each with consecutive layers"},
    {"data", "--dp: copies of the pipeline"},
    {"chunks", "--chunks: stages per rank"},
    {"sequence_parallel", "splits norms over the tensor-parallel GPUs too"},
    {"microbatch_size", "--mbs: sequences per microbatch"},
    {"global_batch_size", "--gbs: sequences per step, over all replicas"},
    {"sequence_length", "--seq: tokens"},
    {"schedule", "weir schedule list"},
    {"runtime", "training framework, see docs/runtimes.md"},
    {"precision", "FP32, MIXED_FP16 or MIXED_BF16"},
    {"optimizer", "ADAM or SGD"},
    {"recompute", "RECOMPUTE_NONE, RECOMPUTE_SELECTIVE or RECOMPUTE_FULL"},
    {"recompute_method",
     "RECOMPUTE_UNIFORM, RECOMPUTE_BLOCK or RECOMPUTE_EVERY"},
    {"flash_attention", "fused attention: scores are never stored"},
    {"fp32_gradients", "gradients are accumulated and reduced in fp32"},
    {"distributed_optimizer", "ZeRO-1: optimizer states are sharded"},
    {"transfers", "OVERLAPPED or BLOCKING: between stages"},
    {"gradient_reduction",
     "REDUCTION_OVERLAPPED with backward passes, or "
     "REDUCTION_BLOCKING"},
};

absl::string_view CommentOf(absl::string_view field) {
  for (const auto& [name, comment] : kComments) {
    if (name == field) return comment;
  }
  return "";
}

}  // namespace

std::string CommentedTextProto(const google::protobuf::Message& message) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  std::string text = absl::StrCat(
      "# proto-file: ", std::string(type.file()->name()),
      "\n# proto-message: ", std::string(type.full_name()), "\n\n");
  std::set<std::string> explained;
  const std::string plain = PrintTextProto(message);
  for (absl::string_view line :
       absl::StrSplit(absl::StripSuffix(plain, "\n"), '\n')) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin != absl::string_view::npos) {
      const absl::string_view field =
          line.substr(begin, line.find_first_of(": ", begin) - begin);
      const absl::string_view comment = CommentOf(field);
      if (!comment.empty() && explained.insert(std::string(field)).second) {
        absl::StrAppend(&text, std::string(begin, ' '), "# ", comment, "\n");
      }
    }
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace weir::cli
