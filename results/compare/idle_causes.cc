// SPDX-License-Identifier: Apache-2.0
#include "results/compare/idle_causes.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/intervals.h"

namespace weir::results {
namespace {

// When an input from another rank was computed, sent and received.
struct Arrival {
  double made_seconds = 0, start_seconds = 0, end_seconds = 0;
  int from_rank = IdlePiece::kNone;
};

struct Producer {
  int64_t first_microbatch = 0, last_microbatch = 0;
  int rank = 0;
  double end_seconds = 0;
};

// Finds the inputs of actions.
class Inputs {
 public:
  explicit Inputs(const PipelineEvents& timeline) {
    for (int rank = 0; rank < timeline.num_ranks(); ++rank) {
      for (const TimelineAction& action : timeline.ranks[rank]) {
        Add(rank, action);
      }
    }
    for (auto& [key, producers] : producers_) {
      std::sort(producers.begin(), producers.end(),
                [](const Producer& a, const Producer& b) {
                  return std::tie(a.first_microbatch, a.rank) <
                         std::tie(b.first_microbatch, b.rank);
                });
    }
    for (const TimelineTransfer& t : timeline.transfers) {
      transfers_.emplace(
          std::tuple(t.from_rank, t.gradient, t.stage, int64_t{t.microbatch}),
          &t);
    }
  }

  // Calls `visit` with the arrival of every input from other ranks.
  template <typename Visit>
  void Each(int rank, const TimelineAction& action, const Visit& visit) const {
    if (action.op > Timeline::Actions::BACKWARD_INPUT) return;
    const bool gradient = action.op != Timeline::Actions::FORWARD;
    const int64_t from = int64_t{action.stage} + (gradient ? 1 : -1);
    const auto found = producers_.find(std::pair(gradient, from));
    if (found == producers_.end()) return;
    const int64_t last =
        int64_t{action.microbatch} + action.num_microbatches - 1;
    for (auto at = FirstThatReaches(found->second, action.microbatch);
         at != found->second.end() && at->first_microbatch <= last; ++at) {
      if (at->rank != rank) visit(ArrivalOf(gradient, from, *at));
    }
  }

 private:
  using Producers = std::vector<Producer>;

  void Add(int rank, const TimelineAction& action) {
    if (action.op > Timeline::Actions::BACKWARD_INPUT) return;
    producers_[std::pair(action.op != Timeline::Actions::FORWARD,
                         int64_t{action.stage})]
        .push_back({action.microbatch,
                    int64_t{action.microbatch} + action.num_microbatches - 1,
                    rank, action.end_seconds});
  }

  // Spans of one stage do not overlap.
  static Producers::const_iterator FirstThatReaches(const Producers& producers,
                                                    int64_t microbatch) {
    auto at = std::upper_bound(producers.begin(), producers.end(), microbatch,
                               [](int64_t value, const Producer& producer) {
                                 return value < producer.first_microbatch;
                               });
    while (at != producers.begin() &&
           std::prev(at)->last_microbatch >= microbatch) {
      --at;
    }
    return at;
  }

  Arrival ArrivalOf(bool gradient, int64_t stage,
                    const Producer& producer) const {
    const auto found = transfers_.find(std::tuple(producer.rank, gradient,
                                                  static_cast<int32_t>(stage),
                                                  producer.first_microbatch));
    if (found == transfers_.end()) {
      return {producer.end_seconds, producer.end_seconds, producer.end_seconds,
              producer.rank};
    }
    return {found->second->ready_seconds, found->second->start_seconds,
            found->second->end_seconds, producer.rank};
  }

  // [gradient, stage]
  absl::flat_hash_map<std::pair<bool, int64_t>, Producers> producers_;
  absl::flat_hash_map<std::tuple<int, bool, int32_t, int64_t>,
                      const TimelineTransfer*>
      transfers_;
};

// When the gradients of a step were computed on other ranks.
class Copies {
 public:
  explicit Copies(const PipelineEvents& timeline) : tied_(timeline.tied) {
    for (int rank = 0; rank < timeline.num_ranks(); ++rank) {
      absl::flat_hash_map<int32_t, double> made;  // [stage]
      for (const TimelineAction& action : timeline.ranks[rank]) {
        last_stage_ = std::max(last_stage_, action.stage);
        if (action.op == Timeline::Actions::OPTIMIZER_STEP) {
          const auto last = made.find(action.stage);
          if (last == made.end()) continue;
          made_[std::pair(action.stage, action.microbatch)].emplace_back(
              rank, last->second);
        } else if (action.op != Timeline::Actions::FORWARD &&
                   action.computes()) {
          double& last = made[action.stage];
          last = std::max(last, action.end_seconds);
        }
      }
      for (const TimelineCollective& one : timeline.collectives[rank]) {
        if (one.kind != Timeline::Collectives::GRADIENT_REDUCTION &&
            one.kind != Timeline::Collectives::TIED_REDUCTION) {
          continue;
        }
        double& end = reduced_[std::tuple(rank, one.stage, one.microbatch)];
        end = std::max(end, one.end_seconds);
      }
    }
  }

