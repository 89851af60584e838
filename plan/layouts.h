// SPDX-License-Identifier: Apache-2.0
// Tensor x pipeline x data: how the GPUs are divided.
#ifndef WEIR_PLAN_LAYOUTS_H_
#define WEIR_PLAN_LAYOUTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plan/plan.pb.h"
#include "scenarios/scenario.h"

namespace weir {

struct Layout {
  int tensor = 1, pipeline = 1, data = 1;
};

// Each number once, ascending.
std::vector<int> Sorted(const google::protobuf::RepeatedField<uint32_t>& list);

// All that the request allows, fewest GPUs first. Tensor groups stay inside a
// node and pipelines have no more ranks than the model has blocks (and ends),
// unless the request names them. GPUs: those named; else, where data is named,
// whatever the three make; else all of the cluster.
std::vector<Layout> LayoutsOf(const PlanSpace& space,
                              const ResolvedScenario& base);

// InvalidArgument where the cluster has too few GPUs for the request, or its
// numbers do not go together.
absl::Status CheckGpus(const std::string& label, const PlanSpace& space,
                       const ResolvedScenario& base);

}  // namespace weir

#endif  // WEIR_PLAN_LAYOUTS_H_
