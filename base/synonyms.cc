// SPDX-License-Identifier: Apache-2.0
#include "base/synonyms.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/spelling.h"

namespace weir {
namespace {

// Plain names: lower case, without leading dashes, '_' as '-'.
struct Synonym {
  absl::string_view name;
  absl::string_view own;  // weir's name
};

constexpr Synonym kSynonyms[] = {
    {"tensor", "tp"},
    {"tensor-parallel", "tp"},
    {"tensor-parallel-size", "tp"},
    {"model-parallel-size", "tp"},
    {"pipeline", "pp"},
    {"pipeline-parallel", "pp"},
    {"pipeline-parallel-size", "pp"},
    {"stages", "pp"},
    {"num-stages", "pp"},
    {"data", "dp"},
    {"data-parallel", "dp"},
    {"replicas", "dp"},
    {"expert", "ep"},
    {"expert-parallel", "ep"},
    {"expert-parallel-size", "ep"},
    {"virtual-pipeline", "chunks"},
    {"vp", "chunks"},
    {"virtual-stages", "chunks"},
    {"micro-batch", "mbs"},
    {"microbatch", "mbs"},
    {"microbatch-size", "mbs"},
    {"micro-bs", "mbs"},
    {"train-micro-batch-size-per-gpu", "mbs"},
    {"per-device-train-batch-size", "mbs"},
    {"batch", "gbs"},
    {"batch-size", "gbs"},
    {"global-batch", "gbs"},
    {"train-batch-size", "gbs"},
    {"gradient-accumulation-steps", "microbatches"},
    {"num-microbatches", "microbatches"},
    {"seq-len", "seq"},
    {"seqlen", "seq"},
    {"sequence-length", "seq"},
    {"max-seq-len", "seq"},
    {"context-length", "seq"},
    {"nnodes", "nodes"},
    {"num-nodes", "nodes"},
    {"world-size", "gpus"},
    {"num-gpus", "gpus"},
    {"context-parallel", "context-parallel-size"},
    {"context-parallel-degree", "context-parallel-size"},
    {"n-gpus", "gpus"},
    {"gpu", "gpus"},
    {"gpu", "cluster"},
    {"device", "profile"},
    {"dtype", "precision"},
    {"zero-1", "use-distributed-optimizer"},
    {"zero1", "use-distributed-optimizer"},
    {"zero-stage", "use-distributed-optimizer"},
    {"fsdp", "fully-sharded"},
    {"zero-3", "fully-sharded"},
    {"zero3", "fully-sharded"},
    {"activation-checkpointing", "recompute"},
    {"recompute-activations", "recompute"},
    {"checkpoint-activations", "recompute"},
    {"sp", "sequence-parallel"},
    {"memory", "memory-limit"},
};

std::string Plain(absl::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  return absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"_", "-"}});
}

}  // namespace

std::string SuggestName(absl::string_view name,
                        const std::vector<std::string>& known) {
  const std::string plain = Plain(name);
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.name != plain) continue;
    for (const std::string& candidate : known) {
      if (Plain(candidate) != synonym.own) continue;
      return absl::StrCat("; did you mean ", candidate, "?");
    }
  }
  return DidYouMean(name, known);
}

}  // namespace weir
