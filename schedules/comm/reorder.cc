// SPDX-License-Identifier: Apache-2.0
#include "schedules/comm/reorder.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weir::schedules {
namespace {

constexpr int kMaxMoves = 6;
// Limits of the search, on tries and on actions visited.
constexpr int64_t kMaxTries = 100'000;
constexpr int64_t kMaxWork = 10'000'000;

struct Candidate {
  Move move;
  int32_t beyond = 0;  // positions beyond those that the cycle requires
  int32_t distance = 0;
};

void AddMoves(const CommProgram& program, int32_t rank, int32_t waiting,
              int32_t awaited, std::vector<Candidate>* moves) {
  const auto add = [&](int32_t from, int32_t to, int32_t beyond, bool swaps) {
    moves->push_back({{{rank, from}, to, swaps}, beyond, std::abs(from - to)});
  };
  const int32_t size = static_cast<int32_t>(program.ranks[rank].size());
  for (int32_t to = waiting; to >= 0; --to) {
    add(awaited, to, waiting - to, false);
  }
  for (int32_t to = awaited; to < size; ++to) {
    add(waiting, to, to - awaited, false);
  }
  add(awaited, waiting, 0, true);
}

std::vector<Candidate> MovesOf(const CommProgram& program,
                               const std::vector<Wait>& cycle) {
  std::vector<Candidate> moves;
  for (const Wait& wait : cycle) {
    for (const Wait& other : cycle) {
      // The awaited action's rank waits at another action before it.
      if (other.at.rank != wait.awaited.rank ||
          other.at.position >= wait.awaited.position) {
        continue;
      }
      AddMoves(program, wait.awaited.rank, other.at.position,
               wait.awaited.position, &moves);
    }
  }
  std::stable_sort(moves.begin(), moves.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return std::pair(a.beyond, a.distance) <
                            std::pair(b.beyond, b.distance);
                   });
  return moves;
}

// Returns true if the move would separate a pair or a batch.
bool TearsApart(const CommProgram& program, const Move& move) {
  const std::vector<CommAction>& row = program.ranks[move.from.rank];
  const auto is_bound = [&](int32_t i) {
    return row[i].with_next || (i > 0 && row[i - 1].with_next);
  };
  return is_bound(move.from.position) || is_bound(move.to);
}

std::string TextOf(const CommProgram& program, const Move& move) {
  const std::vector<CommAction>& row = program.ranks[move.from.rank];
  const std::string moved = ToString(row[move.from.position]);
  const std::string there = ToString(row[move.to]);
  if (move.swaps) {
    return absl::StrCat("swap ", there, " at position ", move.to, " and ",
                        moved, " at position ", move.from.position, " of rank ",
                        move.from.rank);
  }
  return absl::StrCat("move ", moved, " of rank ", move.from.rank,
                      " from position ", move.from.position, " to ", move.to,
                      move.to < move.from.position ? ", before " : ", after ",
                      there);
}

std::string TextOf(CommProgram program, const std::vector<Move>& moves) {
  std::string text;
  for (const Move& move : moves) {
    absl::StrAppend(&text, text.empty() ? "" : "; then ",
                    TextOf(program, move));
    ApplyMove(move, &program);
  }
  return text;
}

// Returns an FNV-1a hash. A collision loses one try.
uint64_t HashOf(const CommProgram& program) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](uint64_t value) {
    hash = (hash ^ value) * 0x100000001b3;
  };
  for (const std::vector<CommAction>& row : program.ranks) {
    mix(row.size());
    for (const CommAction& action : row) {
      mix(static_cast<uint64_t>(action.op));
      mix(static_cast<uint32_t>(action.stage));
      mix(static_cast<uint32_t>(action.microbatch));
    }
  }
  return hash;
}

// A changed program that still deadlocks.
struct State {
  std::vector<Move> moves;
  std::vector<Wait> cycle;
};

class Search {
 public:
  // `far`: also tries positions beyond those that the cycle requires.
  Search(const CommProgram& program, const FindCycle& find_cycle, bool far)
      : program_(program), find_cycle_(find_cycle), far_(far) {
    int64_t num_actions = 1;
    for (const auto& row : program.ranks) num_actions += std::ssize(row);
    tries_ = std::min(kMaxTries, kMaxWork / num_actions);
    seen_.insert(HashOf(program));
  }

  Reordering Run(const std::vector<Wait>& cycle, int max_moves) {
    std::vector<State> level = {{{}, cycle}};
    while (found_.moves.empty() && !found_.was_cut &&
           found_.num_moves < max_moves && !level.empty()) {
      ++found_.num_moves;
      std::vector<State> next;
      for (const State& state : level) {
        if (!Expand(state, &next)) break;
      }
      level = std::move(next);
    }
    if (!found_.moves.empty()) found_.text = TextOf(program_, found_.moves);
    return std::move(found_);
  }

 private:
  // Returns false once the search is over.
  bool Expand(const State& state, std::vector<State>* next) {
    CommProgram changed = program_;
    for (const Move& move : state.moves) ApplyMove(move, &changed);
    for (const Candidate& candidate : MovesOf(changed, state.cycle)) {
      if (!far_ && candidate.beyond > 0) break;
      const Move& move = candidate.move;
      if (TearsApart(changed, move)) continue;
      if (tries_-- <= 0) {
        found_.was_cut = true;
        return false;
      }
      std::vector<CommAction> row = changed.ranks[move.from.rank];
      ApplyMove(move, &changed);
      Try(changed, state, move, next);
      changed.ranks[move.from.rank] = std::move(row);
      if (!found_.moves.empty()) return false;
    }
    return true;
  }

  void Try(const CommProgram& changed, const State& state, const Move& move,
           std::vector<State>* next) {
    if (!seen_.insert(HashOf(changed)).second) return;
    std::optional<std::vector<Wait>> cycle = find_cycle_(changed);
    if (!cycle) return;
    std::vector<Move> moves = state.moves;
    moves.push_back(move);
    if (cycle->empty()) {
      found_.moves = std::move(moves);
    } else {
      next->push_back({std::move(moves), *std::move(cycle)});
    }
  }

  const CommProgram& program_;
  const FindCycle& find_cycle_;
  const bool far_;
  int64_t tries_ = 0;
  std::unordered_set<uint64_t> seen_;
  Reordering found_;
};

}  // namespace

void ApplyMove(const Move& move, CommProgram* program) {
  std::vector<CommAction>& row = program->ranks[move.from.rank];
  const auto from = row.begin() + move.from.position;
  const auto to = row.begin() + move.to;
  if (move.swaps) {
    std::iter_swap(from, to);
  } else if (to < from) {
    std::rotate(to, from, from + 1);
  } else {
    std::rotate(from, from + 1, to + 1);
  }
}

Reordering FindReordering(const CommProgram& program,
                          const std::vector<Wait>& cycle,
                          const FindCycle& find_cycle) {
  // Search only the required positions first. The number of moves found limits
  // the search of all positions.
  Reordering near = Search(program, find_cycle, false).Run(cycle, kMaxMoves);
  if (near.moves.size() == 1) return near;
  const int max_moves =
      near.moves.empty() ? kMaxMoves : static_cast<int>(near.moves.size()) - 1;
  Reordering far = Search(program, find_cycle, true).Run(cycle, max_moves);
  return far.moves.empty() && !near.moves.empty() ? near : far;
}

}  // namespace weir::schedules
