// SPDX-License-Identifier: Apache-2.0
#include "sim/bounds/order_free_bound.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/infinity.h"

namespace weir::sim {
namespace {}  // namespace

OrderFreeBound::OrderFreeBound(const PipelineInputs& inputs,
                               UncontendedCosts* seconds,
                               std::span<const double> step_seconds)
    : in_(inputs),
      schedule_(inputs.schedule),
      uncontended_(*seconds),
      step_seconds_(step_seconds) {
  for (const std::vector<schedules::Action>& actions : schedule_.rank_actions) {
    for (const schedules::Action& action : actions) {
      has_pairs_ |= action.overlaps_next;
      const int span = action.num_microbatches;
      const auto at = std::lower_bound(spans_.begin(), spans_.end(), span);
      if (at == spans_.end() || *at != span) spans_.insert(at, span);
    }
  }
  if (spans_.empty()) spans_ = {1};
  Rank none;
  none.before_seconds = none.after_seconds = none.least_input = kInfinity;
  none.first_stage = schedule_.num_stages;
  ranks_.assign(schedule_.num_ranks, none);
  paths_.resize(schedule_.num_routes());
  for (int route = 0; route < schedule_.num_routes(); ++route) AddRoute(route);
  for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
    if (!schedule_.forward_only) SetPaired(rank);
  }
  if (schedule_.flush && in_.communication.transfers() == BLOCKING) AddSends();
  seconds_ = Longest();
}

int OrderFreeBound::NumMicrobatches(int route) const {
  const int turn = schedule_.microbatches_per_route_turn;
  const int round = turn * schedule_.num_routes();
  const int m = schedule_.num_microbatches;
  if (schedule_.num_routes() == 1) return m;
  return m / round * turn + std::clamp(m % round - route * turn, 0, turn);
}

double OrderFreeBound::MeanMicrobatches(int route) const {
  if (schedule_.flush) return NumMicrobatches(route);
  return static_cast<double>(schedule_.num_microbatches) /
         schedule_.num_routes();
}

double OrderFreeBound::WorkOf(int rank) const {
  if (schedule_.flush) return ranks_[rank].work;
  const int turn = schedule_.microbatches_per_route_turn;
  const int round = turn * schedule_.num_routes();
  const int least = schedule_.num_microbatches / round * turn;
  return ranks_[rank].work * least / MeanMicrobatches(0);
}

PassKind OrderFreeBound::KindOf(int rank, schedules::Op op, int stage,
                                int route, int span) const {
  const int microbatch = schedule_.num_routes() == 1
                             ? 0
                             : route * schedule_.microbatches_per_route_turn;
  const schedules::Action action = {op, stage, microbatch,
                                    static_cast<uint16_t>(span)};
  return {rank, action, std::nullopt};
}

// Returns the time of one microbatch if `span` microbatches are done in one
// action, which together take no longer than one by one.
double OrderFreeBound::OfPass(int rank, schedules::Op op, int stage, int route,
                              int span) {
  const PassKind kind = KindOf(rank, op, stage, route, span);
  return (has_pairs_ ? uncontended_.OfPassOrPair(kind)
                     : uncontended_.OfPass(kind)) /
         span;
}

double OrderFreeBound::InSum(int rank, schedules::Op op, int stage, int route,
                             int span) {
  const PassKind kind = KindOf(rank, op, stage, route, span);
  return (has_pairs_ ? uncontended_.OfShare(kind) : uncontended_.OfPass(kind)) /
         span;
}

