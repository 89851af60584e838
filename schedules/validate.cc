// SPDX-License-Identifier: Apache-2.0
#include "schedules/validate.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "schedules/limits.h"
#include "schedules/replay.h"

namespace weir {
namespace {

// A broken generator breaks every action: past this many, more lines say less.
constexpr int kMaxProblems = 20;

constexpr std::array<Op, 4> kOps = {Op::kForward, Op::kBackward,
                                    Op::kBackwardInput, Op::kBackwardWeight};

// Problems of single actions, cut after kMaxProblems.
class ActionProblems {
 public:
  explicit ActionProblems(Problems* problems) : problems_(problems) {}
  ~ActionProblems() {
    if (count_ <= kMaxProblems) return;
    problems_->Add("", absl::StrCat("and ", count_ - kMaxProblems, " more"));
  }
  ActionProblems(const ActionProblems&) = delete;
  ActionProblems& operator=(const ActionProblems&) = delete;

  // The parts are put together only while they are shown.
  template <typename... Parts>
  void Add(const Parts&... parts) {
    if (++count_ <= kMaxProblems) problems_->Add("", absl::StrCat(parts...));
  }

 private:
  Problems* problems_;
  int64_t count_ = 0;
};

int64_t NumActions(const Schedule& schedule) {
  int64_t num_actions = 0;
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    num_actions += std::ssize(actions);
  }
  return num_actions;
}

int64_t NumCells(const Schedule& schedule) {
  return static_cast<int64_t>(schedule.num_stages) * schedule.num_batches *
         schedule.num_microbatches;
}

void CheckCounts(const Schedule& schedule, Problems* problems) {
  problems->CheckRange("num_ranks", schedule.num_ranks, 1, kMaxRanks);
  problems->CheckRange("num_stages", schedule.num_stages, 1, kMaxActions);
  problems->CheckRange("num_microbatches", schedule.num_microbatches, 1,
                       kMaxActions);
  problems->CheckRange("num_batches", schedule.num_batches, 1, kMaxActions);
  problems->CheckRange("weights.microbatches_per_update",
                       schedule.weights.microbatches_per_update, 1,
                       kMaxActions);
  problems->CheckRange("weights.delay_updates", schedule.weights.delay_updates,
                       0, kMaxActions);
  if (schedule.flush && schedule.num_batches > 1) {
    problems->Add("num_batches", absl::StrCat("is ", schedule.num_batches,
                                              ", expected 1 with a flush"));
  }
}

void CheckPlacement(const Schedule& schedule, Problems* problems) {
  const int64_t num_placed = std::ssize(schedule.stage_rank);
  const int64_t num_rows = std::ssize(schedule.rank_actions);
  if (num_placed != schedule.num_stages) {
    problems->Add("stage_rank", absl::StrCat("has ", num_placed,
                                             " stages, expected num_stages, ",
                                             schedule.num_stages));
  }
  if (num_rows != schedule.num_ranks) {
    problems->Add("rank_actions",
                  absl::StrCat("has ", num_rows, " ranks, expected num_ranks, ",
                               schedule.num_ranks));
  }
  if (!problems->empty()) return;
  ActionProblems shown(problems);
  std::vector<bool> is_used(schedule.num_ranks);
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    const int rank = schedule.stage_rank[stage];
    if (rank >= 0 && rank < schedule.num_ranks) {
      is_used[rank] = true;
    } else {
      shown.Add("stage_rank[", stage, "] is ", rank, ", expected 0 to ",
                schedule.num_ranks - 1);
    }
  }
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    if (!is_used[rank]) shown.Add("rank ", rank, " holds no stage");
  }
}

// The tables of the later checks have a row per stage and microbatch: refuse
// claims that the actions cannot fill before memory is taken for them.
void CheckSize(const Schedule& schedule, Problems* problems) {
  const int64_t num_actions = NumActions(schedule);
  constexpr int64_t kAlwaysFits = 1'000'000;
  const double num_cells = static_cast<double>(schedule.num_stages) *
                           schedule.num_microbatches * schedule.num_batches;
  if (num_actions > kMaxActions) {
    problems->Add("", absl::StrCat("has ", num_actions,
                                   " actions, expected at most ", kMaxActions));
  }
  if (num_cells <= static_cast<double>(std::max(num_actions, kAlwaysFits))) {
    return;
  }
  problems->Add(
      "",
      absl::StrCat("has ", num_actions, " actions, expected 2 ", "for each of ",
                   schedule.num_stages, " stages x ", schedule.num_microbatches,
                   " microbatches x ", schedule.num_batches, " batches"));
}

