// SPDX-License-Identifier: Apache-2.0
#include "schedules/dependencies.h"

#include <algorithm>
#include <deque>

namespace weir::schedules {

Dependencies::Dependencies(const Schedule& schedule)
    : schedule_(schedule), total_(schedule.total_microbatches()) {
  const size_t cells = static_cast<size_t>(schedule.num_stages) * total_;
  positions_[kForwards].assign(cells, -1);
  positions_[kGradients].assign(cells, -1);
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    for (int32_t position = 0; position < std::ssize(actions); ++position) {
      const Action& action = actions[position];
      if (action.op == Op::kBackwardWeight) continue;
      std::vector<int32_t>& table = positions_[TableOf(action.op)];
      if (table.empty()) table.assign(cells, -1);
      std::fill_n(table.begin() + Cell(action.stage, action.microbatch),
                  action.num_microbatches, position);
    }
  }
  if (schedule.resident_activations == 0 || positions_[kOffloads].empty()) {
    return;
  }
  room_.resize(schedule.num_ranks);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) FindRoom(rank);
}

Dependencies::Table Dependencies::TableOf(Op op) {
  switch (op) {
    case Op::kForward:
      return kForwards;
    case Op::kOffload:
      return kOffloads;
    case Op::kReload:
      return kReloads;
    case Op::kBackward:
    case Op::kBackwardInput:
    case Op::kBackwardWeight:
    case WEIR_UNSCHEDULED_OPS:
      break;
  }
  return kGradients;
}

// Walks the rank as if every offload ended only when its memory is needed. This
// gives the waits that are always necessary.
void Dependencies::FindRoom(int rank) {
  const std::vector<Action>& actions = schedule_.rank_actions[rank];
  room_[rank].assign(actions.size(), -1);
  std::deque<int32_t> leaving;  // offloads that have not freed memory yet
  int resident = 0;
  for (int32_t position = 0; position < std::ssize(actions); ++position) {
    const Action& action = actions[position];
    if (action.op == Op::kOffload) {
      leaving.push_back(position);
    } else if (MakesInputGradient(action.op)) {
      resident -= action.num_microbatches;
    } else if (action.op == Op::kForward || action.op == Op::kReload) {
      resident += action.num_microbatches;
      while (resident > schedule_.resident_activations && !leaving.empty()) {
        room_[rank][position] = leaving.front();
        resident -= actions[leaving.front()].num_microbatches;
        leaving.pop_front();
      }
    }
  }
}

Place Dependencies::Find(Op op, int stage, int microbatch) const {
  const std::vector<int32_t>& table = positions_[TableOf(op)];
  if (table.empty()) return {};
  const int32_t position = table[Cell(stage, microbatch)];
  if (position < 0) return {};
  return {schedule_.rank_of(stage, microbatch), position};
}

namespace {

// Adds each action only once, because it may cover several microbatches.
void AddOnce(Place place, Dependencies::Places* places) {
  if (!place.exists()) return;
  if (std::find(places->begin(), places->end(), place) != places->end()) return;
  places->push_back(place);
}

}  // namespace

Dependencies::Places Dependencies::Awaited(const Action& action,
                                           Place place) const {
  Places places;
  const bool forward = action.op == Op::kForward;
  if (forward || MakesInputGradient(action.op)) {
    const int from = action.stage + (forward ? -1 : 1);
    if (from >= 0 && from < schedule_.num_stages) {
      for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
        AddOnce(Find(action.op, from, k), &places);
      }
    }
  }
  if (MakesInputGradient(action.op) && !positions_[kReloads].empty()) {
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      AddOnce(Find(Op::kReload, action.stage, k), &places);
    }
  }
  if (action.op == Op::kReload) {
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      AddOnce(Find(Op::kOffload, action.stage, k), &places);
    }
  }
  if (!room_.empty() && room_[place.rank][place.position] >= 0) {
    AddOnce({place.rank, room_[place.rank][place.position]}, &places);
  }
  return places;
}

Dependencies::Places Dependencies::Released(const Action& action) const {
  Places places;
  const bool forward = action.op == Op::kForward;
  if (!forward && !MakesInputGradient(action.op)) return places;
  const int to = action.stage + (forward ? 1 : -1);
  if (to < 0 || to >= schedule_.num_stages) return places;
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    AddOnce(Find(action.op, to, k), &places);
  }
  return places;
}

int32_t Dependencies::ComputeBefore(Place place) const {
  const std::vector<Action>& actions = schedule_.rank_actions[place.rank];
  int32_t position = place.position - 1;
  while (position >= 0 && !IsCompute(actions[position].op)) --position;
  return position;
}

int32_t Dependencies::ChannelBefore(Place place) const {
  const std::vector<Action>& actions = schedule_.rank_actions[place.rank];
  const Op op = actions[place.position].op;
  int32_t position = place.position - 1;
  while (position >= 0 && actions[position].op != op) --position;
  return position;
}

}  // namespace weir::schedules
