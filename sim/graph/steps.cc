// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {
namespace {

// Returns the position of the first forward of `stage` that reads `version`;
// the end of the order if there is none.
int32_t FirstReader(const schedules::Schedule& schedule,
                    const schedules::Semantics& semantics, int rank, int stage,
                    int version, int32_t from) {
  const auto& actions = schedule.rank_actions[rank];
  for (size_t i = from; i < actions.size(); ++i) {
    const schedules::Action& action = actions[i];
    if (action.stage == stage && action.op == schedules::Op::kForward &&
        semantics.uses[stage][action.microbatch].forward_version >= version) {
      return static_cast<int32_t>(i);
    }
  }
  return static_cast<int32_t>(actions.size());
}

// Returns the end of the batch of the action at `position`, in the rank's
// order.
int32_t EndOfBatch(const schedules::Schedule& schedule,
                   const std::vector<schedules::Action>& actions,
                   int32_t position) {
  const int batch = actions[position].microbatch / schedule.num_microbatches;
  int32_t end = position + 1;
  while (end < std::ssize(actions) &&
         actions[end].microbatch / schedule.num_microbatches == batch) {
    ++end;
  }
  return end;
}

// Nothing comes between the actions of an overlapped pair.
int32_t AfterPair(const std::vector<schedules::Action>& actions,
                  int32_t position) {
  return actions[position].overlaps_next ? position + 1 : position;
}
int32_t BeforePair(const std::vector<schedules::Action>& actions,
                   int32_t position) {
  return position > 0 && actions[position - 1].overlaps_next ? position - 1
                                                             : position;
}

}  // namespace

std::vector<std::vector<Step>> PlanSteps(const schedules::Schedule& schedule,
                                         const schedules::Semantics& semantics,
                                         ReductionMode mode) {
  const bool overlapped = mode == REDUCTION_OVERLAPPED;
  std::vector<std::vector<Step>> steps(schedule.num_ranks);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const auto& actions = schedule.rank_actions[rank];
    for (int32_t position : semantics.update_positions[rank]) {
      const schedules::Action& action = actions[position];
      Step step;
      step.stage = action.stage;
      step.update = semantics.uses[action.stage][action.microbatch].update;
      if (schedule.flush) {
        const int32_t end = EndOfBatch(schedule, actions, position);
        step.reduce_after = overlapped ? position : end - 1;
        step.before = end;
      } else {
        const int32_t next = AfterPair(actions, position) + 1;
        step.reduce_after = position;
        step.before =
            overlapped ? BeforePair(actions, FirstReader(schedule, semantics,
                                                         rank, action.stage,
                                                         step.update + 1, next))
                       : next;
      }
      steps[rank].push_back(step);
    }
    std::stable_sort(
        steps[rank].begin(), steps[rank].end(),
        [](const Step& a, const Step& b) { return a.before < b.before; });
  }
  return steps;
}

bool FollowsAStep(const std::vector<Step>& rank_steps, size_t step) {
  return step > 0 && rank_steps[step - 1].before == rank_steps[step].before;
}

std::vector<Reduction> PlanReductions(
    const std::vector<std::vector<Step>>& steps) {
  std::vector<Reduction> reductions;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, size_t> index;
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    for (size_t i = 0; i < steps[rank].size(); ++i) {
      const Step& step = steps[rank][i];
      const auto [at, added] =
          index.try_emplace({step.stage, step.update}, reductions.size());
      if (added) reductions.push_back({step.stage, step.update, {}});
      reductions[at->second].members.push_back(
          {static_cast<int32_t>(rank), static_cast<int32_t>(i)});
    }
  }
  return reductions;
}

std::vector<std::vector<WeightRun>> PlanWeightRuns(
    const schedules::Schedule& schedule) {
  std::vector<std::vector<WeightRun>> ranks;
  for (const std::vector<schedules::Action>& actions : schedule.rank_actions) {
    std::vector<WeightRun>& runs = ranks.emplace_back();
    bool was_forward = false;
    for (int32_t i = 0; i < std::ssize(actions); ++i) {
      const schedules::Action& action = actions[i];
      const bool forward = action.op == schedules::Op::kForward;
      if (!forward && !schedules::MakesInputGradient(action.op)) continue;
      if (runs.empty() || runs.back().stage != action.stage ||
          was_forward != forward) {
        runs.push_back({action.stage, i, i});
      }
      runs.back().last = i;
      was_forward = forward;
    }
  }
  return ranks;
}

}  // namespace weir::sim