  // Returns 0 if it waits for no other rank.
  double AwaitedUntil(int rank, const TimelineAction& step) const {
    double until = MadeElsewhere(rank, step.stage, step.microbatch);
    if (tied_ && (step.stage == 0 || step.stage == last_stage_)) {
      until = std::max(until, MadeElsewhere(rank, last_stage_ - step.stage,
                                            step.microbatch));
    }
    const auto reduced =
        reduced_.find(std::tuple(rank, step.stage, step.microbatch));
    return reduced == reduced_.end() ? until : std::max(until, reduced->second);
  }

 private:
  double MadeElsewhere(int rank, int32_t stage, int32_t update) const {
    double until = 0;
    const auto copies = made_.find(std::pair(stage, update));
    if (copies == made_.end()) return until;
    for (const auto& [other, seconds] : copies->second) {
      if (other != rank) until = std::max(until, seconds);
    }
    return until;
  }

  // [stage, update]: (rank, end of the last pass that adds to it)
  absl::flat_hash_map<std::pair<int32_t, int32_t>,
                      std::vector<std::pair<int, double>>>
      made_;
  absl::flat_hash_map<std::tuple<int, int32_t, int32_t>, double> reduced_;
  const bool tied_;
  int32_t last_stage_ = 0;
};

// Intervals that are queried in ascending order.
class Covered {
 public:
  void Add(double begin, double end) { intervals_.emplace_back(end, begin); }
  void Sort() { std::sort(intervals_.begin(), intervals_.end()); }

  // Returns the parts of the intervals in [from, to). Requires: `from` does not
  // decrease from call to call.
  std::vector<Interval> Clip(double from, double to) {
    std::vector<Interval> clipped;
    while (next_ < intervals_.size() && intervals_[next_].first <= from) {
      ++next_;
    }
    for (size_t i = next_; i < intervals_.size(); ++i) {
      const double begin = std::max(intervals_[i].second, from);
      const double end = std::min(intervals_[i].first, to);
      if (end > begin) clipped.push_back({begin, end});
    }
    return clipped;
  }

 private:
  std::vector<std::pair<double, double>> intervals_;  // (end, begin)
  size_t next_ = 0;
};

class Walk {
 public:
  // `pieces`: where to append pieces; null: nowhere.
  Walk(const PipelineEvents& timeline, const Inputs& inputs,
       const Copies& copies, int rank, std::vector<IdlePiece>* pieces)
      : timeline_(timeline),
        inputs_(inputs),
        copies_(copies),
        rank_(rank),
        pieces_(pieces) {
    for (const TimelineAction& action : timeline.ranks[rank]) {
      if (action.computes()) {
        actions_.push_back(&action);
      } else {
        host_.Add(action.start_seconds, action.end_seconds);
      }
    }
    for (const TimelineCollective& one : timeline.collectives[rank]) {
      if (one.kind == Timeline::Collectives::WEIGHT_GATHER) {
        gathers_.Add(one.start_seconds, one.end_seconds);
      }
    }
    host_.Sort();
    gathers_.Sort();
  }

  RankIdle Run() {
    double until = 0;  // busy or accounted for
    for (size_t i = 0; i < actions_.size(); ++i) {
      const TimelineAction& action = *actions_[i];
      if (action.start_seconds > until) {
        Cut(until, i, i == 0 ? &idle_.startup : &idle_.between);
        until = action.start_seconds;
      }
      if (action.end_seconds <= until) continue;
      idle_.busy_seconds += action.end_seconds - until;
      until = action.end_seconds;
    }
    idle_.drain_seconds = timeline_.makespan_seconds - until;
    AddPiece({until, timeline_.makespan_seconds});
    return idle_;
  }

 private:
  // Divides the gap from `from` to the start of action `i`.
  void Cut(double from, size_t i, IdleSeconds* causes) {
    const double to = actions_[i]->start_seconds;
    const int next =
        static_cast<int>(actions_[i] - timeline_.ranks[rank_].data());
    Arrival last;
    double copies = 0;
    for (; i < actions_.size() && actions_[i]->start_seconds == to; ++i) {
      inputs_.Each(rank_, *actions_[i], [&](const Arrival& arrival) {
        if (arrival.end_seconds > last.end_seconds) last = arrival;
      });
      if (actions_[i]->op == Timeline::Actions::OPTIMIZER_STEP) {
        copies = std::max(copies, copies_.AwaitedUntil(rank_, *actions_[i]));
      }
    }
    const auto take = [&](double until, IdleCause cause, int awaited_rank) {
      until = std::min(until, to);
      if (until <= from) return;
      (*causes)[static_cast<int>(cause)] += until - from;
      AddPiece({from, until, cause, next, awaited_rank});
      from = until;
    };
    take(last.made_seconds, IdleCause::kPass, last.from_rank);
    take(last.start_seconds, IdleCause::kQueued, last.from_rank);
    take(last.end_seconds, IdleCause::kWire, last.from_rank);
    take(copies, IdleCause::kCopies, IdlePiece::kNone);
    if (from < to) TakeRest(from, to, next, causes);
  }

