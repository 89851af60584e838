// SPDX-License-Identifier: Apache-2.0
// V-Half and V-Min of Pipeline Parallelism with Controllable Memory (Qi et al.,
// 2024): the passes of a microbatch form a block on a grid of slots. The block
// is repeated every six slots, and weight gradients fill the free slots. The
// time for which the block keeps an activation determines the memory. Finally,
// both ends of the pipeline are tightened without more memory.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <tuple>

#include "schedules/limits.h"
#include "schedules/systems/generators.h"
#include "schedules/systems/zero_bubble_costs.h"
#include "schedules/walk.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kHalf = "v-half";
constexpr absl::string_view kMin = "v-min";

// F, I and W of two stages: a rank's passes for one microbatch.
constexpr int kPeriod = 6;

// The slots of microbatch 0 on a rank: forwards of both stages, then their
// input gradients in reverse.
struct Block {
  int forward_out, forward_back, input_back, input_out;
};

// Two slots per rank in one direction of the V, one in the other. The pause for
// an even number of ranks avoids conflicts between repeated blocks.
Block HalfBlock(int rank, int num_ranks) {
  const int pause = num_ranks % 2 == 0 ? 3 : 0;
  return {2 * rank, 3 * num_ranks - rank - 2,
          3 * num_ranks + pause + 2 * rank - 1,
          6 * num_ranks + pause - rank - 2};
}

// One slot per rank in both directions.
Block MinBlock(int rank, int num_ranks) {
  const int pause = num_ranks % 3 == 0 ? 2 : 0;
  return {rank, 2 * num_ranks - rank - 1, 2 * num_ranks + pause + rank,
          4 * num_ranks + pause - rank - 1};
}

using BlockOf = Block (*)(int rank, int num_ranks);
using Row = std::vector<Action>;  // the slots of one rank

constexpr Action kFree = {Op::kForward, -1, -1};
bool IsFree(const Action& action) { return action.stage < 0; }

struct Grid {
  int num_microbatches = 0;
  std::vector<Row> rows;  // [rank][slot]
  std::array<std::vector<int>, 2>
      slots;  // of every F and I, [stage * m + microbatch]

  int& SlotOf(Op op, int stage, int microbatch) {
    return slots[op == Op::kForward ? 0 : 1]
                [static_cast<size_t>(stage) * num_microbatches + microbatch];
  }
  int num_stages() const { return 2 * static_cast<int>(rows.size()); }
};

void PlaceAction(const Action& action, int rank, int slot, Grid* grid) {
  Row& row = grid->rows[rank];
  if (slot >= std::ssize(row)) row.resize(slot + 1, kFree);
  row[slot] = action;
  if (action.op != Op::kBackwardWeight) {
    grid->SlotOf(action.op, action.stage, action.microbatch) = slot;
  }
}

Grid EmptyGrid(const ScheduleSpec& spec) {
  Grid grid;
  grid.num_microbatches = spec.num_microbatches;
  grid.rows.resize(spec.num_ranks);
  for (auto& slots : grid.slots) {
    slots.assign(
        2 * static_cast<size_t>(spec.num_ranks) * spec.num_microbatches, -1);
  }
  return grid;
}

Grid RepeatBlock(const ScheduleSpec& spec, BlockOf block_of) {
  Grid grid = EmptyGrid(spec);
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    const Block block = block_of(rank, spec.num_ranks);
    const int out = rank;
    const int back = 2 * spec.num_ranks - 1 - rank;
    for (int k = spec.num_microbatches - 1; k >= 0; --k) {
      const int begin = kPeriod * k;
      PlaceAction({Op::kBackwardInput, out, k}, rank, begin + block.input_out,
                  &grid);
      PlaceAction({Op::kBackwardInput, back, k}, rank, begin + block.input_back,
                  &grid);
      PlaceAction({Op::kForward, back, k}, rank, begin + block.forward_back,
                  &grid);
      PlaceAction({Op::kForward, out, k}, rank, begin + block.forward_out,
                  &grid);
    }
  }
  return grid;
}

