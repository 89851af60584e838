// SPDX-License-Identifier: Apache-2.0
#include "schedules/interop/lower.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "schedules/comm/deadlock.h"

namespace weir::schedules {
namespace {

using Row = std::vector<CommAction>;

CommAction OfStage(Op op, int stage) {
  CommAction action{op};
  action.stage = stage;
  return action;
}

bool MakesGradient(Op op) {
  return op == Op::kBackward || op == Op::kBackwardInput;
}

// Returns the end of the action at `position` or, if it overlaps the next, of
// the pair.
size_t UnitEnd(const Row& row, size_t position) {
  return std::min(row.size(), position + (row[position].with_next ? 2 : 1));
}

Row Merged(const Row& row) {
  Row merged;
  merged.reserve(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    merged.push_back(row[i]);
    const bool whole = i + 1 < row.size() && row[i].op == Op::kBackwardInput &&
                       row[i + 1].op == Op::kBackwardWeight &&
                       (i == 0 || !row[i - 1].with_next) &&
                       row[i].stage == row[i + 1].stage &&
                       row[i].microbatch == row[i + 1].microbatch &&
                       row[i].num_microbatches == row[i + 1].num_microbatches;
    if (!whole) continue;
    merged.back().op = Op::kBackward;
    ++i;
  }
  return merged;
}

// Returns by [position] the stages to keep gathered at each action: the next
// distinct ones, in the order of their use. An overlapped pair counts as a
// whole and may add one stage. Empty inside a pair.
std::vector<std::vector<int>> NextStages(const Row& row, int max_active) {
  std::vector<std::vector<int>> next(row.size());
  std::vector<size_t> starts;
  for (size_t i = 0; i < row.size(); i = UnitEnd(row, i)) starts.push_back(i);
  // Stages in the order of their next use, and the position of that.
  std::vector<std::pair<int, size_t>> order;
  for (size_t unit = starts.size(); unit-- > 0;) {
    const size_t begin = starts[unit];
    for (size_t i = UnitEnd(row, begin); i-- > begin;) {
      const auto old = std::find_if(
          order.begin(), order.end(),
          [&](const auto& entry) { return entry.first == row[i].stage; });
      if (old != order.end()) order.erase(old);
      order.insert(order.begin(), {row[i].stage, begin});
    }
    size_t count = std::min<size_t>(order.size(), max_active);
    if (count < order.size() &&
        order[count - 1].second == order[count].second) {
      ++count;
    }
    for (size_t i = 0; i < count; ++i) next[begin].push_back(order[i].first);
  }
  return next;
}

// Adds UNSHARD and RESHARD. Stages resharded at the same time are in ascending
// order; PyTorch uses the order of a set.
Row AddSharding(const Row& row, int max_active) {
  const std::vector<std::vector<int>> next = NextStages(row, max_active);
  Row result;
  std::vector<int> active;
  const auto evict_all_but = [&](const std::vector<int>& wanted) {
    std::sort(active.begin(), active.end());
    std::vector<int> kept;
    for (int stage : active) {
      if (std::find(wanted.begin(), wanted.end(), stage) != wanted.end()) {
        kept.push_back(stage);
      } else {
        result.push_back(OfStage(Op::kReshard, stage));
      }
    }
    active = std::move(kept);
  };
  for (size_t i = 0; i < row.size();) {
    evict_all_but(next[i]);
    for (int stage : next[i]) {
      if (std::find(active.begin(), active.end(), stage) != active.end()) {
        continue;
      }
      active.push_back(stage);
      result.push_back(OfStage(Op::kUnshard, stage));
    }
    for (const size_t end = UnitEnd(row, i); i < end; ++i) {
      result.push_back(row[i]);
    }
  }
  evict_all_but({});
  return result;
}

Row AddReductions(const Row& row, int num_stages) {
  const auto contributes = [](const CommAction& action) {
    return action.op == Op::kBackward || action.op == Op::kBackwardWeight;
  };
  std::vector<int64_t> left(num_stages, 0);
  for (const CommAction& action : row) {
    if (contributes(action)) left[action.stage] += action.num_microbatches;
  }
  Row result;
  result.reserve(row.size() + 1);
  for (size_t i = 0; i < row.size();) {
    const size_t begin = i;
    const size_t end = UnitEnd(row, i);
    for (; i < end; ++i) result.push_back(row[i]);
    for (size_t k = begin; k < end; ++k) {
      if (!contributes(row[k])) continue;
      left[row[k].stage] -= row[k].num_microbatches;
      if (left[row[k].stage] == 0) {
        result.push_back(OfStage(Op::kReduceGradient, row[k].stage));
      }
    }
  }
  return result;
}

// The transfer of a pass's output; to_rank is -1 if no other rank needs it.
struct Transfer {
  CommAction send, receive;
  int to_rank;
};

Transfer TransferOf(const Schedule& schedule, int rank,
                    const CommAction& action) {
  const bool forward = action.op == Op::kForward;
  if (!forward && !MakesGradient(action.op)) return {{}, {}, -1};
  const int to = action.stage + (forward ? 1 : -1);
  if (to < 0 || to >= schedule.num_stages) return {{}, {}, -1};
  const int to_rank = schedule.rank_of(to, action.microbatch);
  if (to_rank == rank) return {{}, {}, -1};
  CommAction send = action;
  send.with_next = false;
  CommAction receive = send;
  send.op = forward ? Op::kSendForward : Op::kSendBackward;
  receive.op = forward ? Op::kReceiveForward : Op::kReceiveBackward;
  receive.stage = to;
  return {send, receive, to_rank};
}

// Ranks take turns in ascending order. Each places its next action if
// everything that this needs has been placed. A waiting rank is skipped until
// its receive is placed; it then continues in the same round if its turn is
// still to come.
class Turns {
 public:
  Turns(const Schedule& schedule, std::vector<Row> rows)
      : schedule_(schedule),
        rows_(std::move(rows)),
        next_(rows_.size(), 0),
        waits_(rows_.size(), false),
        result_(rows_.size()) {
    const size_t cells = static_cast<size_t>(schedule.num_stages) *
                         schedule.total_microbatches();
    is_ready_[0].assign(cells, false);
    is_ready_[1].assign(cells, false);
  }