  void TakeRest(double from, double to, int next, IdleSeconds* causes) {
    std::vector<Interval> gaps = {{from, to}};
    const size_t first = pieces_ == nullptr ? 0 : pieces_->size();
    // Takes the covered parts of the gaps.
    const auto take = [&](std::vector<Interval> covers, IdleCause cause) {
      if (pieces_ != nullptr) {
        std::vector<Interval> taken = gaps, rest = gaps;
        TakeOut(covers, &rest);
        TakeOut(rest, &taken);
        for (const Interval& gap : taken) {
          AddPiece({gap.begin, gap.end, cause, next});
        }
      }
      (*causes)[static_cast<int>(cause)] += TakeOut(std::move(covers), &gaps);
    };
    take(host_.Clip(from, to), IdleCause::kHost);
    take(gathers_.Clip(from, to), IdleCause::kCopies);
    (*causes)[static_cast<int>(IdleCause::kOther)] += LengthOf(gaps);
    if (pieces_ == nullptr) return;
    for (const Interval& gap : gaps) {
      AddPiece({gap.begin, gap.end, IdleCause::kOther, next});
    }
    std::sort(pieces_->begin() + static_cast<int64_t>(first), pieces_->end(),
              [](const IdlePiece& a, const IdlePiece& b) {
                return a.from_seconds < b.from_seconds;
              });
  }

  void AddPiece(const IdlePiece& piece) {
    if (pieces_ == nullptr || !(piece.to_seconds > piece.from_seconds)) return;
    pieces_->push_back(piece);
  }

  const PipelineEvents& timeline_;
  const Inputs& inputs_;
  const Copies& copies_;
  const int rank_;
  std::vector<IdlePiece>* const pieces_;
  std::vector<const TimelineAction*> actions_;  // that compute
  Covered host_, gathers_;
  RankIdle idle_;
};

double SumOf(const IdleSeconds& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

}  // namespace

absl::string_view Name(IdleCause cause) {
  static constexpr const char* kNames[kNumIdleCauses] = {
      "pass", "queued", "wire", "copies", "host", "other"};
  return kNames[static_cast<int>(cause)];
}

double RankIdle::startup_seconds() const { return SumOf(startup); }
double RankIdle::between_seconds() const { return SumOf(between); }

std::vector<RankIdle> FindIdleCauses(const PipelineEvents& timeline) {
  const Inputs inputs(timeline);
  const Copies copies(timeline);
  std::vector<RankIdle> ranks;
  for (int rank = 0; rank < timeline.num_ranks(); ++rank) {
    ranks.push_back(Walk(timeline, inputs, copies, rank, nullptr).Run());
  }
  return ranks;
}

std::vector<std::vector<IdlePiece>> FindIdlePieces(
    const PipelineEvents& timeline) {
  const Inputs inputs(timeline);
  const Copies copies(timeline);
  std::vector<std::vector<IdlePiece>> pieces(timeline.ranks.size());
  for (int rank = 0; rank < timeline.num_ranks(); ++rank) {
    Walk(timeline, inputs, copies, rank, &pieces[rank]).Run();
  }
  return pieces;
}

RankIdle SumOf(const std::vector<RankIdle>& ranks) {
  RankIdle sum;
  for (const RankIdle& rank : ranks) {
    sum.busy_seconds += rank.busy_seconds;
    sum.drain_seconds += rank.drain_seconds;
    for (int cause = 0; cause < kNumIdleCauses; ++cause) {
      sum.startup[cause] += rank.startup[cause];
      sum.between[cause] += rank.between[cause];
    }
  }
  return sum;
}

TransferTimes TimesOf(const PipelineEvents& timeline,
                      const std::vector<RankIdle>& idle) {
  TransferTimes times;
  times.num_transfers = static_cast<int>(timeline.transfers.size());
  for (const TimelineTransfer& transfer : timeline.transfers) {
    times.bytes += transfer.bytes;
    times.queued_seconds += transfer.start_seconds - transfer.ready_seconds;
    times.wire_seconds += transfer.end_seconds - transfer.start_seconds;
  }
  const RankIdle sum = SumOf(idle);
  times.awaited_pass_seconds = sum.of(IdleCause::kPass);
  times.awaited_queued_seconds = sum.of(IdleCause::kQueued);
  times.awaited_wire_seconds = sum.of(IdleCause::kWire);
  return times;
}

ClockErrors FindClockErrors(const PipelineEvents& timeline) {
  const Inputs inputs(timeline);
  ClockErrors errors;
  for (int rank = 0; rank < timeline.num_ranks(); ++rank) {
    for (const TimelineAction& action : timeline.ranks[rank]) {
      inputs.Each(rank, action, [&](const Arrival& arrival) {
        ++errors.num_inputs;
        const double early = arrival.made_seconds - action.start_seconds;
        if (!(early > 0)) return;
        ++errors.num_early;
        errors.largest_seconds = std::max(errors.largest_seconds, early);
      });
    }
  }
  return errors;
}

}  // namespace weir::results