// Puts each W into the first free slot after its I, oldest first, and the
// remaining ones at the end.
void FillWithWeights(Row* row) {
  std::vector<Action> waiting;
  size_t next = 0;
  for (Action& slot : *row) {
    if (slot.op == Op::kBackwardInput) {
      waiting.push_back({Op::kBackwardWeight, slot.stage, slot.microbatch});
    } else if (IsFree(slot) && next < waiting.size()) {
      slot = waiting[next++];
    }
  }
  row->insert(row->end(), waiting.begin() + next, waiting.end());
}

// Returns the first slot in which the dependencies of an action allow it.
int ReadySlot(const Action& action, Grid* grid) {
  const auto [op, stage, k] =
      std::tuple(action.op, action.stage, action.microbatch);
  if (op == Op::kBackwardWeight) {
    return grid->SlotOf(Op::kBackwardInput, stage, k) + 1;
  }
  int last = k > 0 ? grid->SlotOf(op, stage, k - 1) : -1;
  if (op == Op::kForward && stage > 0) {
    last = std::max(last, grid->SlotOf(op, stage - 1, k));
  } else if (op == Op::kBackwardInput) {
    last = std::max(last, stage + 1 < grid->num_stages()
                              ? grid->SlotOf(op, stage + 1, k)
                              : grid->SlotOf(Op::kForward, stage, k));
  }
  return last + 1;
}

// Returns the number of activations on a rank after each slot, from F to W.
std::vector<int> Held(const Row& row) {
  std::vector<int> held;
  held.reserve(row.size());
  int now = 0;
  for (const Action& action : row) {
    if (!IsFree(action)) {
      now += action.op == Op::kForward;
      now -= action.op == Op::kBackwardWeight;
    }
    held.push_back(now);
  }
  return held;
}

// Moves the action in `slot` to the first free slot from `earliest` on. Returns
// its new slot.
int MoveForward(int rank, int earliest, int slot, Grid* grid) {
  Row& row = grid->rows[rank];
  for (int to = earliest; to < slot; ++to) {
    if (!IsFree(row[to])) continue;
    PlaceAction(row[slot], rank, to, grid);
    row[slot] = kFree;
    return to;
  }
  return slot;
}

// Moves an action to the earliest slot that its inputs and the memory allow.
void Tighten(int rank, int slot, int max_held, std::vector<int>* held,
             Grid* grid) {
  const Op op = grid->rows[rank][slot].op;
  int earliest = ReadySlot(grid->rows[rank][slot], grid);
  if (op == Op::kForward) {
    int room = slot;
    while (room > earliest && (*held)[room - 1] < max_held) --room;
    earliest = room;
  }
  const int to = MoveForward(rank, earliest, slot, grid);
  const int change =
      op == Op::kForward ? 1 : (op == Op::kBackwardWeight ? -1 : 0);
  for (int i = to; i < slot; ++i) (*held)[i] += change;
}

// Tightens the warm-up, until microbatch 0 has returned to rank 0, and the
// cool-down, after rank 0 has started its last microbatch. In between the
// blocks interlock.
void TightenEnds(int max_held, Grid* grid) {
  const int last = grid->num_microbatches - 1;
  const int begin = grid->SlotOf(Op::kBackwardInput, 0, 0);
  const int end = grid->SlotOf(Op::kForward, 0, last);
  std::vector<std::vector<int>> held;
  int num_slots = 0;
  for (const Row& row : grid->rows) {
    held.push_back(Held(row));
    num_slots = std::max(num_slots, static_cast<int>(row.size()));
  }
  // In order of time, so the dependencies of an action have their final slots.
  for (int slot = 0; slot < num_slots; ++slot) {
    if (slot > begin && slot <= end) continue;
    for (int rank = 0; rank < std::ssize(grid->rows); ++rank) {
      const Row& row = grid->rows[rank];
      if (slot >= std::ssize(row) || IsFree(row[slot])) continue;
      Tighten(rank, slot, max_held, &held[rank], grid);
    }
  }
}

// Returns the grid of an order in which each pass takes one slot and starts as
// early as possible.
Grid Squeezed(const ScheduleSpec& spec, const Schedule& schedule) {
  const WalkTimes times = TimedWalk(schedule, PassCosts());
  Grid grid = EmptyGrid(spec);
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    const std::vector<Action>& actions = schedule.rank_actions[rank];
    for (size_t i = actions.size(); i-- > 0;) {
      PlaceAction(actions[i], rank,
                  static_cast<int>(std::lround(times.start[rank][i])), &grid);
    }
  }
  return grid;
}

