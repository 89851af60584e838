// SPDX-License-Identifier: Apache-2.0
// When the search considers variants of shapes.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/infinity.h"
#include "base/status_macros.h"
#include "plan/search/best_first.h"

namespace weir::plan {
namespace {

// Returns what shapes that differ only in the recomputation have in common.
auto SiblingKey(const Shape& shape) {
  return std::make_tuple(
      std::make_tuple(shape.tensor, shape.pipeline, shape.data, shape.context,
                      shape.expert, shape.expert_tensor, shape.data_replicate,
                      shape.microbatch_size, shape.chunks),
      std::make_tuple(shape.offloaded_blocks, shape.optimizer_offload,
                      static_cast<int>(shape.vocabulary), shape.expert_overlap,
                      static_cast<int>(shape.tensor_overlap),
                      shape.sequence_parallel, static_cast<int>(shape.sharding),
                      static_cast<int>(shape.reduction), shape.order,
                      static_cast<int>(shape.cut)));
}

}  // namespace

void BestFirst::PrepareVariants() {
  if (!has_variants()) return;
  for (size_t v = 1; v < space_.variants.size(); ++v) {
    if (!space_.variants[v].saves()) switches_.push_back(static_cast<int>(v));
  }
  struct Siblings {
    int none = -1, full = -1;
  };
  absl::flat_hash_map<decltype(SiblingKey(Shape())), Siblings> all;
  all.reserve(space_.shapes.size());
  for (size_t i = 0; i < space_.shapes.size(); ++i) {
    const Shape& shape = space_.shapes[i];
    Siblings& siblings = all[SiblingKey(shape)];
    if (shape.recompute == models::Recompute(RECOMPUTE_NONE)) {
      siblings.none = static_cast<int>(i);
    } else if (shape.recompute == models::Recompute(RECOMPUTE_FULL)) {
      siblings.full = static_cast<int>(i);
    }
  }
  for (const Shape& shape : space_.shapes) {
    const Siblings& siblings = all[SiblingKey(shape)];
    none_of_.push_back(siblings.none);
    full_of_.push_back(siblings.full);
  }
}

void BestFirst::Release(int shape, int variant) {
  if (!space_.Has(shape, variant)) return;
  const int index = space_.IndexOf(shape, variant);
  if (!released_.insert(index).second) return;
  const SearchEstimate& estimate = shapes_[shape];
  Entry entry;
  entry.shape = index;
  entry.schedule = -1;
  entry.seconds = entry.lower_bound_seconds = estimate.seconds();
  entry.active_joules = estimate.active_joules();
  entry.is_estimated = false;
  entry.key = ScoreOf(
      goal_.objective, entry.seconds, entry.bytes, GpusOf(entry),
      space_.JoulesOf(entry.seconds, GpusOf(entry), entry.active_joules));
  open_.Insert(entry);
}

void BestFirst::ReleaseSwitches(int index) {
  const int shape = space_.ShapeOf(index), variant = space_.VariantOf(index);
  const Variant& of = space_.variants[variant];
  if (of.expert_overlap || of.tensor_overlap) return;
  // Variants with the same switches are listed together, in the same order.
  for (const int first : switches_) Release(shape, first + variant);
}

std::vector<int> BestFirst::MemorySavingVariantsOf(int index) const {
  const int shape = space_.ShapeOf(index);
  const SearchEstimate& estimate = EstimateOf(index);
  const double optimizer_offload =
      space_.variants[space_.VariantOf(index)].optimizer_offload;
  std::vector<int> variants;
  // Steps that the shape cannot have are skipped.
  std::vector<int> parents = {space_.VariantOf(index)};
  for (size_t p = 0; p < parents.size(); ++p) {
    for (size_t v = 1; v < space_.variants.size(); ++v) {
      const auto variant = static_cast<int>(v);
      const Variant& child = space_.variants[v];
      if (child.parent != parents[p]) continue;
      if (!space_.Has(shape, variant)) {
        parents.push_back(variant);
        continue;
      }
      if (child.optimizer_offload > optimizer_offload) {
        if (estimate.bytes_without_optimizer() > goal_.limit_bytes) continue;
      } else if (child.recomputes() && child.optimizer_offload == 0) {
        // Full recomputation saves more.
        const int full = full_of_[shape];
        if (full >= 0 && shapes_[full].bytes() > goal_.limit_bytes) continue;
      }
      variants.push_back(variant);
    }
  }
  return variants;
}

void BestFirst::ReleaseMemorySavingVariants(int index) {
  for (const int variant : MemorySavingVariantsOf(index)) {
    Release(space_.ShapeOf(index), variant);
  }
}

double BestFirst::LeastVariantSeconds() const {
  double least = kInfinity;
  if (!has_variants() || stage_ == Released::kAll) return least;
  const auto num_shapes = static_cast<int>(shapes_.size());
  for (int i = 0; i < num_shapes; ++i) {
    const SearchEstimate& estimate = shapes_[i];
    if (estimate.absent() || !estimate.problem().empty() ||
        estimate.seconds() >= least) {
      continue;
    }
    const bool has =
        std::any_of(switches_.begin(), switches_.end(),
                    [&](int variant) { return space_.Has(i, variant); }) ||
        (misfits_.contains(i) && !MemorySavingVariantsOf(i).empty());
    if (has) least = estimate.seconds();
  }
  return least;
}

void BestFirst::NoteMisfit(int index) {
  if (index < 0 || !has_variants()) return;
  if (!misfits_.insert(index).second) return;
  if (stage_ != Released::kNone || space_.VariantOf(index) > 0) {
    ReleaseMemorySavingVariants(index);
  }
}

void BestFirst::ReleaseNear(int index) {
  if (index < 0 || !has_variants()) return;
  ReleaseSwitches(index);
  const int none = none_of_[space_.ShapeOf(index)];
  if (none >= 0 && misfits_.contains(none)) ReleaseMemorySavingVariants(none);
}

bool BestFirst::ReleaseMore() {
  if (!has_variants() || stage_ == Released::kAll) return false;
  const auto may_be_better = [this](int shape) {
    const SearchEstimate& estimate = shapes_[shape];
    if (estimate.absent() || !estimate.problem().empty()) return false;
    Entry entry;
    const int num_gpus = space_.shapes[shape].num_gpus();
    entry.key = ScoreOf(goal_.objective, estimate.seconds(), 0, num_gpus,
                        space_.JoulesOf(estimate.seconds(), num_gpus,
                                        estimate.active_joules()));
    return !IsBeaten(entry);
  };
  const auto num_shapes = static_cast<int>(shapes_.size());
  if (stage_ == Released::kNone) {
    stage_ = Released::kMemorySaving;
    for (int i = 0; i < num_shapes; ++i) {
      if (misfits_.contains(i) && may_be_better(i)) {
        ReleaseMemorySavingVariants(i);
      }
    }
    return true;
  }
  stage_ = Released::kAll;
  for (int i = 0; i < num_shapes; ++i) {
    if (may_be_better(i)) ReleaseSwitches(i);
  }
  return true;
}

absl::Status BestFirst::EstimateVariants(const std::vector<Entry>& variants) {
  if (variants.empty()) return absl::OkStatus();
  std::vector<int> indices;
  for (const Entry& entry : variants) indices.push_back(entry.shape);
  ASSIGN_OR_RETURN(std::vector<SearchEstimate> estimates,
                   workers_->OfShapes(indices));
  for (size_t i = 0; i < indices.size(); ++i) {
    variants_[indices[i]] = std::move(estimates[i]);
    AddShape(indices[i]);
    // One without effect, or that does not exist, is a step to the next.
    const SearchEstimate& estimate = variants_[indices[i]];
    if (estimate.absent() || !estimate.problem().empty()) {
      NoteMisfit(indices[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace weir::plan
