// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/representatives.h"

#include "sim/graph/symmetry.h"

namespace weir::sim {

Representatives::Representatives(const Symmetry& symmetry)
    : placement_(&symmetry.representatives()),
      full_placement_(&symmetry.full_placement()),
      symmetry_(&symmetry),
      replicas_(symmetry.replicas()),
      tensor_ranks_(symmetry.tensor_ranks()) {}

int Representatives::IndexOf(int gpu) const {
  return reduced() ? symmetry_->IndexOf(gpu) : gpu;
}

int Representatives::IndexOfCopies(const std::vector<int>& ranks) const {
  return reduced() ? symmetry_->IndexOfCopies(ranks) : 0;
}

const std::vector<scenarios::Link>& Representatives::LinksOf(
    const scenarios::Network& network) const {
  return reduced() ? symmetry_->links() : network.links();
}

}  // namespace weir::sim