void OrderFreeBound::AddRoute(int route) {
  const std::vector<int>& ranks = schedule_.routes[route];
  const double count = MeanMicrobatches(route);
  if (count == 0) return;
  const auto num_stages = static_cast<size_t>(schedule_.num_stages);
  MicrobatchPath& way = paths_[route];
  way.hops.resize(num_stages);
  way.hops_back.resize(num_stages);
  way.after_seconds.resize(num_stages);
  double ahead = 0;
  std::vector<double> forwards;
  const size_t first_part = parts_.size();
  for (int s = 0; s < schedule_.num_stages; ++s) {
    const int rank = ranks[s];
    if (s > 0 && ranks[s - 1] != rank) {
      way.hops[s - 1] =
          uncontended_.OfHop({ranks[s - 1], rank, s - 1, true, 1});
      ahead += way.hops[s - 1];
    }
    Rank& on = ranks_[rank];
    on.before_seconds = std::min(on.before_seconds, ahead);
    on.first_stage = std::min(on.first_stage, s);
    forwards.push_back(OfPass(rank, schedules::Op::kForward, s, route, 1));
    ahead += forwards.back();
    way.forward_ends.push_back(ahead);
    const double seconds =
        InSum(rank, schedules::Op::kForward, s, route, spans_.back());
    on.work += count * seconds;
    parts_.push_back({rank, s, count, seconds});
  }
  way.seconds = ahead;
  if (schedule_.forward_only) return AddPathsOut(route, forwards);
  double back = 0;
  for (int s = 0; s < schedule_.num_stages; ++s) {
    const int rank = ranks[s];
    if (s > 0 && ranks[s - 1] != rank) {
      way.hops_back[s] = uncontended_.OfHop({rank, ranks[s - 1], s, false, 1});
      back += way.hops_back[s];
    }
    way.after_seconds[s] = back;
    ranks_[rank].after_seconds = std::min(ranks_[rank].after_seconds, back);
    way.inputs.push_back(AddBackward(&parts_[first_part + s], route));
    back += way.inputs.back();
  }
  way.seconds += back;
}

void OrderFreeBound::AddPathsOut(int route,
                                 const std::vector<double>& forwards) {
  const std::vector<int>& ranks = schedule_.routes[route];
  double out = 0;
  for (int s = schedule_.num_stages - 1; s >= 0; --s) {
    out += paths_[route].hops[s];
    ranks_[ranks[s]].after_seconds =
        std::min(ranks_[ranks[s]].after_seconds, out);
    out += forwards[s];
  }
}

// Returns the shortest time of the input gradient.
double OrderFreeBound::AddBackward(Part* part, int route) {
  const int rank = part->rank, s = part->stage;
  const StageCosts& stage = in_.costs.of(in_.placement().index(0, rank, 0), s);
  const bool splits = stage.seconds.backward_parts.has_value();
  const int span = spans_.back();
  const auto of = [&](schedules::Op op, int n) {
    return OfPass(rank, op, s, route, n);
  };
  const auto in_sum = [&](schedules::Op op) {
    return InSum(rank, op, s, route, span);
  };
  double least = in_sum(schedules::Op::kBackward);
  double input = least;
  double alone = of(schedules::Op::kBackward, 1);
  part->last = of(schedules::Op::kBackward, span) * span;
  if (splits) {
    const double input_alone = in_sum(schedules::Op::kBackwardInput);
    input = std::min(input, input_alone);
    least =
        std::min(least, input_alone + in_sum(schedules::Op::kBackwardWeight));
    alone = std::min(alone, of(schedules::Op::kBackwardInput, 1));
    part->last =
        std::max(part->last, of(schedules::Op::kBackwardWeight, span) * span);
  }
  part->gradients = least;
  Rank& on = ranks_[rank];
  on.work += part->count * least;
  on.weights += part->count * (least - input);
  on.least_input = std::min(on.least_input, input);
  return alone;
}

// Lowers the bound if an overlapped pair of a forward and a backward is cheaper
// than the two in sequence. There are as many forwards as input gradients, so
// an unpaired forward leaves an input gradient unpaired; the cheapest case is
// counted.
void OrderFreeBound::SetPaired(int rank) {
  Rank& on = ranks_[rank];
  double paired = 0;
  bool pays = false;
  for (const Part& part : parts_) {
    if (part.rank != rank) continue;
    const double both = part.forward + on.least_input;
    const std::optional<double> given =
        in_.costs.of(in_.placement().index(0, rank, 0), part.stage)
            .seconds.overlapped;
    pays |= given.has_value();
    paired += part.count * std::min(given.value_or(both), both);
  }
  on.pairs = pays || has_pairs_;
  if (!pays || paired >= on.work) return;
  on.work = paired;
  on.weights = 0;
}

