// SPDX-License-Identifier: Apache-2.0
// ZB-V (Qi et al., Zero Bubble Pipeline Parallelism, 2024, section 6): two
// stages per rank in a V, so all ranks need the same memory and the loss is on
// the first rank. A greedy order: rows of passes, with weight gradients in the
// gaps.
#include <algorithm>
#include <limits>
#include <optional>

#include "schedules/limits.h"
#include "schedules/systems/generators.h"
#include "schedules/systems/pass_placer.h"
#include "schedules/systems/zero_bubble_costs.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kZeroBubbleVName = "zb-v";

struct ZeroBubbleVChoices {
  // Until the first microbatch returns, a rank runs forwards that end in time.
  // False: as many as there are slots.
  bool warms_up_by_time;
  // Kinds of gaps that get a W if they would make the rank the busiest. Gaps
  // before an I of the outbound stage always do.
  bool before_inputs_of_way_back;
  bool before_forwards;
};

class ZeroBubbleVAttempt {
 public:
  // `allowance`: span up to which each rank may be idle without harm, in
  // addition to the longest span so far; may be empty.
  ZeroBubbleVAttempt(const ScheduleSpec& spec, const std::vector<int>& route,
                     double memory_limit, const ZeroBubbleVChoices& choices,
                     const std::vector<double>& allowance)
      : num_ranks_(spec.num_ranks),
        num_microbatches_(spec.num_microbatches),
        num_slots_(2 * memory_limit),
        choices_(choices),
        allowance_(allowance),
        placer_(spec, route, memory_limit) {}

  // Returns false if the rounds are incompatible with the warm-up: a pass would
  // precede one that it waits for, or find no free slot.
  bool Run() {
    FillUntilFirstReturns();
    FillTheLaterRanks();
    for (int round = 0; fits_ && round < 2 * num_microbatches_; ++round) {
      RoundOfInputs();
      RoundOfForwards();
    }
    for (int rank = 0; rank < num_ranks_; ++rank) {
      while (placer_.HasWeight(rank)) placer_.PutWeight(rank);
    }
    return fits_;
  }

  PassPlacer& placer() { return placer_; }

 private:
  // Return the two stages of a rank.
  static int Out(int rank) { return rank; }
  int Back(int rank) const { return 2 * num_ranks_ - 1 - rank; }

  int num_forwards(int stage) const { return placer_.num(Op::kForward, stage); }
  int num_inputs(int stage) const {
    return placer_.num(Op::kBackwardInput, stage);
  }
  int InFlight(int rank) const {
    return num_forwards(Out(rank)) + num_forwards(Back(rank)) -
           num_inputs(Out(rank)) - num_inputs(Back(rank));
  }

  void Put(Op op, int stage) {
    const int rank = std::min(stage, 2 * num_ranks_ - 1 - stage);
    fits_ = fits_ && placer_.CanPut(op, stage) &&
            (op != Op::kForward || InFlight(rank) + 1 <= num_slots_);
    if (fits_) placer_.Put(op, stage);
  }

  // Runs outbound forwards: as many as end before microbatch 0 returns, or as
  // many as there are slots.
  void FillUntilFirstReturns() {
    for (int rank = 0; rank < num_ranks_; ++rank) {
      Put(Op::kForward, Out(rank));
    }
    for (int rank = num_ranks_ - 1; rank >= 0; --rank) {
      const double arrival = placer_.Arrival(Op::kForward, Back(rank));
      const auto has_time = [&] {
        return placer_.AtMost(
            placer_.free_at(rank) + placer_.duration(Op::kForward, Out(rank)),
            arrival);
      };
      // Each preceding rank needs a slot in both directions.
      while (fits_ && InFlight(rank) + 2 * rank + 2 <= num_slots_ &&
             num_forwards(Out(rank)) < num_microbatches_ &&
             (!choices_.warms_up_by_time || has_time())) {
        for (int r = 0; r <= rank; ++r) Put(Op::kForward, Out(r));
      }
      Put(Op::kForward, Back(rank));
    }
  }

