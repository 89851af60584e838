// SPDX-License-Identifier: Apache-2.0
// Maximum flows by Boost Graph. A header of its own keeps Boost out of other
// sources.
#ifndef WEIR_PLAN_ENERGY_RESIDUAL_NETWORK_H_
#define WEIR_PLAN_ENERGY_RESIDUAL_NETWORK_H_

#include <cstdint>
#include <memory>
#include <vector>

namespace weir::plan {

// A network of arcs with capacities in both directions, which change from one
// flow to the next.
class ResidualNetwork {
 public:
  // A capacity that no flow of finite ones reaches. Requires: all finite
  // capacities add up to less than half of it.
  static constexpr int64_t kUnlimited = 1'000'000'000'000'000'000;

  ResidualNetwork(int num_vertices, int source, int sink);
  ~ResidualNetwork();
  ResidualNetwork(const ResidualNetwork&) = delete;
  ResidualNetwork& operator=(const ResidualNetwork&) = delete;

  // Arcs are numbered in the order in which they are added.
  void AddArc(int from, int to);
  void SetCapacity(int arc, int64_t forward, int64_t backward);

  // Returns the largest flow from source to sink, at most kUnlimited.
  int64_t MaxFlow();
  // Returns the flow of the last MaxFlow() through an arc, from `from` to `to`.
  int64_t FlowOf(int arc) const;
  // Returns 1 for each vertex on the sink's side of the minimum cut of the last
  // MaxFlow() that is nearest to the source, and 0 for the others.
  std::vector<char> SinkSide() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_ENERGY_RESIDUAL_NETWORK_H_
