// SPDX-License-Identifier: Apache-2.0
#include "schedules/reorder.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace weir {
namespace {

struct Move {
  Place from;
  int32_t to;
  bool swaps;

  int32_t distance() const { return std::abs(from.position - to); }
};

std::vector<Move> MovesOf(const std::vector<Wait>& cycle) {
  std::vector<Move> moves;
  for (const Wait& wait : cycle) {
    for (const Wait& other : cycle) {
      // The rank of the awaited action stands at another, before it.
      if (other.at.rank != wait.awaited.rank ||
          other.at.position >= wait.awaited.position) {
        continue;
      }
      moves.push_back({wait.awaited, other.at.position, false});
      moves.push_back({other.at, wait.awaited.position, false});
      moves.push_back({wait.awaited, other.at.position, true});
    }
  }
  std::stable_sort(
      moves.begin(), moves.end(),
      [](const Move& a, const Move& b) { return a.distance() < b.distance(); });
  return moves;
}

void Apply(const Move& move, CommProgram* program) {
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
                      move.to < move.from.position ? ", before " : ", behind ",
                      there);
}

}  // namespace

std::optional<Reordering> FindReordering(
    const CommProgram& program, const std::vector<Wait>& cycle,
    const std::function<bool(const CommProgram&)>& runs) {
  constexpr int64_t kMaxWork = 5'000'000;  // actions looked at
  int64_t num_actions = 1;
  for (const auto& row : program.ranks) num_actions += std::ssize(row);
  int64_t tries = std::min<int64_t>(200, kMaxWork / num_actions);
  CommProgram changed = program;
  for (const Move& move : MovesOf(cycle)) {
    // A pair or a batch is not torn apart.
    const std::vector<CommAction>& row = program.ranks[move.from.rank];
    const auto is_bound = [&](int32_t i) {
      return row[i].with_next || (i > 0 && row[i - 1].with_next);
    };
    if (is_bound(move.from.position) || is_bound(move.to)) continue;
    if (tries-- <= 0) break;
    Apply(move, &changed);
    if (runs(changed)) {
      return Reordering{move.from, move.to, move.swaps, TextOf(program, move)};
    }
    changed.ranks[move.from.rank] = row;
  }
  return {};
}

}  // namespace weir