// Which of F, B, I and W have been seen, one bit per op, by stage and
// microbatch.
using SeenTable = std::vector<uint8_t>;

uint8_t Bit(Op op) { return static_cast<uint8_t>(1U << static_cast<int>(op)); }

std::string Where(const Schedule& schedule, int rank, int64_t position) {
  return absl::StrCat("rank ", rank, " position ", position, ": ",
                      ToString(schedule.rank_actions[rank][position]));
}

// Why an action cannot stand where it does, given those before it; or null.
const char* OrderProblem(Op op, uint8_t seen) {
  if (seen & Bit(op)) return " comes a second time";
  if (op != Op::kForward && !(seen & Bit(Op::kForward))) {
    return " comes before its forward";
  }
  if (op == Op::kBackwardWeight && !(seen & Bit(Op::kBackwardInput))) {
    return " comes before its input gradient (I)";
  }
  const bool is_half = op == Op::kBackwardInput || op == Op::kBackwardWeight;
  const uint8_t halves = Bit(Op::kBackwardInput) | Bit(Op::kBackwardWeight);
  if ((is_half && (seen & Bit(Op::kBackward))) ||
      (op == Op::kBackward && (seen & halves))) {
    return " repeats a backward that B or I has done";
  }
  return nullptr;
}

SeenTable CheckActions(const Schedule& schedule, ActionProblems* problems) {
  const int total = schedule.total_microbatches();
  SeenTable seen(NumCells(schedule));
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const std::vector<Action>& actions = schedule.rank_actions[rank];
    for (int64_t position = 0; position < std::ssize(actions); ++position) {
      const Action& action = actions[position];
      if (action.stage < 0 || action.stage >= schedule.num_stages ||
          action.microbatch < 0 || action.microbatch >= total) {
        problems->Add(Where(schedule, rank, position), " is outside the ",
                      schedule.num_stages, " stages x ", total,
                      " microbatches");
        continue;
      }
      if (schedule.stage_rank[action.stage] != rank) {
        problems->Add(Where(schedule, rank, position), " is of stage ",
                      action.stage, ", which rank ",
                      schedule.stage_rank[action.stage], " holds");
        continue;
      }
      uint8_t& cell =
          seen[static_cast<size_t>(action.stage) * total + action.microbatch];
      if (const char* problem = OrderProblem(action.op, cell)) {
        problems->Add(Where(schedule, rank, position), problem);
      }
      cell |= Bit(action.op);
    }
  }
  return seen;
}

// What a complete cell lacks, such as "F and B"; empty when nothing.
std::string Missing(uint8_t seen) {
  std::string missing;
  auto need = [&](Op op) {
    if (seen & Bit(op)) return;
    const char letter = Letter(op);
    absl::StrAppend(&missing, missing.empty() ? "" : " and ",
                    absl::string_view(&letter, 1));
  };
  const uint8_t halves = Bit(Op::kBackwardInput) | Bit(Op::kBackwardWeight);
  need(Op::kForward);
  if (seen & Bit(Op::kBackward)) return missing;
  if ((seen & halves) == 0) {
    need(Op::kBackward);
  } else {
    need(Op::kBackwardInput);
    need(Op::kBackwardWeight);
  }
  return missing;
}

void CheckComplete(const Schedule& schedule, const SeenTable& seen,
                   ActionProblems* problems) {
  const int total = schedule.total_microbatches();
  constexpr uint8_t kFused = 0b0011;
  constexpr uint8_t kSplit = 0b1101;
  for (size_t cell = 0; cell < seen.size(); ++cell) {
    if (seen[cell] == kFused || seen[cell] == kSplit) continue;
    const std::string missing = Missing(seen[cell]);
    if (missing.empty()) continue;
    problems->Add("stage ", cell / total, " microbatch ", cell % total,
                  " has no ", missing);
  }
}

