// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/runtime.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/assets.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "calibrate/profile/figures.h"
#include "calibrate/profile/profile_base.h"

namespace weir::calibrate {
namespace {

constexpr absl::string_view kPlannedOptions[] = {
    "tp-comm-overlap",           "overlap-moe-expert-parallel-comm",
    "cpu-offloading-num-layers", "optimizer-cpu-offload",
    "recompute-modules",         "recompute-num-layers"};
constexpr double kMostSeconds = 10;
constexpr double kMostBytes = 1e12;
constexpr double kMostElements = 1e12;
constexpr double kLeastBytesPerSecond = 1e6;
constexpr double kMostBytesPerSecond = 1e15;

// Returns true if the softmax is fused; see softmax_heads_multiple.
bool FusesSoftmax(const Runtime& runtime, const Transformer& transformer,
                  const models::WorkSpec& spec) {
  if (runtime.unfused_softmax()) return false;
  const uint32_t multiple = runtime.softmax_heads_multiple();
  const uint32_t heads = transformer.num_heads() / spec.tensor_parallel;
  return multiple == 0 || heads * spec.microbatch_size % multiple == 0;
}

}  // namespace

absl::StatusOr<Runtime> LoadRuntime(const std::string& name_or_path) {
  ASSIGN_OR_RETURN(const Asset asset,
                   LoadAsset("calibrate/profile/runtimes", name_or_path));
  ASSIGN_OR_RETURN(Runtime runtime, ResolveRuntimeBase(asset));
  RETURN_IF_ERROR(ValidateRuntime(asset.label, runtime));
  return runtime;
}

absl::Status ValidateRuntime(absl::string_view label, const Runtime& runtime) {
  Problems problems(label);
  if (runtime.name().empty()) {
    problems.Add("name", "is empty, expected the name of the framework");
  }
  if (!runtime.schedules().empty() && runtime.schedules_source().empty()) {
    problems.Add("schedules_source",
                 "is empty, expected the source of the list of schedules");
  }
  for (const std::string& option : runtime.planned_options()) {
    if (std::find(std::begin(kPlannedOptions), std::end(kPlannedOptions),
                  option) == std::end(kPlannedOptions)) {
      problems.Add("planned_options",
                   absl::StrCat("has \"", option, "\", expected ",
                                absl::StrJoin(kPlannedOptions, ", ")));
    }
  }
  Runtime copy = runtime;
  for (const NamedFigure& named : FiguresOf(&copy)) {
    const bool rate = absl::EndsWith(named.path, "_bytes_per_second");
    const bool bytes = absl::EndsWith(named.path, "_bytes");
    CheckFigure(named.path, *named.figure, rate ? kLeastBytesPerSecond : 0,
                rate    ? kMostBytesPerSecond
                : bytes ? kMostBytes
                        : kMostSeconds,
                &problems);
  }
  problems.CheckRange("flat_bucket_elements", runtime.flat_bucket_elements(), 0,
                      kMostElements);
  return problems.ToStatus();
}

void SetFusions(const Runtime& runtime, const Transformer& transformer,
                models::WorkSpec* spec) {
  spec->tensor_async = runtime.overlaps_tensor_collectives();
  spec->tensor_pieces = runtime.pipelines_tensor_collectives();
  spec->fused_softmax = FusesSoftmax(runtime, transformer, *spec);
  spec->fused_bias_gelu = !runtime.unfused_bias_gelu();
  spec->fused_bias_dropout_add = !runtime.unfused_bias_dropout_add();
  spec->fused_expert_bias = !runtime.unfused_expert_bias();
  spec->launches_each_expert = runtime.launches_each_expert();
  spec->exchange_preparation_kernels =
      static_cast<int>(runtime.exchange_preparation_kernels());
  spec->fused_clamp = !runtime.unfused_clamp();
  spec->weights_in_experts = runtime.weights_in_experts();
  spec->fused_gradient_accumulation = !runtime.unfused_gradient_accumulation();
  spec->fused_cross_entropy = !runtime.unfused_cross_entropy();
  spec->vocabulary_multiple = static_cast<int>(runtime.vocabulary_multiple());
  spec->gelu_epilogue = runtime.gelu_epilogue();
  spec->fused_residual_norm = runtime.fused_residual_norm();
  spec->in_place_cross_entropy = runtime.in_place_cross_entropy();
  spec->fused_embedding = runtime.fused_embedding();
  spec->residual_dropout_only = runtime.residual_dropout_only();
  spec->int32_tokens = runtime.int32_tokens();
  spec->early_release = runtime.early_release();
}

}  // namespace weir::calibrate
