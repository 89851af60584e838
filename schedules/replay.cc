// SPDX-License-Identifier: Apache-2.0
#include "schedules/replay.h"

#include <array>

namespace weir {
namespace {

// Forwards and input gradients that have run, by stage and microbatch.
class DoneTable {
 public:
  explicit DoneTable(const Schedule& schedule)
      : total_(schedule.total_microbatches()) {
    const size_t cells = static_cast<size_t>(schedule.num_stages) * total_;
    done_ = {std::vector<uint8_t>(cells), std::vector<uint8_t>(cells)};
  }

  bool IsDone(const Action& action) const {
    return done_[action.op != Op::kForward][Cell(action)] != 0;
  }
  void MarkDone(const Action& action) {
    done_[action.op != Op::kForward][Cell(action)] = 1;
  }

 private:
  size_t Cell(const Action& action) const {
    return static_cast<size_t>(action.stage) * total_ + action.microbatch;
  }

  int total_;
  std::array<std::vector<uint8_t>, 2> done_;  // forwards, input gradients
};

// The stage whose next action may have waited for this one, or -1.
int StageReleasedBy(const Schedule& schedule, const Action& action) {
  if (action.op == Op::kBackwardWeight) return -1;
  if (action.op != Op::kForward) return action.stage - 1;
  return action.stage + 1 < schedule.num_stages ? action.stage + 1 : -1;
}

}  // namespace

std::optional<Action> AwaitedAction(const Schedule& schedule,
                                    const Action& action) {
  if (action.op == Op::kBackwardWeight) return std::nullopt;
  if (action.op == Op::kForward) {
    if (action.stage == 0) return std::nullopt;
    return Action{Op::kForward, action.stage - 1, action.microbatch};
  }
  if (action.stage + 1 == schedule.num_stages) return std::nullopt;
  return Action{Op::kBackward, action.stage + 1, action.microbatch};
}

std::vector<int32_t> Replay(
    const Schedule& schedule,
    const std::function<void(int rank, int32_t position)>& visit) {
  DoneTable done(schedule);
  std::vector<int32_t> num_run(schedule.num_ranks, 0);
  // Ranks whose next action may be able to run. A rank comes back whenever an
  // action that it may wait for has run, so none is forgotten.
  std::vector<int> ready;
  for (int rank = schedule.num_ranks; rank-- > 0;) ready.push_back(rank);
  while (!ready.empty()) {
    const int rank = ready.back();
    ready.pop_back();
    const std::vector<Action>& actions = schedule.rank_actions[rank];
    while (num_run[rank] < std::ssize(actions)) {
      const Action& action = actions[num_run[rank]];
      const std::optional<Action> awaited = AwaitedAction(schedule, action);
      if (awaited && !done.IsDone(*awaited)) break;
      visit(rank, num_run[rank]++);
      if (action.op == Op::kBackwardWeight) continue;
      done.MarkDone(action);
      const int stage = StageReleasedBy(schedule, action);
      if (stage < 0 || schedule.stage_rank[stage] == rank) continue;
      ready.push_back(schedule.stage_rank[stage]);
    }
  }
  return num_run;
}

}  // namespace weir
