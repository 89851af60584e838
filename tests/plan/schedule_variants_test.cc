// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule_variants.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "schedules/options.h"
#include "schedules/registry.h"

namespace weir {
namespace {

std::vector<PlannedSchedule> AllToPlan(int num_ranks) {
  PlanSpace space;
  space.set_asynchronous(true);
  const auto schedules = SchedulesToPlan("test", space, num_ranks);
  EXPECT_TRUE(schedules.ok()) << schedules.status();
  return *schedules;
}

// One bound stands for all that share places: they must do so at every size,
// not only at that of the sample.
TEST(ScheduleVariantsTest, PlacesThatAreSharedAreSharedAtEverySize) {
  int num_shared = 0;
  for (const int ranks : {2, 3, 4, 8, 12}) {
    const std::vector<PlannedSchedule> schedules = AllToPlan(ranks);
    for (const int chunks : {1, 2, 3, 4}) {
      for (const int microbatches : {1, 6, 8, 24, 48}) {
        // [places of the sample]: a schedule and its places here.
        std::map<std::string, std::pair<std::string, std::string>> first;
        for (const PlannedSchedule& schedule : schedules) {
          if (schedule.places.empty()) continue;
          // A search takes as long for any size: a few will do.
          if (OrdersByCosts(schedule.name) && (ranks > 3 || microbatches > 8)) {
            continue;
          }
          const auto kind = FindScheduleKind(schedule.name);
          ASSERT_TRUE(kind.ok());
          ScheduleSpec spec;
          spec.num_ranks = ranks;
          spec.num_chunks = chunks;
          spec.num_microbatches = microbatches;
          spec.num_batches = (*kind)->flush ? 1 : 3;
          const auto made = GenerateSchedule(schedule.name, spec);
          if (!made.ok()) continue;
          const auto [at, added] = first.try_emplace(
              schedule.places, schedule.name, PlacesOf(*made));
          if (added) continue;
          ++num_shared;
          EXPECT_EQ(at->second.second, PlacesOf(*made))
              << at->second.first << " and " << schedule.name << ", " << ranks
              << " ranks, " << chunks << " chunks, " << microbatches
              << " microbatches";
        }
      }
    }
  }
  EXPECT_GT(num_shared, 500);
}

// Whatever takes a search to order is bounded by an order that takes none.
TEST(ScheduleVariantsTest, WhatOrdersByCostsHasAQuickSpeaker) {
  int num_dear = 0;
  for (const PlannedSchedule& schedule : AllToPlan(8)) {
    if (!OrdersByCosts(schedule.name)) {
      EXPECT_EQ(schedule.speaker, "") << schedule.name;
      continue;
    }
    ++num_dear;
    ASSERT_NE(schedule.speaker, "") << schedule.name;
    EXPECT_FALSE(OrdersByCosts(schedule.speaker)) << schedule.speaker;
  }
  EXPECT_GE(num_dear, 5);
}

// An order of backwards is no other place.
TEST(ScheduleVariantsTest, OptionsThatChangeTheOrderAloneKeepTheirPlaces) {
  std::map<std::string, std::string> places;
  for (const PlannedSchedule& schedule : AllToPlan(8)) {
    places[schedule.name] = schedule.places;
  }
  EXPECT_EQ(places["gpipe:backward-order=forward"], places["zb-h1"]);
  EXPECT_EQ(places["optpipe:memory-limit=4"], places["zb-h1"]);
  EXPECT_NE(places["chimera:pipelines=4"], places["chimera"]);
  EXPECT_NE(places["chimera:concatenation=forward-doubling"],
            places["chimera"]);
}

}  // namespace
}  // namespace weir
