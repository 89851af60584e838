// SPDX-License-Identifier: Apache-2.0
// Searches of small requests.
#ifndef WEIR_TESTS_PLAN_SEARCH_SMALL_SEARCHES_H_
#define WEIR_TESTS_PLAN_SEARCH_SMALL_SEARCHES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/search/joint_search.h"
#include "tests/plan/search/small_requests.h"

namespace weir::plan {

// Returns the number of candidates in all categories.
inline uint64_t SumOfCounts(const PlanReport& report) {
  return report.num_invalid() + report.num_pruned_memory() +
         report.num_pruned_time() + report.num_ranked() +
         report.num_duplicates() + report.num_left();
}

// Returns the report of the search, which must succeed.
inline PlanReport Search(const PlanRequest& request, int num_processes = 2,
                         std::vector<Plan> seeds = {}) {
  SearchOptions options;
  options.num_processes = num_processes;
  options.seeds = std::move(seeds);
  auto report = SearchPlans("test", request, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : PlanReport();
}

}  // namespace weir::plan

#endif  // WEIR_TESTS_PLAN_SEARCH_SMALL_SEARCHES_H_
