// SPDX-License-Identifier: Apache-2.0
#include "scenarios/recomputation.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "models/block_spec.h"
#include "models/describe.h"
#include "models/parameters.h"

namespace weir::scenarios {
namespace {

constexpr double kMaxLayers = 1e5;

// Returns true if some block satisfies `condition`.
template <typename Condition>
bool AnyBlock(const Transformer& transformer, const Condition& condition) {
  const models::BlockList blocks = models::BlocksOf(transformer);
  return std::any_of(blocks.kinds.begin(), blocks.kinds.end(), condition);
}

// Returns what the model lacks for a module, or "".
const char* LackingFor(RecomputeModule module, const Transformer& transformer) {
  const auto experts = [](const models::BlockSpec& block) {
    return block.experts;
  };
  const auto dense = [](const models::BlockSpec& block) {
    return block.feed_forward && !block.experts;
  };
  const auto latent = [](const models::BlockSpec& block) {
    return block.mixer && block.transformer.has_latent_attention();
  };
  const auto shared = [](const models::BlockSpec& block) {
    return block.experts && models::SharedExpertWidth(block.transformer) > 0;
  };
  switch (module) {
    case MLP:
      return AnyBlock(transformer, dense) ? "" : "dense feed-forward layers";
    case MOE:
    case MOE_ACT:
      return AnyBlock(transformer, experts) ? "" : "experts";
    case SHARED_EXPERTS:
      return AnyBlock(transformer, shared) ? "" : "shared experts";
    case MLA_UP_PROJ:
      return AnyBlock(transformer, latent) ? "" : "latent attention";
    default:
      return "";
  }
}

}  // namespace

models::Recompute RecomputeOf(const Training& training) {
  Recomputation given;
  given.set_mode(training.recompute());
  *given.mutable_modules() = training.recompute_modules();
  given.set_method(training.recompute_method());
  given.set_num_layers(training.recompute_num_layers());
  return models::Recompute(given);
}

void SetRecompute(const models::Recompute& recompute, Training* training) {
  const Recomputation proto = recompute.ToProto();
  training->set_recompute(proto.mode());
  *training->mutable_recompute_modules() = proto.modules();
  training->set_recompute_method(proto.method());
  training->set_recompute_num_layers(proto.num_layers());
}

void CheckRecomputation(Problems& problems, const Training& training) {
  if (!RecomputeMode_IsValid(training.recompute())) {
    problems.Add("training.recompute", absl::StrCat("is ", training.recompute(),
                                                    ", which is unknown"));
  }
  if (training.recompute() == RECOMPUTE_OPERATORS &&
      training.has_flash_attention() && !training.flash_attention()) {
    problems.Add("training.recompute",
                 "is RECOMPUTE_OPERATORS with training.flash_attention false, "
                 "expected true");
  }
  const std::string mode = models::RecomputeName(training.recompute());
  for (int i = 0; i < training.recompute_modules_size(); ++i) {
    const int module = training.recompute_modules(i);
    if (RecomputeModule_IsValid(module) && module != 0) continue;
    problems.Add(absl::StrCat("training.recompute_modules[", i, "]"),
                 absl::StrCat("is ", module,
                              ", expected CORE_ATTN, MLP, MOE, LAYERNORM, "
                              "MOE_ACT, MLA_UP_PROJ or SHARED_EXPERTS"));
  }
  if (!training.recompute_modules().empty() &&
      training.recompute() != RECOMPUTE_SELECTIVE) {
    problems.Add("training.recompute",
                 absl::StrCat("is ", mode,
                              ", expected selective with "
                              "training.recompute_modules"));
  }
  const RecomputeMethod method = training.recompute_method();
  if (!RecomputeMethod_IsValid(method)) {
    problems.Add("training.recompute_method",
                 absl::StrCat("is ", method, ", which is unknown"));
  }
  problems.CheckRange("training.recompute_num_layers",
                      training.recompute_num_layers(), 0, kMaxLayers);
  if (training.recompute() == RECOMPUTE_FULL) return;
  if (method != RECOMPUTE_METHOD_UNSPECIFIED) {
    problems.Add("training.recompute",
                 absl::StrCat("is ", mode,
                              ", expected full with "
                              "training.recompute_method"));
  } else if (training.recompute_num_layers() > 0) {
    problems.Add("training.recompute",
                 absl::StrCat("is ", mode,
                              ", expected full with "
                              "training.recompute_num_layers"));
  }
}

void CheckOffload(Problems& problems, const Training& training) {
  const uint32_t layers = training.cpu_offloading_num_layers();
  problems.CheckRange("training.cpu_offloading_num_layers", layers, 0,
                      kMaxLayers);
  problems.CheckRange("training.optimizer_offload_fraction",
                      training.optimizer_offload_fraction(), 0, 1);
  if (layers > 0 && training.recompute() > RECOMPUTE_NONE) {
    problems.Add(
        "training.cpu_offloading_num_layers",
        absl::StrCat("is ", layers, ", expected 0 with recomputation (",
                     models::RecomputeName(training.recompute()),
                     "), as in Megatron-LM"));
  }
}

void CheckRecomputation(Problems& problems, const Training& training,
                        const Transformer& transformer) {
  const uint32_t offloaded = training.cpu_offloading_num_layers();
  if (offloaded > 0 && offloaded >= transformer.num_layers()) {
    problems.Add("training.cpu_offloading_num_layers",
                 absl::StrCat("is ", offloaded,
                              ", expected less than the "
                              "model's ",
                              transformer.num_layers(), " blocks"));
  }
  for (const int module : training.recompute_modules()) {
    const auto known = static_cast<RecomputeModule>(module);
    const std::string lacking = LackingFor(known, transformer);
    if (lacking.empty()) continue;
    problems.Add("training.recompute_modules",
                 absl::StrCat("has ", models::Name(known),
                              ", expected others: "
                              "the model has no ",
                              lacking));
  }
}

}  // namespace weir::scenarios