// Where every rank stands once nothing can run any more.
struct Standstill {
  const Schedule& schedule;
  std::vector<int32_t> num_run;  // [rank]

  bool IsBlocked(int rank) const {
    return num_run[rank] < std::ssize(schedule.rank_actions[rank]);
  }
  const Action& Blocked(int rank) const {
    return schedule.rank_actions[rank][num_run[rank]];
  }
  // REQUIRES: IsBlocked(rank).
  int Awaits(int rank) const {
    return schedule.stage_rank[AwaitedAction(schedule, Blocked(rank))->stage];
  }
};

// Every blocked rank waits for one rank, so the cycles share no rank: following
// the waits from each rank finds them all.
std::vector<int> ShortestCycle(const Standstill& standstill) {
  const int num_ranks = standstill.schedule.num_ranks;
  std::vector<int> walk_of(num_ranks, -1);  // the walk that reached the rank
  std::vector<int> shortest;
  for (int first = 0; first < num_ranks; ++first) {
    if (!standstill.IsBlocked(first)) continue;
    int rank = first;
    while (walk_of[rank] < 0) {
      walk_of[rank] = first;
      rank = standstill.Awaits(rank);
    }
    if (walk_of[rank] != first) continue;
    std::vector<int> cycle;
    for (int next = rank; cycle.empty() || next != rank;
         next = standstill.Awaits(next)) {
      cycle.push_back(next);
    }
    if (shortest.empty() || cycle.size() < shortest.size()) shortest = cycle;
  }
  std::rotate(shortest.begin(),
              std::min_element(shortest.begin(), shortest.end()),
              shortest.end());
  return shortest;
}

// The awaited action as the schedule has it: I where the backward is split.
std::string AwaitedText(const Standstill& standstill, int rank) {
  const Schedule& schedule = standstill.schedule;
  const Action awaited = *AwaitedAction(schedule, standstill.Blocked(rank));
  const int other = schedule.stage_rank[awaited.stage];
  const std::vector<Action>& actions = schedule.rank_actions[other];
  const auto found = std::find_if(
      actions.begin() + standstill.num_run[other], actions.end(),
      [&](const Action& action) {
        return action.stage == awaited.stage &&
               action.microbatch == awaited.microbatch &&
               (action.op == Op::kForward) == (awaited.op == Op::kForward) &&
               action.op != Op::kBackwardWeight;
      });
  if (found == actions.end()) return ToString(awaited);
  return absl::StrCat(ToString(*found), " at position ",
                      found - actions.begin(), " of rank ", other);
}

absl::Status Deadlock(const Standstill& standstill) {
  // A long cycle is cut: its first waits show what went wrong.
  constexpr size_t kMaxShown = 16;
  const std::vector<int> cycle = ShortestCycle(standstill);
  std::vector<std::string> waits;
  for (size_t i = 0; i < cycle.size() && i < kMaxShown; ++i) {
    const int rank = cycle[i];
    waits.push_back(absl::StrCat("rank ", rank, " waits at position ",
                                 standstill.num_run[rank], " (",
                                 ToString(standstill.Blocked(rank)), ") for ",
                                 AwaitedText(standstill, rank)));
  }
  if (cycle.size() > kMaxShown) {
    waits.push_back(absl::StrCat("and ", cycle.size() - kMaxShown, " more"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("deadlock: ", absl::StrJoin(waits, "; ")));
}

absl::Status CheckExecutable(const Schedule& schedule) {
  const Standstill standstill = {schedule,
                                 Replay(schedule, [](int, int32_t) {})};
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    if (standstill.IsBlocked(rank)) return Deadlock(standstill);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateSchedule(const Schedule& schedule) {
  Problems problems(schedule.name);
  CheckCounts(schedule, &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  CheckPlacement(schedule, &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  CheckSize(schedule, &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  {
    ActionProblems shown(&problems);
    const SeenTable seen = CheckActions(schedule, &shown);
    CheckComplete(schedule, seen, &shown);
  }
  RETURN_IF_ERROR(problems.ToStatus());
  return CheckExecutable(schedule);
}

}  // namespace weir
