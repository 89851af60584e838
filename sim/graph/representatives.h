// SPDX-License-Identifier: Apache-2.0
// The GPUs that have tasks in a graph: all GPUs, or the representatives of a
// symmetry reduction (symmetry.h). Callers treat both cases alike.
#ifndef WEIR_SIM_GRAPH_REPRESENTATIVES_H_
#define WEIR_SIM_GRAPH_REPRESENTATIVES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "scenarios/cluster/network.h"
#include "scenarios/cluster/placement.h"

namespace weir::sim {

class Symmetry;  // sim/graph/symmetry.h

// A small value, passed by reference or copied. What it is made from must
// outlive it.
class Representatives {
 public:
  // Every GPU represents itself. Implicit: this is the usual case.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Representatives(const scenarios::Placement& placement)
      : placement_(&placement), full_placement_(&placement) {}
  Representatives(scenarios::Placement&&) = delete;
  explicit Representatives(const Symmetry& symmetry);

  // Returns the placement of the GPUs in the graph.
  const scenarios::Placement& placement() const { return *placement_; }
  // Returns the placement of all GPUs.
  const scenarios::Placement& full_placement() const {
    return *full_placement_;
  }
  // Null if every GPU represents itself.
  const Symmetry* symmetry() const { return symmetry_; }
  bool reduced() const { return symmetry_ != nullptr; }

  // Return the index in full_placement() of a replica and a tensor rank of
  // placement().
  int ReplicaOf(int replica) const {
    return replicas_.empty() ? replica : replicas_[replica];
  }
  int TensorRankOf(int tensor_rank) const {
    return tensor_ranks_.empty() ? tensor_rank : tensor_ranks_[tensor_rank];
  }
  // Returns the index in full_placement() of a GPU of placement().
  int IndexOf(int gpu) const;
  // Returns the index by which InstanceRole names the copies of a stage on
  // these ranks; 0 if every GPU represents itself.
  int IndexOfCopies(const std::vector<int>& ranks) const;
  // Returns the links that routes of the graph name.
  const std::vector<scenarios::Link>& LinksOf(
      const scenarios::Network& network) const;

 private:
  const scenarios::Placement* placement_;
  const scenarios::Placement* full_placement_;
  const Symmetry* symmetry_ = nullptr;
  std::span<const int32_t> replicas_, tensor_ranks_;  // empty: the same index
};

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_REPRESENTATIVES_H_
