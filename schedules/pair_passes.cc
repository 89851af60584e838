// SPDX-License-Identifier: Apache-2.0
#include "schedules/pair_passes.h"

#include <cstddef>
#include <vector>

#include "schedules/action_rules.h"

namespace weir::schedules {

void PairBackwardsWithForwards(Schedule* schedule) {
  for (std::vector<Action>& actions : schedule->rank_actions) {
    for (size_t i = 0; i + 1 < actions.size(); ++i) {
      if (actions[i].overlaps_next) {
        ++i;  // a pair of the schedule
        continue;
      }
      const Action& next = actions[i + 1];
      if (!MakesInputGradient(actions[i].op) || next.op != Op::kForward ||
          next.overlaps_next ||
          next.num_microbatches != actions[i].num_microbatches) {
        continue;
      }
      actions[i].overlaps_next = true;
      if (!PairProblem(actions, i).empty()) {
        actions[i].overlaps_next = false;
        continue;
      }
      ++i;
    }
  }
}

}  // namespace weir::schedules
