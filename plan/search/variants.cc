// SPDX-License-Identifier: Apache-2.0
#include "plan/search/variants.h"

#include <algorithm>

#include "models/block_spec.h"
#include "models/parameters.h"

namespace weir::plan {
namespace {

constexpr double kOffloadedParts[] = {0.25, 0.5, 1};
constexpr double kOptimizerParts[] = {0.5, 1};
constexpr double kRecomputedParts[] = {0.25, 0.5, 0.75};
constexpr int kRecomputedEvery[] = {4, 2};

models::Recompute ModulesOf(const std::vector<RecomputeModule>& modules) {
  Recomputation proto;
  proto.set_mode(RECOMPUTE_SELECTIVE);
  for (const RecomputeModule module : modules) proto.add_modules(module);
  return models::Recompute(proto);
}

// Returns sets of modules in the order of their times, each a part of the next:
// those without GEMMs or with small ones, and also feed-forward layers and
// shared experts.
std::vector<models::Recompute> ModuleSets(const Transformer& transformer) {
  bool experts = false, dense = false, latent = false, shared = false;
  for (const models::BlockSpec& block : models::BlocksOf(transformer).kinds) {
    experts |= block.experts;
    dense |= block.feed_forward && !block.experts;
    latent |= block.mixer && block.transformer.has_latent_attention();
    shared |= block.experts && models::SharedExpertWidth(block.transformer) > 0;
  }
  std::vector<models::Recompute> sets;
  std::vector<RecomputeModule> modules;
  if (experts || latent) modules.push_back(LAYERNORM);
  if (experts) modules.push_back(MOE_ACT);
  if (latent) modules.push_back(MLA_UP_PROJ);
  if (!modules.empty()) sets.push_back(ModulesOf(modules));
  if (dense) modules.push_back(MLP);
  if (shared) modules.push_back(SHARED_EXPERTS);
  if (dense || shared) sets.push_back(ModulesOf(modules));
  return sets;
}

class VariantList {
 public:
  VariantList(const PlanRequest& request,
              const scenarios::ResolvedScenario& base)
      : request_(request), base_(base), all_(1) {}

  std::vector<Variant> All() && {
    const Objective objective = request_.objective();
    if (base_.model.has_measured() || objective == OBJECTIVE_MEMORY ||
        objective == OBJECTIVE_PARETO) {
      return std::move(all_);
    }
    AddMemorySavingVariants();
    AddSwitches();
    return std::move(all_);
  }

 private:
  bool Has(absl::string_view option) const {
    return HasOption(base_.runtime, option);
  }

  // Adds a step of a memory-saving option to `parent`. Returns its index.
  int Add(Variant variant, int parent) {
    variant.parent = parent;
    all_.push_back(variant);
    return static_cast<int>(all_.size()) - 1;
  }

  void AddMemorySavingVariants() {
    const PlanSpace& space = request_.space();
    if (space.recompute().empty() && space.partial_recompute().empty()) {
      AddRecomputations();
    }
    if (Has("cpu-offloading-num-layers") &&
        space.cpu_offloading_num_layers().empty() &&
        request_.scenario().training().cpu_offloading_num_layers() == 0) {
      int parent = 0;
      for (const double part : kOffloadedParts) {
        parent = Add({.offloaded_fraction = part}, parent);
      }
    }
    const Optimizer optimizer = request_.scenario().training().optimizer();
    if (!Has("optimizer-cpu-offload") ||
        !space.optimizer_offload_fraction().empty() ||
        request_.scenario().training().optimizer_offload_fraction() > 0 ||
        (optimizer != OPTIMIZER_UNSPECIFIED && optimizer != ADAM)) {
      return;
    }
    const auto num_others = static_cast<int>(all_.size());
    for (int other = 0; other < num_others; ++other) {
      int parent = other;
      for (const double part : kOptimizerParts) {
        Variant variant = all_[other];
        variant.optimizer_offload = part;
        parent = Add(variant, parent);
      }
    }
  }

  void AddRecomputations() {
    const bool operators = base_.runtime.recomputes_operators();
    if (Has("recompute-modules")) {
      int parent = 0;
      for (const models::Recompute& set :
           ModuleSets(base_.model.transformer())) {
        parent = Add({.modules = set}, parent);
      }
    }
    if (!Has("recompute-num-layers")) return;
    int parent = 0;
    if (operators) {
      for (const int n : kRecomputedEvery) {
        parent = Add({.recomputed_every = n}, parent);
      }
      return;
    }
    for (const double part : kRecomputedParts) {
      parent = Add({.recomputed_fraction = part}, parent);
    }
  }