// Sends to one rank use the same links. At most two outputs are sent after the
// last pass begins: its own and that of the previous pass.
void OrderFreeBound::AddSends() {
  struct Sends {
    double all = 0, largest = 0;
  };
  std::map<std::pair<int, int>, Sends> sends;
  for (int route = 0; route < schedule_.num_routes(); ++route) {
    const std::vector<int>& ranks = schedule_.routes[route];
    const int count = NumMicrobatches(route);
    if (count == 0) continue;
    const auto add = [&](int stage, int to_stage) {
      const int from = ranks[stage], to = ranks[to_stage];
      if (from == to) return;
      double least = kInfinity;
      Sends& pair = sends[{from, to}];
      for (const int span : spans_) {
        const double seconds =
            uncontended_.OfMove({from, to, stage, to_stage > stage, span});
        least = std::min(least, seconds / span);
        pair.largest = std::max(pair.largest, seconds);
      }
      pair.all += count * least;
    };
    for (int s = 0; s + 1 < schedule_.num_stages; ++s) {
      add(s, s + 1);
      if (!schedule_.forward_only) add(s + 1, s);
    }
  }
  for (const auto& [pair, sent] : sends) {
    double& most = ranks_[pair.first].sends;
    most = std::max(most, sent.all - 2 * sent.largest);
  }
}

double OrderFreeBound::Longest() const {
  double longest = 0;
  for (const MicrobatchPath& way : paths_) {
    if (schedule_.flush) longest = std::max(longest, way.seconds);
  }
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    if (rank.before_seconds == kInfinity) continue;  // no microbatch comes here
    const double all = rank.work + rank.sends + step_seconds_[i];
    if (!schedule_.flush) {
      longest = std::max(longest, all);
      continue;
    }
    longest = std::max(longest, rank.before_seconds + all);
    longest = std::max(longest, EndOfInputs(rank) + rank.after_seconds);
  }
  return longest;
}

// The last input gradients of ranks with later stages pass through it, too.
double OrderFreeBound::EndOfPasses(int rank) const {
  const Rank& on = ranks_[rank];
  if (on.before_seconds == kInfinity) return 0;
  double end = on.before_seconds + on.work + on.sends;
  if (schedule_.num_routes() > 1 || schedule_.forward_only) return end;
  for (const Rank& other : ranks_) {
    if (other.before_seconds == kInfinity ||
        other.first_stage <= on.first_stage)
      continue;
    end = std::max(end,
                   EndOfInputs(other) + other.after_seconds - on.after_seconds);
  }
  return end;
}

double OrderFreeBound::StartOfLastGradient(int rank, int stage) const {
  const Rank& on = ranks_[rank];
  double work = 0, last = 0;
  for (const Part& part : parts_) {
    if (part.rank != rank || part.stage != stage) continue;
    work += part.count * (part.forward + part.gradients);
    last = std::max(last, part.last);
  }
  if (work == 0) return 0;
  double start =
      on.before_seconds + (on.pairs ? 0 : std::max(work - last, 0.0));
  if (schedule_.num_routes() > 1) return start;
  const MicrobatchPath& way = paths_[0];
  for (const Rank& other : ranks_) {
    if (other.before_seconds == kInfinity || other.first_stage <= stage)
      continue;
    start = std::max(start, EndOfInputs(other) + other.after_seconds -
                                way.after_seconds[stage] - way.inputs[stage]);
  }
  return start;
}

OrderFreeBound::HeadTail OrderFreeBound::TransferHeadTail(int route, int stage,
                                                          bool forward) const {
  const MicrobatchPath& way = paths_[route];
  // The last backward of a microbatch is in the first stage; the steps of that
  // rank follow.
  const double end = way.seconds + LastSteps(route);
  HeadTail around;
  if (forward) {
    around.before_seconds = way.forward_ends[stage];
    around.after_seconds = end - way.forward_ends[stage] - way.hops[stage];
  } else {
    around.before_seconds = way.seconds - way.after_seconds[stage];
    around.after_seconds = end - around.before_seconds - way.hops_back[stage];
  }
  return around;
}

OrderFreeBound::HeadTail OrderFreeBound::TransferHeadTailAnywhere(
    int route, int stage, bool forward) const {
  const MicrobatchPath& way = paths_[route];
  const auto sum = [](const std::vector<double>& hops, int from, int to) {
    return std::accumulate(hops.begin() + from, hops.begin() + to, 0.0);
  };
  const int num_stages = schedule_.num_stages;
  const double passes = way.seconds - sum(way.hops, 0, num_stages) -
                        sum(way.hops_back, 0, num_stages);
  HeadTail around;
  if (forward) {
    around.before_seconds = way.forward_ends[stage] - sum(way.hops, 0, stage);
  } else {
    around.before_seconds =
        passes - (way.after_seconds[stage] - sum(way.hops_back, 0, stage + 1));
  }
  around.after_seconds = passes + LastSteps(route) - around.before_seconds;
  return around;
}

}  // namespace weir::sim