  // Adds rows of forwards, outbound and return alternately, until every rank
  // has as many as the previous one.
  void FillTheLaterRanks() {
    bool is_out = true;
    for (int rank = 1; rank < num_ranks_; ++rank) {
      const int returned_before = num_forwards(Back(rank - 1));
      while (fits_ && (InFlight(rank) < InFlight(rank - 1) ||
                       (num_forwards(Back(rank)) <= returned_before &&
                        returned_before < num_microbatches_))) {
        for (int r = num_ranks_ - 1; r >= rank; --r) {
          const int stage = is_out ? Out(r) : Back(r);
          if (num_forwards(stage) < num_microbatches_) {
            Put(Op::kForward, stage);
          }
        }
        is_out = !is_out;
      }
    }
  }

  // Adds one I on every rank, of the outbound stage if its gradient is
  // available.
  void RoundOfInputs() {
    std::vector<bool> is_out(num_ranks_);
    for (int rank = 0; rank < num_ranks_; ++rank) {
      is_out[rank] = NextInputIsOut(rank);
    }
    for (int rank = num_ranks_ - 1; rank >= 0; --rank) {
      if (is_out[rank]) PutInput(rank, Out(rank), true);
    }
    for (int rank = 0; rank < num_ranks_; ++rank) {
      if (is_out[rank]) continue;
      PutInput(rank, Back(rank), choices_.before_inputs_of_way_back);
    }
  }

  bool NextInputIsOut(int rank) const {
    const int out = num_inputs(Out(rank));
    if (out >= num_inputs(Back(rank))) return false;
    return rank + 1 == num_ranks_ || num_inputs(Out(rank + 1)) > out ||
           num_inputs(Back(rank)) == num_microbatches_;
  }

  void PutInput(int rank, int stage, bool fills_gap) {
    FillGap(Op::kBackwardInput, rank, stage, fills_gap);
    Put(Op::kBackwardInput, stage);
  }

  // Adds one F on every rank that has one, of the return stage if possible.
  void RoundOfForwards() {
    for (int rank = 0; rank < num_ranks_; ++rank) {
      const std::optional<int> stage = NextForward(rank);
      if (!stage) continue;
      placer_.MakeRoomForForward(*stage);
      FillGap(Op::kForward, rank, *stage, choices_.before_forwards);
      Put(Op::kForward, *stage);
    }
  }

  std::optional<int> NextForward(int rank) const {
    const int out = num_forwards(Out(rank));
    const int back = num_forwards(Back(rank));
    if (back == num_microbatches_) return std::nullopt;
    if (back == out) return Out(rank);
    if (rank + 1 == num_ranks_ || num_forwards(Back(rank + 1)) > back) {
      return Back(rank);
    }
    if (out == num_microbatches_) return std::nullopt;
    if (rank == 0 || num_forwards(Out(rank - 1)) > out) return Out(rank);
    return std::nullopt;
  }

  // Puts W into the gap before the stage's next F or I. Fills a gap that is too
  // short only if idling would do harm.
  void FillGap(Op op, int rank, int stage, bool fills_gap) {
    const double arrival = placer_.Arrival(op, stage);
    while (
        placer_.HasWeight(rank) &&
        placer_.AtMost(placer_.free_at(rank) + placer_.NextWeightDuration(rank),
                       arrival)) {
      placer_.PutWeight(rank);
    }
    const double gap = arrival - placer_.free_at(rank);
    if (fills_gap && placer_.HasWeight(rank) && !IsHarmless(rank, gap)) {
      placer_.PutWeight(rank);
    }
  }

  bool IsHarmless(int rank, double gap) const {
    const double longest =
        allowance_.empty() ? placer_.longest_span()
                           : std::max(placer_.longest_span(), allowance_[rank]);
    return placer_.AtMost(placer_.span(rank) + gap, longest);
  }

  int num_ranks_;
  int num_microbatches_;
  double num_slots_;  // activations that a rank may store at a time
  bool fits_ = true;
  ZeroBubbleVChoices choices_;
  const std::vector<double>& allowance_;
  PassPlacer placer_;
};

// Returns the span up to which each rank could have been idle in an attempt if
// it had known its unavoidable idle time in advance.
std::vector<double> AllowanceAfter(const PassPlacer& placer, int num_ranks) {
  std::vector<double> allowance(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    allowance[rank] = placer.longest_span() - placer.idle(rank);
  }
  return allowance;
}