  // Returns false if ranks wait for each other.
  bool Run() {
    for (size_t rank = 0; rank < rows_.size(); ++rank) {
      result_[rank].reserve(2 * rows_[rank].size());
      if (!rows_[rank].empty()) round_.push(static_cast<int>(rank));
    }
    size_t finished = rows_.size() - round_.size();
    while (!round_.empty()) {
      while (!round_.empty()) {
        const int rank = round_.top();
        round_.pop();
        if (!CanPlace(rank)) {
          waits_[rank] = true;
          continue;
        }
        Place(rank);
        if (next_[rank] == rows_[rank].size()) {
          ++finished;
        } else {
          next_round_.push_back(rank);
        }
      }
      for (int rank : next_round_) round_.push(rank);
      next_round_.clear();
    }
    return finished == rows_.size();
  }

  std::vector<Row> result() && { return std::move(result_); }

 private:
  size_t Cell(int stage, int microbatch) const {
    return static_cast<size_t>(stage) * schedule_.total_microbatches() +
           microbatch;
  }

  bool IsReady(const CommAction& action) const {
    const bool forward = action.op == Op::kForward;
    if (!forward && !MakesGradient(action.op)) return true;
    const int last = schedule_.num_stages - 1;
    if (action.stage == (forward ? 0 : last)) return true;
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      if (!is_ready_[forward ? 0 : 1][Cell(action.stage, k)]) return false;
    }
    return true;
  }

  bool CanPlace(int rank) const {
    const Row& row = rows_[rank];
    const size_t end = UnitEnd(row, next_[rank]);
    for (size_t i = next_[rank]; i < end; ++i) {
      if (!IsReady(row[i])) return false;
    }
    return true;
  }

  void Place(int rank) {
    const Row& row = rows_[rank];
    const size_t begin = next_[rank];
    const size_t end = UnitEnd(row, begin);
    for (size_t i = begin; i < end; ++i) result_[rank].push_back(row[i]);
    for (size_t i = begin; i < end; ++i) Deliver(rank, row[i]);
    next_[rank] = end;
  }

