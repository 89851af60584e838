// SPDX-License-Identifier: Apache-2.0
// Variants of a shape: choices that the search considers only where they may
// help, so that they do not multiply the number of shapes (docs/plan.md).
//
// A switch changes how collectives overlap with kernels. It may help any shape,
// and the lower bound on the time of a shape, which has no collectives, holds
// for it. A memory-saving option takes time to save memory: partial
// recomputation and copies to the host. It does not help a shape that fits
// without it, so it is considered only if its parent, the same variant with one
// step less of it, does not fit.
#ifndef WEIR_PLAN_SEARCH_VARIANTS_H_
#define WEIR_PLAN_SEARCH_VARIANTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "models/recompute.h"
#include "plan/search/plan.pb.h"
#include "plan/search/shape.h"
#include "scenarios/scenario.h"

namespace weir::plan {

struct Variant {
  // Switches. `tensor_overlap`: the opposite of the runtime's.
  bool expert_overlap = false, tensor_overlap = false;
  // Memory-saving options. Of shapes without recomputation: modules, or the
  // first blocks of each stage, as a fraction in [0, 1] (torchtitan: every n-th
  // block).
  std::optional<models::Recompute> modules = std::nullopt;
  double recomputed_fraction = 0;
  int recomputed_every = 0;
  double offloaded_fraction = 0;  // of the blocks, without a pipeline
  double optimizer_offload = 0;   // fraction of the optimizer states
  // Index of the variant with the same switches and one step less of a
  // memory-saving option; this one is tried only if that one does not fit.
  // -1: no memory-saving options.
  int parent = -1;

  bool recomputes() const {
    return modules.has_value() || recomputed_fraction > 0 ||
           recomputed_every > 0;
  }
  bool saves() const {
    return recomputes() || offloaded_fraction > 0 || optimizer_offload > 0;
  }
};

// Returns the variants that the request leaves open and the runtime has
// (Runtime.planned_options); the first is no change. Only with the objectives
// time, cost and energy: others would have to consider every variant of every
// shape.
std::vector<Variant> VariantsOf(const PlanRequest& request,
                                const scenarios::ResolvedScenario& base);

// Returns true if the shape, without variants, can have this one.
bool Applies(const Variant& variant, const Shape& shape, int num_blocks);

// Returns the shape with the variant. Requires: Applies().
// `pipelines_collectives`: what the runtime does without the variant.
Shape WithVariant(Shape shape, const Variant& variant, int num_blocks,
                  bool pipelines_collectives);

// Returns true if the runtime has the option.
bool HasOption(const Runtime& runtime, absl::string_view option);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_VARIANTS_H_
