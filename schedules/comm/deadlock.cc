// SPDX-License-Identifier: Apache-2.0
#include "schedules/comm/deadlock.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedules/comm/streams.h"

namespace weir::schedules {
namespace {

using Event = Streams::Event;

// Streams whose items are consecutive actions of a rank.
struct Model {
  Streams streams;
  std::vector<Place> first;     // [item] first action
  std::vector<int32_t> length;  // [item] number of actions

  int32_t Add(Place place, int32_t num_actions, double duration) {
    first.push_back(place);
    length.push_back(num_actions);
    return streams.AddItem(duration);
  }
  bool Holds(int32_t item, Place place) const {
    return place.rank == first[item].rank &&
           place.position >= first[item].position &&
           place.position < first[item].position + length[item];
  }
};

// Returns the action in item `other` that item `item` waits for.
using Awaits = std::function<Place(int32_t item, int32_t other)>;

std::vector<Wait> CycleOf(const Model& model, const Streams::Outcome& outcome,
                          const Awaits& awaits) {
  std::vector<Wait> cycle;
  if (!outcome.deadlocked) return cycle;
  for (const Streams::Wait& wait : model.streams.ShortestCycle(outcome)) {
    cycle.push_back({model.first[wait.item], awaits(wait.item, wait.other),
                     model.length[wait.item], wait.event == Event::kPosted});
  }
  const auto lowest = std::min_element(
      cycle.begin(), cycle.end(),
      [](const Wait& a, const Wait& b) { return a.at.rank < b.at.rank; });
  std::rotate(cycle.begin(), lowest, cycle.end());
  return cycle;
}

double DurationOf(Op op, int num_microbatches) {
  if (op == Op::kBackward) return 2.0 * num_microbatches;
  return op <= Op::kBackwardWeight ? 1.0 * num_microbatches : 0.0;
}

// One stream per rank whose items are passes; an overlapped pair is one item.
class ScheduleModel {
 public:
  explicit ScheduleModel(const Schedule& schedule)
      : schedule_(schedule), dependencies_(schedule) {
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      const std::vector<Action>& actions = schedule.rank_actions[rank];
      model_.streams.BeginStream();
      first_.push_back(static_cast<int32_t>(item_of_.size()));
      for (int32_t i = 0; i < std::ssize(actions);) {
        const int32_t length =
            actions[i].overlaps_next && i + 1 < std::ssize(actions) ? 2 : 1;
        double duration = 0;
        for (int32_t k = i; k < i + length; ++k) {
          duration += DurationOf(actions[k].op, actions[k].num_microbatches);
        }
        const int32_t item = model_.Add({rank, i}, length, duration);
        item_of_.insert(item_of_.end(), length, item);
        i += length;
      }
    }
    for (int32_t item = 0; item < model_.streams.num_items(); ++item) {
      ForEachAwaited(item, [&](Place other) {
        const int32_t awaited = item_of_[first_[other.rank] + other.position];
        // Preceding items of the rank are done anyway.
        if (other.rank == model_.first[item].rank && awaited < item) return;
        model_.streams.AddPostDependency(item, awaited, Event::kDone);
      });
    }
  }

  RunOutcome Run() const {
    const Streams::Outcome outcome = model_.streams.Run(/*clock=*/true);
    RunOutcome result;
    result.end = outcome.end;
    result.cycle =
        CycleOf(model_, outcome, [this](int32_t item, int32_t other) {
          Place awaited = model_.first[other];
          ForEachAwaited(item, [&](Place place) {
            if (model_.Holds(other, place)) awaited = place;
          });
          return awaited;
        });
    return result;
  }

 private:
  template <typename Visit>
  void ForEachAwaited(int32_t item, const Visit& visit) const {
    const Place first = model_.first[item];
    for (int32_t i = 0; i < model_.length[item]; ++i) {
      const Place place = {first.rank, first.position + i};
      const Action& action = schedule_.rank_actions[place.rank][place.position];
      for (Place other : dependencies_.Awaited(action, place)) visit(other);
    }
  }

  const Schedule& schedule_;
  const Dependencies dependencies_;
  Model model_;
  std::vector<int32_t> first_;    // [rank] index into item_of_
  std::vector<int32_t> item_of_;  // [action]
};

class ProgramModel {
 public:
  ProgramModel(const CommProgram& program, const Links& links,
               TransferRule rule)
      : program_(program), links_(links), rule_(rule) {
    item_of_.assign(links.first.back(), -1);
    for (int rank = 0; rank < num_ranks(); ++rank) {
      model_.streams.BeginStream();
      if (rule != TransferRule::kOneStream) {
        AddItems(rank, [](Op) { return true; });
        continue;
      }
      AddItems(rank, [](Op op) { return !IsTransfer(op); });
      model_.streams.BeginStream();
      AddItems(rank, [](Op op) { return IsTransfer(op); });
    }
    for (int32_t item = 0; item < model_.streams.num_items(); ++item) {
      const Place first = model_.first[item];
      for (int32_t i = 0; i < model_.length[item]; ++i) {
        AddDependencies(item, links_.first[first.rank] + first.position + i,
                        program_.ranks[first.rank][first.position + i]);
      }
    }
  }

