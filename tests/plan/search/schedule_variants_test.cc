// SPDX-License-Identifier: Apache-2.0
#include "plan/search/schedule_variants.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/assets.h"
#include "calibrate/profile/runtime.h"
#include "scenarios/scenario.h"
#include "schedules/options.h"
#include "schedules/registry.h"
#include "schedules/source.h"
#include "sim/bounds/bound.h"
#include "sim/simulate.h"
#include "tests/plan/search/small_requests.h"

namespace weir::plan::schedule_variants_test {

std::vector<PlannedSchedule> AllToPlan(int num_ranks) {
  PlanSpace space;
  space.set_asynchronous(true);
  const auto schedules = SchedulesToPlan("test", space, num_ranks);
  EXPECT_TRUE(schedules.ok()) << schedules.status();
  return *schedules;
}

// Returns options that are tried only if they are named.
const std::vector<std::string>& NamedVariants() {
  static const auto& names = *new std::vector<std::string>{
      "pipemare:order=1f1b",
      "pipemare:correction=none",
      "pipemare:order=1f1b:correction=none",
      "pipedream:vertical-sync=yes",
      "pipelined-backprop:mitigation=spike-compensation",
      "timeprest:ahead=minibatch",
      "optpipe:offload=never",
      "optpipe:memory-limit=1",
      "2bp-naive:concatenate=yes",
      "2bp-gpipe:concatenate=yes",
      "2bp-1f1b-1:concatenate=yes",
      "2bp-1f1b-2:backward-p2=end",
      "2bp-1f1b-2:concatenate=yes",
      "chimera:pipelines=4:concatenation=forward-doubling"};
  return names;
}

std::vector<PlannedSchedule> AllAndNamed(int num_ranks) {
  std::vector<PlannedSchedule> all = AllToPlan(num_ranks);
  PlanSpace space;
  for (const std::string& name : NamedVariants()) space.add_schedules(name);
  const auto named = SchedulesToPlan("test", space, num_ranks);
  EXPECT_TRUE(named.ok()) << named.status();
  all.insert(all.end(), named->begin(), named->end());
  return all;
}

// Schedules with equal bound keys share one bound. Their keys must be equal at
// every size, not only at that of the sample.
TEST(ScheduleVariantsTest, PositionsThatAreSharedAreSharedAtEverySize) {
  int num_shared = 0;
  for (const int ranks : {2, 3, 4, 8, 12}) {
    const std::vector<PlannedSchedule> schedules = AllAndNamed(ranks);
    for (const int chunks : {1, 2, 3, 4}) {
      for (const int microbatches : {1, 6, 8, 24, 48}) {
        // By bound key of the sample: a schedule and its bound key at this
        // size.
        std::map<std::string, std::pair<std::string, std::string>> first;
        for (const PlannedSchedule& schedule : schedules) {
          if (schedule.bound_key.empty()) continue;
          // A search takes equally long for any size, so a few sizes suffice.
          if (schedules::OrdersByCosts(schedule.name) &&
              (ranks > 3 || microbatches > 8)) {
            continue;
          }
          const auto kind = schedules::FindScheduleKind(schedule.name);
          ASSERT_TRUE(kind.ok());
          schedules::ScheduleSpec spec;
          spec.num_ranks = ranks;
          spec.num_chunks = chunks;
          spec.num_microbatches = microbatches;
          spec.num_batches = (*kind)->flush ? 1 : 3;
          const auto made = schedules::GenerateSchedule(schedule.name, spec);
          if (!made.ok()) continue;
          const auto [at, added] = first.try_emplace(
              schedule.bound_key, schedule.name, BoundKey(*made));
          if (added) continue;
          ++num_shared;
          EXPECT_EQ(at->second.second, BoundKey(*made))
              << at->second.first << " and " << schedule.name << ", " << ranks
              << " ranks, " << chunks << " chunks, " << microbatches
              << " microbatches";
        }
      }
    }
  }
  EXPECT_GT(num_shared, 500);
}

// The schedule with the largest any-order bound among those that share a bound
// key, and the one with the shortest run.
struct Extremes {
  double bound = 0, run = std::numeric_limits<double>::infinity();
  std::string bound_of, run_of;
};

// The any-order bound of a schedule holds for all that share its bound key,
// with all costs of a real model.
TEST(ScheduleVariantsTest, BoundsOfOneHoldForAllWithItsBoundKey) {
  int num_shared = 0;
  for (const int ranks : {2, 4}) {
    for (const int microbatches : {4, 8}) {
      for (const std::vector<uint32_t>& blocks :
           {std::vector<uint32_t>{}, ranks == 2
                                         ? std::vector<uint32_t>{3, 1}
                                         : std::vector<uint32_t>{2, 1, 1, 0}}) {
        Scenario scenario = SmallRequest(4, ranks, microbatches).scenario();
        scenario.mutable_parallelism()->set_pipeline(ranks);
        scenario.mutable_batch()->set_microbatch_size(1);
        scenario.mutable_parallelism()->mutable_blocks_per_stage()->Assign(
            blocks.begin(), blocks.end());
        std::map<std::string, Extremes> by_places;
        for (const PlannedSchedule& schedule : AllAndNamed(ranks)) {
          if (schedule.bound_key.empty()) continue;
          scenario.set_schedule(schedule.name);
          const auto resolved = scenarios::ResolveScenario("test", scenario);
          if (!resolved.ok()) continue;
          const auto bound = sim::BoundOf(*resolved);
          const auto run = sim::Simulate(*resolved);
          if (!bound.ok() || !run.ok()) continue;
          const auto [at, added] = by_places.try_emplace(
              absl::StrCat(schedule.bound_key, " ",
                           resolved->scenario.parallelism().chunks()));
          num_shared += added ? 0 : 1;
          Extremes& extremes = at->second;
          if (bound->any_order_seconds > extremes.bound) {
            extremes.bound = bound->any_order_seconds;
            extremes.bound_of = schedule.name;
          }
          if (run->batch_seconds() < extremes.run) {
            extremes.run = run->batch_seconds();
            extremes.run_of = schedule.name;
          }
        }
        for (const auto& [places, extremes] : by_places) {
          EXPECT_LE(extremes.bound, extremes.run * (1 + 1e-9))
              << extremes.bound_of << " bounds " << extremes.run_of << ", "
              << ranks << " ranks, " << microbatches << " microbatches";
        }
      }
    }
  }
  EXPECT_GT(num_shared, 100);
}

// Every schedule whose order needs a search has a bound proxy whose order does
// not.
TEST(ScheduleVariantsTest, WhatOrdersByCostsHasAFastBoundProxy) {
  int num_dear = 0;
  for (const PlannedSchedule& schedule : AllToPlan(8)) {
    if (!schedules::OrdersByCosts(schedule.name)) {
      EXPECT_EQ(schedule.bound_proxy, "") << schedule.name;
      continue;
    }
    ++num_dear;
    ASSERT_NE(schedule.bound_proxy, "") << schedule.name;
    EXPECT_FALSE(schedules::OrdersByCosts(schedule.bound_proxy))
        << schedule.bound_proxy;
  }
  EXPECT_GE(num_dear, 5);
}

// The order of backwards does not change the bound key.
TEST(ScheduleVariantsTest, OptionsThatChangeTheOrderAloneKeepTheirBoundKey) {
  std::map<std::string, std::string> places;
  for (const PlannedSchedule& schedule : AllAndNamed(8)) {
    places[schedule.name] = schedule.bound_key;
  }
  EXPECT_EQ(places.at("gpipe:backward-order=forward"), places.at("1f1b"));
  for (const char* name :
       {"optpipe:memory-limit=4", "optpipe:memory-limit=1"}) {
    EXPECT_EQ(places.at(name), places.at("zb-h1")) << name;
  }
  // Steps of split backwards may be validated later.
  EXPECT_NE(places.at("zb-h1"), places.at("1f1b"));
  const std::vector<std::string> unlike = {
      "1f1b",
      "chimera",
      "chimera:pipelines=4",
      "chimera:concatenation=forward-doubling",
      "pipemare",
      "pipemare:order=1f1b",
      "pipemare:correction=none"};
  std::set<std::string> seen;
  for (const std::string& name : unlike) {
    EXPECT_NE(places.at(name), "") << name;
    EXPECT_TRUE(seen.insert(places.at(name)).second) << name;
  }
}

TEST(ScheduleVariantsTest, RuntimesNameSchedulesThatExist) {
  int num_restricted = 0;
  for (const std::string& name : ListAssets("calibrate/profile/runtimes")) {
    const auto runtime = calibrate::LoadRuntime(name);
    ASSERT_TRUE(runtime.ok()) << runtime.status();
    const auto schedules = SchedulesToPlan("test", {}, 4, *runtime);
    ASSERT_TRUE(schedules.ok()) << schedules.status();
    std::set<std::string> names;
    for (const PlannedSchedule& schedule : *schedules) {
      names.insert(std::string(schedules::WithoutOptions(schedule.name)));
    }
    const std::set<std::string> listed(runtime->schedules().begin(),
                                       runtime->schedules().end());
    if (listed.empty()) continue;
    ++num_restricted;
    EXPECT_EQ(names, listed) << name;  // by their own names, without duplicates
  }
  EXPECT_EQ(num_restricted, 14);
}

std::set<std::string> LimitsOf(const std::string& kind, int num_ranks) {
  const std::string prefix = kind + ":memory-limit=";
  std::set<std::string> limits;
  for (const PlannedSchedule& schedule : AllToPlan(num_ranks)) {
    if (!schedule.name.starts_with(prefix)) continue;
    limits.insert(schedule.name.substr(prefix.size()));
  }
  return limits;
}

// Limits are fractions of what 1F1B's first rank holds, rounded to whole
// microbatches. The amount that a system holds without a limit is left out.
TEST(ScheduleVariantsTest, MemoryLimitsArePartsOfTheRanks) {
  using Limits = std::set<std::string>;
  // 1/2 and 3/4.
  EXPECT_EQ(LimitsOf("dapple-pa", 8), (Limits{"4", "6"}));
  EXPECT_EQ(LimitsOf("dapple-pa", 7), (Limits{"4", "6"}));
  EXPECT_EQ(LimitsOf("dapple-pa", 2), (Limits{"1"}));
  // 1/4, 1/2, 3/2 and 2.
  EXPECT_EQ(LimitsOf("optpipe", 8), (Limits{"2", "4", "12", "16"}));
  EXPECT_EQ(LimitsOf("optpipe", 7), (Limits{"2", "4", "10", "14"}));
  // 5/4 and 3/2.
  EXPECT_EQ(LimitsOf("zb-1p", 8), (Limits{"10", "12"}));
  EXPECT_EQ(LimitsOf("zb-1p", 7), (Limits{"9", "11"}));
}

}  // namespace weir::plan::schedule_variants_test