  void AddSwitches() {
    const PlanSpace& space = request_.space();
    const Communication& given = request_.scenario().communication();
    const bool experts = Has("overlap-moe-expert-parallel-comm") &&
                         base_.model.transformer().num_experts() > 0 &&
                         space.overlap_expert_exchange().empty() &&
                         !given.overlap_expert_exchange();
    const bool tensor = Has("tp-comm-overlap") &&
                        space.tp_comm_overlap().empty() &&
                        !given.has_tp_comm_overlap();
    const auto num_variants = static_cast<int>(all_.size());
    for (const bool expert_overlap : {false, true}) {
      for (const bool tensor_overlap : {false, true}) {
        if ((expert_overlap && !experts) || (tensor_overlap && !tensor) ||
            (!expert_overlap && !tensor_overlap)) {
          continue;
        }
        const auto first = static_cast<int>(all_.size());
        for (int s = 0; s < num_variants; ++s) {
          Variant variant = all_[s];
          variant.expert_overlap = expert_overlap;
          variant.tensor_overlap = tensor_overlap;
          if (variant.parent >= 0) variant.parent += first;
          all_.push_back(variant);
        }
      }
    }
  }

  const PlanRequest& request_;
  const scenarios::ResolvedScenario& base_;
  std::vector<Variant> all_;
};

// Returns the blocks of a stage of an even cut, rounded up.
int BlocksOfStage(const Shape& shape, int num_blocks) {
  const int stages = shape.pipeline * shape.chunks;
  return (num_blocks + stages - 1) / stages;
}

int PartOf(int number, double part) { return static_cast<int>(number * part); }

models::Recompute BlocksRecompute(RecomputeMethod method, int n) {
  Recomputation proto;
  proto.set_mode(RECOMPUTE_FULL);
  proto.set_method(method);
  proto.set_num_layers(n);
  return models::Recompute(proto);
}

}  // namespace

std::vector<Variant> VariantsOf(const PlanRequest& request,
                                const scenarios::ResolvedScenario& base) {
  return VariantList(request, base).All();
}

bool HasOption(const Runtime& runtime, absl::string_view option) {
  const auto& all = runtime.planned_options();
  return std::find(all.begin(), all.end(), option) != all.end();
}

bool Applies(const Variant& variant, const Shape& shape, int num_blocks) {
  const int blocks = BlocksOfStage(shape, num_blocks);
  const bool none = shape.recompute == models::Recompute(RECOMPUTE_NONE);
  if (variant.tensor_overlap &&
      (shape.tensor == 1 || !shape.sequence_parallel)) {
    return false;
  }
  // Megatron Core needs a virtual pipeline and recomputes no whole blocks.
  if (variant.expert_overlap &&
      (shape.expert == 1 || (shape.pipeline > 1 && shape.chunks == 1) ||
       shape.recompute.mode() == RECOMPUTE_FULL ||
       variant.recomputed_fraction > 0)) {
    return false;
  }
  if (variant.recomputes() && !none) return false;
  if (variant.recomputed_fraction > 0 &&
      PartOf(blocks, variant.recomputed_fraction) == 0) {
    return false;
  }
  if (variant.recomputed_every > blocks) return false;
  // Megatron-LM offloads activations only without a pipeline, and does not
  // recompute at the same time.
  if (variant.offloaded_fraction > 0 &&
      (!none || shape.pipeline > 1 || shape.chunks > 1 || num_blocks < 2)) {
    return false;
  }
  return variant.optimizer_offload == 0 || shape.sharding != Sharding::kFull;
}

Shape WithVariant(Shape shape, const Variant& variant, int num_blocks,
                  bool pipelines_collectives) {
  const int blocks = BlocksOfStage(shape, num_blocks);
  if (variant.expert_overlap) shape.expert_overlap = true;
  if (variant.tensor_overlap) {
    shape.tensor_overlap =
        pipelines_collectives ? TensorOverlap::kOff : TensorOverlap::kOn;
  }
  if (variant.modules.has_value()) shape.recompute = *variant.modules;
  if (variant.recomputed_fraction > 0) {
    shape.recompute = BlocksRecompute(
        RECOMPUTE_BLOCK, PartOf(blocks, variant.recomputed_fraction));
  }
  if (variant.recomputed_every > 0) {
    shape.recompute =
        BlocksRecompute(RECOMPUTE_EVERY, variant.recomputed_every);
  }
  if (variant.offloaded_fraction > 0) {
    // One block stays on the GPU.
    shape.offloaded_blocks = std::clamp(
        PartOf(num_blocks, variant.offloaded_fraction), 1, num_blocks - 1);
  }
  if (variant.optimizer_offload > 0) {
    shape.optimizer_offload = variant.optimizer_offload;
  }
  return shape;
}

}  // namespace weir::plan
