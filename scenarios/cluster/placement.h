// SPDX-License-Identifier: Apache-2.0
// Assigns GPUs to (tensor, data, pipeline) ranks.
#ifndef WEIR_SCENARIOS_CLUSTER_PLACEMENT_H_
#define WEIR_SCENARIOS_CLUSTER_PLACEMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::scenarios {

struct Placement {
  int tensor = 1, data = 1, pipeline = 1;
  std::vector<int> gpus;  // by index()

  int num_gpus() const { return tensor * data * pipeline; }
  // Returns the index in order of replica, then pipeline rank, then tensor
  // rank.
  int index(int replica, int rank, int tensor_rank) const {
    return (replica * pipeline + rank) * tensor + tensor_rank;
  }
  int gpu(int replica, int rank, int tensor_rank) const {
    return gpus[index(replica, rank, tensor_rank)];
  }
};

// Numbers GPUs in the given order, first name fastest: "tp-dp-pp" (Megatron's:
// tensor groups adjacent, then data-parallel groups, pipelines across nodes) or
// "tp-pp-dp" (a pipeline inside the node if it fits, replicas across nodes).
// Returns InvalidArgument, starting with `where`, for any other order or if
// num_gpus_available is too small.
absl::StatusOr<Placement> PlaceInOrder(absl::string_view where,
                                       absl::string_view order, int tensor,
                                       int data, int pipeline,
                                       int num_gpus_available);

// Uses an explicit list of GPU numbers in the order of Placement::index. Each
// GPU may occur only once. Returns InvalidArgument if a number occurs twice or
// does not exist, or if their count is not that of the ranks.
absl::StatusOr<Placement> PlaceAsGiven(absl::string_view where,
                                       const std::vector<int>& gpus, int tensor,
                                       int data, int pipeline,
                                       int num_gpus_available);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CLUSTER_PLACEMENT_H_
