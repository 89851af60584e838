// SPDX-License-Identifier: Apache-2.0
// Parts of the views of plans: words, and values that follow from a report.
#ifndef WEIR_PLAN_SEARCH_PLAN_CELLS_H_
#define WEIR_PLAN_SEARCH_PLAN_CELLS_H_

#include <string>
#include <vector>

#include "plan/search/plan.pb.h"
#include "results/result.pb.h"

namespace weir::plan {

inline constexpr double kSecondsPerHour = 3600;

std::string RecomputeText(const Plan& plan);
// Returns the blocks of each stage with equal neighbors grouped, "11,12*6,13",
// or "even".
std::string LayersText(const Plan& plan);
std::string ShardingText(const Plan& plan);
std::string SequenceParallelText(const Plan& plan);
std::string ReductionText(const Plan& plan);
std::string OrderText(const Plan& plan);

// Returns 0 if the model has no tokens.
double TokensPerSecond(const Plan& plan);
bool HasTokens(const PlanReport& report);
// Returns the training tokens for which views show the cost: those of the
// request, else 1e9.
double TokensOf(const PlanReport& report);

bool HasPrices(const PlanReport& report);
// Return true if a plan has expert, expert tensor or context parallelism.
bool HasExperts(const PlanReport& report);
bool HasExpertTensor(const PlanReport& report);
bool HasReplicates(const PlanReport& report);
bool HasContext(const PlanReport& report);
// Return the GPUs that share each expert, and the groups of hybrid sharding.
uint32_t ExpertTensorOf(const Plan& plan);
uint32_t ReplicatesOf(const Plan& plan);
// A technique that plans may use, with the name of its column and its value:
// "none", a number, "yes", ...
struct Technique {
  std::string header;
  std::string key;  // in JSON and CSV
  std::string (*text)(const Plan& plan);
  std::string without;  // the value of plans that do not use it
};
// Returns the techniques that some plan uses.
std::vector<Technique> TechniquesOf(const PlanReport& report);
bool HasFlops(const PlanReport& report);
// Returns what results/flops.h needs of a plan.
Result FlopsOfPlan(const PlanReport& report, const Plan& plan);
std::string RuntimeOf(const PlanReport& report);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_PLAN_CELLS_H_