  RunOutcome Run(bool clock) const {
    const Streams::Outcome outcome = model_.streams.Run(clock);
    RunOutcome result;
    result.end = outcome.end;
    result.cycle =
        CycleOf(model_, outcome, [this](int32_t item, int32_t other) {
          Place awaited = model_.first[other];
          const int32_t begin = IdOf(model_.first[item]);
          for (int32_t id = begin; id < begin + model_.length[item]; ++id) {
            for (int32_t met : {links_.partner[id], links_.local[id]}) {
              if (met < 0 || item_of_[met] != other) continue;
              awaited = links_.PlaceOf(met);
            }
          }
          return awaited;
        });
    if (clock && result.cycle.empty()) FindHeld(outcome, &result);
    return result;
  }

 private:
  int num_ranks() const { return static_cast<int>(program_.ranks.size()); }
  int32_t IdOf(Place place) const {
    return links_.first[place.rank] + place.position;
  }

  template <typename Wanted>
  void AddItems(int rank, const Wanted& wanted) {
    const std::vector<CommAction>& actions = program_.ranks[rank];
    for (int32_t i = 0; i < std::ssize(actions);) {
      int32_t end = i + 1;
      double duration = DurationOf(actions[i].op, actions[i].num_microbatches);
      while (end < std::ssize(actions) && actions[end - 1].with_next) {
        duration += DurationOf(actions[end].op, actions[end].num_microbatches);
        ++end;
      }
      if (wanted(actions[i].op)) {
        const int32_t item = model_.Add({rank, i}, end - i, duration);
        std::fill_n(item_of_.begin() + links_.first[rank] + i, end - i, item);
      }
      i = end;
    }
  }

  void Post(int32_t item, int32_t id) {
    if (id < 0) return;
    const int32_t other = item_of_[id];
    // Precedes it in its own stream, or is in the same item.
    const bool is_near = model_.first[other].rank == model_.first[item].rank &&
                         rule_ != TransferRule::kOneStream;
    if (other == item || (is_near && other < item)) return;
    model_.streams.AddPostDependency(item, other, Event::kDone);
  }

  void AddDependencies(int32_t item, int32_t id, const CommAction& action) {
    if (!IsTransfer(action.op)) {
      Post(item, links_.partner[id]);
      Post(item, links_.local[id]);
      return;
    }
    Post(item, links_.local[id]);
    const int32_t met = links_.partner[id];
    if (met < 0 || item_of_[met] == item) return;
    if (rule_ == TransferRule::kBuffered && IsSend(action.op)) return;
    model_.streams.AddEndDependency(item, item_of_[met], Event::kPosted);
  }

  // Finds the send that waits longest, after its data is computed, for the
  // receive before it on the stream.
  void FindHeld(const Streams::Outcome& outcome, RunOutcome* result) const {
    for (int32_t item = 1; item < model_.streams.num_items(); ++item) {
      const Place at = model_.first[item];
      const Place before = model_.first[item - 1];
      const int32_t id = IdOf(at);
      if (at.rank != before.rank || links_.local[id] < 0) continue;
      const Op op = program_.ranks[at.rank][at.position].op;
      const Op op_before = program_.ranks[before.rank][before.position].op;
      if (!IsSend(op) || !IsTransfer(op_before) || IsSend(op_before)) continue;
      const double held = outcome.done_at[item - 1] -
                          outcome.done_at[item_of_[links_.local[id]]];
      if (held <= result->held) continue;
      result->held = held;
      result->held_send = at;
      result->held_by = before;
    }
  }

  const CommProgram& program_;
  const Links& links_;
  const TransferRule rule_;
  Model model_;
  std::vector<int32_t> item_of_;  // [action]
};

}  // namespace

RunOutcome RunSchedule(const Schedule& schedule) {
  return ScheduleModel(schedule).Run();
}

RunOutcome RunProgram(const CommProgram& program, const Links& links,
                      TransferRule rule, bool clock) {
  return ProgramModel(program, links, rule).Run(clock);
}

std::string CycleText(const CommProgram& program,
                      const std::vector<Wait>& cycle) {
  // A long cycle is cut, because its first waits show the problem.
  constexpr size_t kMaxShown = 16;
  const auto name = [&](Place place) {
    return ToString(program.ranks[place.rank][place.position]);
  };
  std::vector<std::string> waits;
  for (size_t i = 0; i < cycle.size() && i < kMaxShown; ++i) {
    const Wait& wait = cycle[i];
    std::string what = name(wait.at);
    for (int32_t k = 1; k < wait.batch; ++k) {
      absl::StrAppend(&what, "+", name({wait.at.rank, wait.at.position + k}));
    }
    waits.push_back(
        absl::StrCat("rank ", wait.at.rank, " waits at position ",
                     wait.at.position, " (", what, ") for ", name(wait.awaited),
                     " at position ", wait.awaited.position, " of rank ",
                     wait.awaited.rank, wait.to_begin ? " to start" : ""));
  }
  if (cycle.size() > kMaxShown) {
    waits.push_back(absl::StrCat("and ", cycle.size() - kMaxShown, " more"));
  }
  return absl::StrJoin(waits, "; ");
}

absl::Status CheckExecutable(const Schedule& schedule) {
  const RunOutcome outcome = RunSchedule(schedule);
  if (outcome.cycle.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "deadlock: ", CycleText(WithoutTransfers(schedule), outcome.cycle)));
}

}  // namespace weir::schedules