// Removes W and moves the input gradients after a rank's last forward to
// earlier slots. This delays no pass: none waits for a W, and no remaining
// forward needs the memory that a W frees.
void AdvanceLastInputs(Grid* grid) {
  std::vector<int> last_forward;
  int num_slots = 0;
  for (Row& row : grid->rows) {
    last_forward.push_back(0);
    for (int slot = 0; slot < std::ssize(row); ++slot) {
      if (row[slot].op == Op::kBackwardWeight) row[slot] = kFree;
      if (!IsFree(row[slot]) && row[slot].op == Op::kForward) {
        last_forward.back() = slot;
      }
    }
    num_slots = std::max(num_slots, static_cast<int>(row.size()));
  }
  const int first = *std::min_element(last_forward.begin(), last_forward.end());
  for (int slot = first; slot < num_slots; ++slot) {
    for (int rank = 0; rank < std::ssize(grid->rows); ++rank) {
      const Row& row = grid->rows[rank];
      if (slot >= std::ssize(row) || IsFree(row[slot]) ||
          row[slot].op != Op::kBackwardInput) {
        continue;
      }
      const int earliest =
          std::max(ReadySlot(row[slot], grid), last_forward[rank] + 1);
      MoveForward(rank, earliest, slot, grid);
    }
  }
}

std::vector<std::vector<Action>> OrderOf(const Grid& grid) {
  std::vector<std::vector<Action>> rank_actions(grid.rows.size());
  for (size_t rank = 0; rank < grid.rows.size(); ++rank) {
    std::remove_copy_if(grid.rows[rank].begin(), grid.rows[rank].end(),
                        std::back_inserter(rank_actions[rank]), IsFree);
  }
  return rank_actions;
}

Schedule GenerateVBlocks(absl::string_view name, const ScheduleSpec& spec,
                         BlockOf block_of, int max_held) {
  Schedule schedule = EmptySchedule(name, spec);
  schedule.routes.assign(1, ZigZagRoute(spec));
  Grid grid = RepeatBlock(spec, block_of);
  for (Row& row : grid.rows) FillWithWeights(&row);
  TightenEnds(max_held, &grid);
  schedule.rank_actions = OrderOf(grid);
  grid = Squeezed(spec, schedule);
  AdvanceLastInputs(&grid);
  for (Row& row : grid.rows) FillWithWeights(&row);
  schedule.rank_actions = OrderOf(grid);
  return schedule;
}

absl::Status CheckVBlocks(absl::string_view name, const ScheduleSpec& spec) {
  Problems problems(name);
  CheckLimits(spec, &problems, /*num_passes=*/3);
  CheckTwoChunks(spec, &problems);
  CheckOneBatch(spec, &problems);
  return problems.ToStatus();
}

constexpr absl::string_view kVBlocksPaper =
    "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024";

}  // namespace

ScheduleKind VHalfKind() {
  return {
      .name = kHalf,
      .aliases = {"vhalf"},
      .paper = kVBlocksPaper,
      .constraints = "chunks is 2, num_batches is 1",
      .summary =
          "two stages per rank in a V, half the memory and half the bubble of "
          "1F1B, flush; one weight version",
      .flush = true,
      .splits_backward = true,
      .check =
          [](const ScheduleSpec& spec) { return CheckVBlocks(kHalf, spec); },
      .generate =
          [](const ScheduleSpec& spec) {
            return GenerateVBlocks(kHalf, spec, HalfBlock,
                                   2 * ((spec.num_ranks + 2) / 2));
          }};
}

ScheduleKind VMinKind() {
  return {.name = kMin,
          .aliases = {"vmin"},
          .paper = kVBlocksPaper,
          .constraints = "chunks is 2, num_batches is 1",
          .summary =
              "two stages per rank in a V, a third of the memory and two "
              "thirds of the bubble of 1F1B, flush; one weight version",
          .flush = true,
          .splits_backward = true,
          .check =
              [](const ScheduleSpec& spec) { return CheckVBlocks(kMin, spec); },
          .generate =
              [](const ScheduleSpec& spec) {
                return GenerateVBlocks(kMin, spec, MinBlock,
                                       2 * ((spec.num_ranks + 4) / 3));
              }};
}

}  // namespace weir::schedules
