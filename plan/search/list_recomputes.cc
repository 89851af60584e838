// SPDX-License-Identifier: Apache-2.0
#include "plan/search/list_recomputes.h"

#include <algorithm>

namespace weir::plan {
namespace {

// Returns true for PlanSpace's half of the blocks of each stage.
bool IsHalf(const Recomputation& partial) {
  return partial.method() == RECOMPUTE_BLOCK && partial.num_layers() == 0;
}

// Returns the recomputations that are tried unless the request lists others.
std::vector<models::Recompute> UsualRecomputes(
    const scenarios::ResolvedScenario& base) {
  if (base.model.has_measured()) return {RECOMPUTE_NONE, RECOMPUTE_FULL};
  const RecomputeMode selective = base.runtime.recomputes_operators()
                                      ? RECOMPUTE_OPERATORS
                                      : RECOMPUTE_SELECTIVE;
  return {RECOMPUTE_NONE, selective, RECOMPUTE_FULL};
}

}  // namespace

std::vector<models::Recompute> RecomputesOf(
    const PlanSpace& space, const scenarios::ResolvedScenario& base) {
  std::vector<models::Recompute> all;
  for (const int mode : space.recompute()) {
    all.emplace_back(static_cast<RecomputeMode>(mode));
  }
  for (const Recomputation& partial : space.partial_recompute()) {
    if (!IsHalf(partial)) all.emplace_back(partial);
  }
  const bool listed =
      !space.recompute().empty() || !space.partial_recompute().empty();
  return listed ? all : UsualRecomputes(base);
}

bool ListsHalfOfStages(const PlanSpace& space) {
  return std::any_of(space.partial_recompute().begin(),
                     space.partial_recompute().end(), IsHalf);
}

models::Recompute FirstBlocks(int n) {
  Recomputation proto;
  proto.set_mode(RECOMPUTE_FULL);
  proto.set_method(RECOMPUTE_BLOCK);
  proto.set_num_layers(n);
  return models::Recompute(proto);
}

}  // namespace weir::plan
