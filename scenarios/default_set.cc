// SPDX-License-Identifier: Apache-2.0
#include "scenarios/default_set.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/assets.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "schedules/source.h"

namespace weir::scenarios {
namespace {

constexpr char kBf16[] = "bf16";
constexpr char kFusedAttention[] = "fused attention";

std::string NameOf(Precision precision) {
  switch (precision) {
    case FP32:
      return "fp32";
    case MIXED_BF16:
      return kBf16;
    default:
      return "fp16";
  }
}

bool Contains(const std::vector<std::string>& texts, const char* text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

void Replace(const char* text, const std::string& by,
             std::vector<std::string>* texts) {
  std::replace(texts->begin(), texts->end(), std::string(text), by);
}

// Returns true if only fused attention works: its output is kept while other
// operators are recomputed, or its keys are on several GPUs.
bool NeedsFusion(const Scenario& scenario) {
  return scenario.training().recompute() == RECOMPUTE_OPERATORS ||
         scenario.parallelism().context() > 1;
}

void FillSequenceParallelism(const DefaultSet& set, Scenario* scenario,
                             UsedDefaults* used) {
  Parallelism& parallelism = *scenario->mutable_parallelism();
  if (parallelism.has_sequence_parallel() || parallelism.tensor() <= 1) return;
  const uint32_t context = std::max(parallelism.context(), 1u);
  const uint32_t tokens = scenario->batch().sequence_length() / context;
  if (set.sequence_parallel() && tokens % parallelism.tensor() != 0) {
    used->not_used.push_back(absl::StrCat(
        "sequence parallelism (", parallelism.tensor(),
        " tensor-parallel ranks do not divide ", tokens, " tokens)"));
    return;
  }
  parallelism.set_sequence_parallel(set.sequence_parallel());
  used->used.emplace_back(set.sequence_parallel() ? "sequence parallelism"
                                                  : "no sequence parallelism");
}

bool HasReplicas(const Parallelism& parallelism) {
  return parallelism.data() > 1 || parallelism.context() > 1;
}

void FillOptimizer(const DefaultSet& set, Scenario* scenario,
                   UsedDefaults* used) {
  Training& training = *scenario->mutable_training();
  if (training.has_distributed_optimizer() || training.fully_sharded() ||
      !HasReplicas(scenario->parallelism())) {
    return;
  }
  // An unknown schedule is reported where it is checked.
  const auto flushes = schedules::ScheduleFlushes(scenario->schedule());
  if (!flushes.ok()) return;
  if (set.distributed_optimizer() && !*flushes) {
    used->not_used.push_back(absl::StrCat(
        "distributed optimizer (", scenario->schedule(), " has no flush)"));
    return;
  }
  training.set_distributed_optimizer(set.distributed_optimizer());
  used->used.emplace_back(set.distributed_optimizer()
                              ? "distributed optimizer"
                              : "no distributed optimizer");
}

void FillReduction(const DefaultSet& set, Scenario* scenario,
                   UsedDefaults* used) {
  Communication& communication = *scenario->mutable_communication();
  if (communication.transfers() == TRANSFER_UNSPECIFIED) {
    communication.set_transfers(
        set.transfers() == TRANSFER_UNSPECIFIED ? OVERLAPPED : set.transfers());
  }
  if (communication.gradient_reduction() != REDUCTION_UNSPECIFIED) return;
  const bool overlapped = set.gradient_reduction() == REDUCTION_OVERLAPPED;
  communication.set_gradient_reduction(overlapped ? REDUCTION_OVERLAPPED
                                                  : REDUCTION_BLOCKING);
  if (!HasReplicas(scenario->parallelism()) || set.name().empty()) return;
  used->used.emplace_back(overlapped ? "overlapped gradient reduction"
                                     : "blocking gradient reduction");
}

}  // namespace

absl::StatusOr<DefaultSet> LoadDefaultSet(const std::string& name_or_path) {
  ASSIGN_OR_RETURN(const Asset asset,
                   LoadAsset("scenarios/defaults", name_or_path));
  DefaultSet set;
  RETURN_IF_ERROR(ParseTextProto(asset.label, asset.contents, &set));
  Problems problems(asset.label);
  if (set.name().empty()) problems.Add("name", "is empty");
  if (set.precision() == PRECISION_UNSPECIFIED ||
      !Precision_IsValid(set.precision())) {
    problems.Add(
        "precision",
        "is missing or unknown, expected a precision such as MIXED_BF16");
  }
  if (set.gradient_reduction() == REDUCTION_UNSPECIFIED ||
      !ReductionMode_IsValid(set.gradient_reduction())) {
    problems.Add("gradient_reduction",
                 "is missing or unknown, expected REDUCTION_BLOCKING or "
                 "REDUCTION_OVERLAPPED");
  }
  if (!RecomputeMode_IsValid(set.recompute())) {
    problems.Add("recompute", "is unknown");
  }
  if (!TransferMode_IsValid(set.transfers())) {
    problems.Add("transfers", "is unknown");
  }
  RETURN_IF_ERROR(problems.ToStatus());
  return set;
}

absl::StatusOr<DefaultSet> DefaultSetOf(const Scenario& scenario,
                                        const Model& model) {
  if (!model.has_transformer()) return DefaultSet();
  if (!scenario.defaults().empty()) return LoadDefaultSet(scenario.defaults());
  const Transformer& transformer = model.transformer();
  return LoadDefaultSet(transformer.rms_norm() ||
                                transformer.gated_feed_forward()
                            ? "modern"
                            : "megatron-2021");
}

void FillFrom(const DefaultSet& set, const Model& model, Scenario* scenario,
              UsedDefaults* used) {
  const bool measured = !model.has_transformer();
  Batch& batch = *scenario->mutable_batch();
  if (batch.sequence_length() == 0) {
    batch.set_sequence_length(model.transformer().default_sequence_length());
  }
  used->set = set.name();
  if (!set.name().empty() && scenario->defaults().empty()) {
    scenario->set_defaults(set.name());
  }
  Training& training = *scenario->mutable_training();
  if (training.precision() == PRECISION_UNSPECIFIED) {
    training.set_precision(measured ? FP32 : set.precision());
    if (!measured) used->used.push_back(NameOf(training.precision()));
  }
  if (training.recompute() == RECOMPUTE_UNSPECIFIED) {
    training.set_recompute(set.recompute() == RECOMPUTE_UNSPECIFIED
                               ? RECOMPUTE_NONE
                               : set.recompute());
  }
  if (!measured) {
    if (!training.has_flash_attention()) {
      const bool fused = set.flash_attention() || NeedsFusion(*scenario);
      training.set_flash_attention(fused);
      used->used.emplace_back(fused ? kFusedAttention : "unfused attention");
    }
    FillSequenceParallelism(set, scenario, used);
    FillOptimizer(set, scenario, used);
  }
  FillReduction(set, scenario, used);
  if (!scenario->runtime().empty()) return;
  scenario->set_runtime(measured                ? "none"
                        : set.runtime().empty() ? "megatron-lm"
                                                : set.runtime());
  if (!measured) {
    used->used.push_back(absl::StrCat("runtime ", scenario->runtime()));
  }
}

void AdaptTo(const DeviceProfile& device, Scenario* scenario,
             UsedDefaults* used) {
  if (!Contains(used->used, kBf16)) return;
  for (const MatrixRate& rate : device.matrix_rates()) {
    if (rate.format() == kBf16) return;
  }
  Training& training = *scenario->mutable_training();
  training.set_precision(MIXED_FP16);
  Replace(kBf16, "fp16", &used->used);
  used->not_used.push_back(
      absl::StrCat("bf16 (", device.name(), " does not have it)"));
  // Published kernels of fused attention need the same generations of GPUs.
  if (!Contains(used->used, kFusedAttention) || NeedsFusion(*scenario)) return;
  training.set_flash_attention(false);
  Replace(kFusedAttention, "unfused attention", &used->used);
  used->not_used.emplace_back(kFusedAttention);
}

}  // namespace weir::scenarios