  void Deliver(int rank, const CommAction& action) {
    const bool forward = action.op == Op::kForward;
    if (!forward && !MakesGradient(action.op)) return;
    const int to = action.stage + (forward ? 1 : -1);
    if (to < 0 || to >= schedule_.num_stages) return;
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      is_ready_[forward ? 0 : 1][Cell(to, k)] = true;
    }
    const Transfer transfer = TransferOf(schedule_, rank, action);
    if (transfer.to_rank < 0) return;
    result_[rank].push_back(transfer.send);
    result_[transfer.to_rank].push_back(transfer.receive);
    if (!waits_[transfer.to_rank]) return;
    waits_[transfer.to_rank] = false;
    if (transfer.to_rank > rank) {
      round_.push(transfer.to_rank);
    } else {
      next_round_.push_back(transfer.to_rank);
    }
  }

  const Schedule& schedule_;
  std::vector<Row> rows_;
  std::vector<size_t> next_;  // [rank]
  std::vector<bool> waits_;   // [rank]
  // [forward, backward][stage][microbatch]: the pass's input has been placed.
  std::vector<bool> is_ready_[2];
  std::vector<Row> result_;
  std::priority_queue<int, std::vector<int>, std::greater<int>> round_;
  std::vector<int> next_round_;
};

}  // namespace

absl::StatusOr<CommProgram> LowerSchedule(const Schedule& schedule,
                                          const LoweringOptions& options) {
  CommProgram passes = WithoutTransfers(schedule);
  for (Row& row : passes.ranks) {
    if (options.merge_backward) row = Merged(row);
    if (options.max_active_stages > 0) {
      row = AddSharding(row, options.max_active_stages);
    }
    if (options.reduce_gradients && !schedule.forward_only) {
      row = AddReductions(row, schedule.num_stages);
    }
  }
  Turns turns(schedule, std::move(passes.ranks));
  if (!turns.Run()) {
    RETURN_IF_ERROR(CheckExecutable(schedule));
    return absl::InternalError("the lowering is deadlocked");
  }
  return CommProgram{std::move(turns).result()};
}

Schedule MergeBackwards(Schedule schedule) {
  CommProgram passes = WithoutTransfers(schedule);
  for (Row& row : passes.ranks) row = Merged(row);
  schedule.rank_actions = PassesOf(passes);
  return schedule;
}

CommProgram LowerInProgramOrder(const Schedule& schedule) {
  CommProgram program;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const std::vector<Action>& actions = schedule.rank_actions[rank];
    Row& row = program.ranks.emplace_back();
    row.reserve(3 * actions.size());
    Row pending;  // sends of a pair's first action
    for (size_t i = 0; i < actions.size(); ++i) {
      const CommAction action = FromAction(actions[i]);
      const auto add_receive = [&](const CommAction& pass) {
        const bool forward = pass.op == Op::kForward;
        if (!forward && !MakesGradient(pass.op)) return;
        const int from = pass.stage + (forward ? -1 : 1);
        if (from < 0 || from >= schedule.num_stages ||
            schedule.rank_of(from, pass.microbatch) == rank) {
          return;
        }
        CommAction receive = pass;
        receive.with_next = false;
        receive.op = forward ? Op::kReceiveForward : Op::kReceiveBackward;
        row.push_back(receive);
      };
      // Both actions of a pair start together, so the second's input is also
      // received before them.
      if (i == 0 || !actions[i - 1].overlaps_next) {
        add_receive(action);
        if (action.with_next && i + 1 < actions.size()) {
          add_receive(FromAction(actions[i + 1]));
        }
      }
      row.push_back(action);
      const Transfer transfer = TransferOf(schedule, rank, action);
      if (transfer.to_rank >= 0) pending.push_back(transfer.send);
      if (action.with_next) continue;
      row.insert(row.end(), pending.begin(), pending.end());
      pending.clear();
    }
  }
  return program;
}

}  // namespace weir::schedules
