// SPDX-License-Identifier: Apache-2.0
#include "schedules/schedule.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

namespace weir::schedules::schedule_test {

using Change = std::function<void(Schedule*)>;

Schedule TwoActions() {
  Schedule schedule;
  schedule.name = "one";
  schedule.num_ranks = schedule.num_stages = schedule.num_microbatches = 1;
  schedule.routes = {{0}};
  schedule.rank_actions = {
      {{Op::kForward, 0, 0}, {Op::kBackward, 0, 0}},
  };
  return schedule;
}

TEST(OrderHashTest, DependsOnEveryFieldButTheName) {
  const std::vector<Change> changes = {
      [](Schedule* s) { ++s->num_ranks; },
      [](Schedule* s) { ++s->num_stages; },
      [](Schedule* s) { ++s->num_microbatches; },
      [](Schedule* s) { ++s->num_batches; },
      [](Schedule* s) { s->flush = false; },
      [](Schedule* s) { s->forward_only = true; },
      [](Schedule* s) { s->routes[0][0] = 1; },
      [](Schedule* s) { ++s->microbatches_per_route_turn; },
      [](Schedule* s) { s->rank_actions[0][0].op = Op::kBackward; },
      [](Schedule* s) { ++s->rank_actions[0][0].stage; },
      [](Schedule* s) { ++s->rank_actions[0][0].microbatch; },
      [](Schedule* s) { ++s->rank_actions[0][0].num_microbatches; },
      [](Schedule* s) { s->rank_actions[0][0].overlaps_next = true; },
      [](Schedule* s) { s->rank_actions[0].pop_back(); },
      [](Schedule* s) {
        std::swap(s->rank_actions[0][0], s->rank_actions[0][1]);
      },
      [](Schedule* s) { ++s->weights.microbatches_per_update; },
      [](Schedule* s) { s->weights.times_replicas = true; },
      [](Schedule* s) {
        s->weights.forward = WeightPolicy::ForwardRead::kDelayed;
      },
      [](Schedule* s) { ++s->weights.delay_updates; },
      [](Schedule* s) {
        s->weights.backward = WeightPolicy::BackwardRead::kLatest;
      },
      [](Schedule* s) {
        s->weights.prediction = WeightPolicy::Prediction::kForward;
      },
      [](Schedule* s) { s->weights.forward_distance = {1}; },
      [](Schedule* s) { s->weights.backward_distance = {1}; },
      [](Schedule* s) { ++s->weights.estimate_buffers; },
      [](Schedule* s) { ++s->weights.predicted_copies; },
      [](Schedule* s) { ++s->resident_activations; },
      [](Schedule* s) { s->compressed_transfers = true; },
  };
  const uint64_t hash = OrderHash(TwoActions());
  for (size_t i = 0; i < changes.size(); ++i) {
    Schedule changed = TwoActions();
    changes[i](&changed);
    EXPECT_NE(OrderHash(changed), hash) << "change " << i;
  }
  Schedule renamed = TwoActions();
  renamed.name = "two";
  EXPECT_EQ(OrderHash(renamed), hash);
}

}  // namespace weir::schedules::schedule_test