struct Order {
  double span = std::numeric_limits<double>::infinity();
  std::vector<std::vector<Action>> rank_actions;
};

// Repeats attempts with the same choices, each with the idle times of the
// previous one, while the span decreases. Replaces `best` if the result is
// better. Returns false if the choices are infeasible.
bool Improve(const ScheduleSpec& spec, const std::vector<int>& route,
             double memory_limit, const ZeroBubbleVChoices& choices,
             Order* best) {
  // Two or three suffice; the limit guards against slow convergence.
  constexpr int kMaxAttempts = 16;
  std::vector<double> allowance;
  double last_span = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kMaxAttempts; ++i) {
    ZeroBubbleVAttempt attempt(spec, route, memory_limit, choices, allowance);
    if (!attempt.Run()) return false;
    PassPlacer& placer = attempt.placer();
    const double span = placer.longest_span();
    if (!placer.Less(span, last_span)) break;
    last_span = span;
    if (placer.Less(span, best->span)) *best = {span, placer.TakeActions()};
    allowance = AllowanceAfter(placer, spec.num_ranks);
  }
  return true;
}

// Returns the best order of all gap choices; no actions if the warm-up is
// infeasible.
Order BestOrder(const ScheduleSpec& spec, const std::vector<int>& route,
                double memory_limit, bool warms_up_by_time) {
  Order best;
  for (bool before_inputs : {true, false}) {
    for (bool before_forwards : {true, false}) {
      const ZeroBubbleVChoices choices = {warms_up_by_time, before_inputs,
                                          before_forwards};
      // Gaps do not affect feasibility, because the order of F and I is the
      // same.
      if (!Improve(spec, route, memory_limit, choices, &best)) return best;
    }
  }
  return best;
}

bool HasEqualStages(const PassCosts& costs) {
  return std::all_of(costs.stages.begin(), costs.stages.end(),
                     [&](const StagePassCosts& stage) {
                       const StagePassCosts& first = costs.stages.front();
                       return stage.forward == first.forward &&
                              stage.backward_input == first.backward_input &&
                              stage.backward_weight == first.backward_weight;
                     });
}

Schedule GenerateZeroBubbleV(const ScheduleSpec& spec) {
  Schedule schedule = EmptySchedule(kZeroBubbleVName, spec);
  schedule.routes.assign(1, ZigZagRoute(spec));
  Problems problems(
      kZeroBubbleVName);  // stays empty: check() has read the option
  const double memory_limit =
      MemoryLimit(spec, spec.num_ranks, spec.num_ranks, &problems);
  Order best = BestOrder(spec, schedule.routes[0], memory_limit, true);
  if (best.rank_actions.empty() || !HasEqualStages(spec.costs)) {
    // The order by time may be poor or infeasible. Using all slots is always
    // feasible.
    Order full = BestOrder(spec, schedule.routes[0], memory_limit, false);
    if (full.span < best.span) best = std::move(full);
  }
  schedule.rank_actions = std::move(best.rank_actions);
  return schedule;
}

absl::Status CheckZeroBubbleV(const ScheduleSpec& spec) {
  Problems problems(kZeroBubbleVName);
  CheckLimits(spec, &problems, /*num_passes=*/3);
  CheckTwoChunks(spec, &problems);
  CheckOneBatch(spec, &problems);
  CheckCosts(spec, &problems);
  MemoryLimit(spec, spec.num_ranks, spec.num_ranks, &problems);
  return problems.ToStatus();
}

}  // namespace

ScheduleKind ZeroBubbleVKind() {
  return {
      .name = kZeroBubbleVName,
      .aliases = {"zbv", "zero-bubble-v", "zbv-zero-bubble"},
      .paper = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024",
      .constraints = "chunks is 2, num_batches is 1",
      .summary =
          "two stages per rank in a V, order found from the costs, memory of "
          "1F1B on every rank, almost no bubble, flush; one weight version",
      .flush = true,
      .splits_backward = true,
      .uses_costs = true,
      .options =
          {{kMemoryLimit, "pipeline",
            "maximum activations that a rank holds, in microbatches of the "
            "largest stage on each of its chunks; at least pipeline"}},
      .check = CheckZeroBubbleV,
      .generate = GenerateZeroBubbleV};
}

}  // namespace weir::schedules
