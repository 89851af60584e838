// SPDX-License-Identifier: Apache-2.0
// Small schedules written by hand, one per feature of schedules.
#ifndef WEIR_TESTS_SIM_HAND_SCHEDULES_H_
#define WEIR_TESTS_SIM_HAND_SCHEDULES_H_

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "schedules/schedule.h"
#include "sim/simulate.h"

namespace weir::sim {

// Parses actions such as "2F0". A trailing '&' makes an action overlap the
// next.
inline std::vector<schedules::Action> Actions(
    std::initializer_list<absl::string_view> texts) {
  std::vector<schedules::Action> actions;
  for (absl::string_view text : texts) {
    const bool overlaps = text.back() == '&';
    if (overlaps) text.remove_suffix(1);
    actions.push_back(schedules::ParseAction(text).value());
    actions.back().overlaps_next = overlaps;
  }
  return actions;
}

inline schedules::Schedule ByHand(
    std::vector<std::vector<int>> routes, int num_microbatches,
    std::vector<std::vector<schedules::Action>> rank_actions) {
  schedules::Schedule schedule;
  schedule.name = "by hand";
  schedule.num_ranks = static_cast<int>(rank_actions.size());
  schedule.num_stages = static_cast<int>(routes[0].size());
  schedule.num_microbatches = num_microbatches;
  schedule.routes = std::move(routes);
  schedule.rank_actions = std::move(rank_actions);
  schedule.weights.microbatches_per_update = num_microbatches;
  return schedule;
}

// Two pipelines over two ranks in opposite directions: Chimera with D = 2.
inline schedules::Schedule TwoDirections() {
  return ByHand({{0, 1}, {1, 0}}, 2,
                {Actions({"0F0", "1F1", "1B1", "0B0"}),
                 Actions({"0F1", "1F0", "1B0", "0B1"})});
}

// Breadth-first: runs all microbatches of a chunk before the next chunk. Each
// chunk consists of one round of `num_ranks` stages.
inline schedules::Schedule BreadthFirst(int num_ranks, int num_chunks,
                                        int num_microbatches) {
  std::vector<int> route;
  std::vector<std::vector<schedules::Action>> ranks(num_ranks);
  const int num_stages = num_ranks * num_chunks;
  for (int s = 0; s < num_stages; ++s) route.push_back(s % num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    for (int s = rank; s < num_stages; s += num_ranks) {
      for (int k = 0; k < num_microbatches; ++k) {
        ranks[rank].push_back({schedules::Op::kForward, s, k});
      }
    }
    for (int s = num_stages - num_ranks + rank; s >= 0; s -= num_ranks) {
      for (int k = 0; k < num_microbatches; ++k) {
        ranks[rank].push_back({schedules::Op::kBackward, s, k});
      }
    }
  }
  return ByHand({route}, num_microbatches, std::move(ranks));
}

// Inference: batches of one microbatch, without flush.
inline schedules::Schedule ForwardOnly(int num_ranks, int num_batches) {
  std::vector<int> route;
  std::vector<std::vector<schedules::Action>> ranks(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    route.push_back(rank);
    for (int k = 0; k < num_batches; ++k) {
      ranks[rank].push_back({schedules::Op::kForward, rank, k});
    }
  }
  schedules::Schedule schedule = ByHand({route}, 1, std::move(ranks));
  schedule.num_batches = num_batches;
  schedule.flush = false;
  schedule.forward_only = true;
  return schedule;
}

// PipeDream's 1F1B-RR: two copies of the first stage alternate, and one rank
// holds the second stage. Each copy updates its weights after every microbatch.
inline schedules::Schedule RoundRobin(int num_batches) {
  std::vector<std::vector<schedules::Action>> ranks(3);
  for (int copy : {0, 1}) {
    std::vector<int> mine;
    for (int k = copy; k < num_batches; k += 2) mine.push_back(k);
    for (size_t i = 0; i < mine.size() + 1; ++i) {
      if (i < mine.size())
        ranks[copy].push_back({schedules::Op::kForward, 0, mine[i]});
      if (i > 0)
        ranks[copy].push_back({schedules::Op::kBackward, 0, mine[i - 1]});
    }
  }
  for (int k = 0; k < num_batches; ++k) {
    ranks[2].push_back({schedules::Op::kForward, 1, k});
    ranks[2].push_back({schedules::Op::kBackward, 1, k});
  }
  schedules::Schedule schedule = ByHand({{0, 2}, {1, 2}}, 1, std::move(ranks));
  schedule.num_batches = num_batches;
  schedule.flush = false;
  schedule.weights.times_replicas = true;
  return schedule;
}

// Simulates with a timeline. An error fails the test.
inline Result RunByHand(const scenarios::ResolvedScenario& scenario,
                        const schedules::Schedule& schedule) {
  SimulateOptions options;
  options.keep_timeline = true;
  const auto result = SimulateSchedule(scenario, schedule, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

}  // namespace weir::sim

#endif  // WEIR_TESTS_SIM_HAND_SCHEDULES_H_
