// SPDX-License-Identifier: Apache-2.0
// Layouts: division of the GPUs into tensor x pipeline x context x data
// parallelism.
#ifndef WEIR_PLAN_SEARCH_LAYOUTS_H_
#define WEIR_PLAN_SEARCH_LAYOUTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plan/search/plan.pb.h"
#include "scenarios/scenario.h"

namespace weir::plan {

struct Layout {
  int tensor = 1, pipeline = 1, data = 1, context = 1;
};

// If the request has no context-parallel sizes, powers of two are tried up to
// this size, as long as each GPU keeps this many tokens of a sequence: the
// length at which Llama 3 was trained before its context was extended, without
// context parallelism.
inline constexpr int kMostContext = 8;
inline constexpr uint32_t kFewestContextTokens = 8192;

// Returns the distinct numbers in ascending order.
std::vector<int> Sorted(const google::protobuf::RepeatedField<uint32_t>& list);

// Returns all layouts that the request allows, fewest GPUs first. Sizes that
// the request leaves open are limited: tensor groups to one node, pipelines to
// one rank per block plus one each for embedding and head, context-parallel
// groups as stated above. If the request lists
// numbers of GPUs, layouts use one of these; if it lists only data-parallel
// sizes, any number up to the cluster's; otherwise all GPUs.
std::vector<Layout> LayoutsOf(const PlanSpace& space,
                              const scenarios::ResolvedScenario& base);

// Returns InvalidArgument if the cluster has too few GPUs for the request, or
// if no layout matches the requested numbers.
absl::Status CheckGpus(const std::string& label, const PlanSpace& space,
                       const scenarios::ResolvedScenario& base);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_LAYOUTS_H_
