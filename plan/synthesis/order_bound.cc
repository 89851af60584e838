// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/order_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plan/synthesis/order_problem.h"
#include "plan/synthesis/single_rank_bound.h"

namespace weir::plan {
namespace {

// Bounds must allow for the rounding that the limit allows.
// The most states of SingleRankProblem; more take seconds.
constexpr double kMaxSituations = 20'000;

class Bounds {
 public:
  Bounds(const PassTable& table, double enough)
      : table_(table),
        enough_(enough),
        problem_(table.problem()),
        is_span_(problem_.objective == OrderObjective::kSpan),
        limit_(problem_.may_offload ? std::numeric_limits<double>::infinity()
                                    : problem_.memory_limit * (1 + kRounding)) {
    double arrival = 0;
    for (int stage = 0; stage < problem_.num_stages(); ++stage) {
      if (stage > 0) arrival += HopTo(stage);
      arrival_.push_back(arrival);
      arrival += Of(stage).forward;
    }
    back_.resize(problem_.num_stages());
    for (int stage = problem_.num_stages(); stage-- > 0;) {
      back_[stage] = arrival;  // earliest time of a first gradient
      arrival += Input(stage) + (stage > 0 ? HopTo(stage) : 0);
    }
  }

  OrderBound Best() {
    for (int rank = 0; rank < problem_.num_ranks; ++rank) AddRank(rank);
    if (problem_.num_chunks > 1) return best_;
    for (int rank = 0; rank < problem_.num_ranks; ++rank) {
      if (is_span_) AddSpanThrough(rank);
      AddAlone(rank);
    }
    return best_;
  }

 private:
  const schedules::StagePassCosts& Of(int stage) const {
    return problem_.costs.of(stage);
  }
  double HopTo(int stage) const {
    return table_.route()[stage - 1] == table_.route()[stage]
               ? 0
               : problem_.costs.hop;
  }
  double Input(int stage) const {
    if (!problem_.can_split) return Of(stage).fused_backward();
    return std::min(Of(stage).backward_input, Of(stage).fused_backward());
  }
  double Backward(int stage) const {
    if (!problem_.may_fuse(stage)) {
      return Of(stage).backward_input + Of(stage).backward_weight;
    }
    return Of(stage).fused_backward();
  }
  // Returns the time of W, or 0 if it may be fused.
  double Weight(int stage) const {
    return problem_.may_fuse(stage) ? 0 : Of(stage).backward_weight;
  }

  void Add(double value, int rank, absl::string_view reason) {
    if (!(value > best_.value)) return;
    best_ = {value, absl::StrCat("rank ", rank, ": ", reason)};
  }

  // An item that adds `seconds`, holds `bytes` and is available `count` times.
  // MostWithinLimit returns the most seconds of items that fit the limit
  // together.
  struct KnapsackItem {
    double seconds, bytes;
    int count;
  };
  double MostWithinLimit(std::vector<KnapsackItem> things) const {
    const auto worth = [](const KnapsackItem& thing) {
      return thing.bytes > 0 ? thing.seconds / thing.bytes
                             : std::numeric_limits<double>::infinity();
    };
    std::sort(things.begin(), things.end(),
              [&](const KnapsackItem& one, const KnapsackItem& other) {
                return worth(one) > worth(other);
              });
    double left = limit_, seconds = 0;
    for (const KnapsackItem& thing : things) {
      double fit = thing.count;
      if (thing.bytes > 0) fit = std::min(fit, left / thing.bytes);
      // A single kind of item only fits whole.
      if (things.size() == 1) fit = std::floor(fit);
      seconds += fit * thing.seconds;
      left -= fit * thing.bytes;
    }
    return seconds;
  }

  void AddRank(int rank) {
    std::vector<int> stages;
    for (int stage = 0; stage < problem_.num_stages(); ++stage) {
      if (table_.route()[stage] == rank) stages.push_back(stage);
    }
    const int m = problem_.num_microbatches;
    const int first = stages.front(), last = stages.back();
    // For the span, all times are from the rank's first forward.
    const double origin = is_span_ ? arrival_[first] : 0;
    const double head = arrival_[first] - origin;
    double work = 0, urgent = 0, weights = 0, residence = 0, activations = 0;
    double first_back = std::numeric_limits<double>::infinity();
    double tail = first_back;
    std::vector<KnapsackItem> forwards, deferred, held;
    for (int stage : stages) {
      const schedules::StagePassCosts& costs = Of(stage);
      work += m * (costs.forward + Backward(stage));
      urgent += m * (costs.forward + Input(stage));
      weights += m * Weight(stage);
      const double around = back_[stage] + Input(stage) - arrival_[stage];
      residence += m * (costs.activation * around +
                        costs.weight_gradient_inputs * Weight(stage));
      activations += m * costs.activation;
      first_back = std::min(first_back, back_[stage] - origin);
      tail = std::min(tail, InputTail(stage));
      forwards.push_back({costs.forward, costs.activation, m});
      if (!problem_.may_fuse(stage)) {
        deferred.push_back(
            {costs.backward_weight, costs.weight_gradient_inputs, m});
      }
      held.push_back({Backward(stage), costs.activation, m});
    }
    Add(head + work, rank, "its work after the first forward arrives");
    const double waiting = MostWithinLimit(deferred);
    Add(head + urgent + std::max(0.0, weights - waiting) + tail, rank,
        "its work until the last gradient is sent, and the path of that "
        "gradient");

    const double before =
        std::min(MostWithinLimit(forwards), first_back - head);
    Add(first_back + work - before, rank,
        "its forwards until the first gradient returns, then its work");
    if (problem_.may_offload) AddWithOffloads(rank, head);
    if (activations > limit_) {
      std::vector<KnapsackItem> rest = held;
      rest.insert(rest.end(), deferred.begin(), deferred.end());
      const double f = Of(last).forward;
      const double after = f + MostWithinLimit(rest);
      Add(first_back + std::max(0.0, work - before - after) + f +
              ForwardTail(last),
          rank,
          "fill and drain with the microbatches that fit the memory limit");
      Add(head + residence / limit_, rank,
          "the time for which microbatches occupy the limited memory");
      if (stages.size() == 1) {
        const double around = back_[first] + Input(first) - arrival_[first];
        const double slots = std::floor(limit_ / Of(first).activation);
        Add(head + m * around / slots + tail, rank,
            "round trips with as many microbatches as fit the memory limit");
      }
    }
  }

  // Adds the residence bound with offloads. An offloaded activation is on the
  // rank during its forward, offload, reload and gradient; a channel transfers
  // one at a time.
  void AddWithOffloads(int stage, double head) {
    const schedules::StagePassCosts& costs = Of(stage);
    const double limit = problem_.memory_limit * (1 + kRounding);
    if (!std::isfinite(limit) || !(limit > 0)) return;
    const int m = problem_.num_microbatches;
    const double around = back_[stage] + Input(stage) - arrival_[stage];
    const double held = costs.activation * around +
                        costs.weight_gradient_inputs * Weight(stage);
    const double saved =
        costs.activation * std::max(0.0, around - costs.forward -
                                             2 * costs.offload - Input(stage));
    Add(head + m * (held - saved) / limit, stage,
        "the time for which memory that is never offloaded is occupied");
    if (!(costs.offload > 0)) return;
    Add(head + m * held / (limit + saved / costs.offload), stage,
        "the time for which microbatches occupy memory, with as many as "
        "possible on the host");
  }

  // Returns the relaxation of a rank, with the minimum of what the others need.
  // Requires: one stage per rank, so the rank is the stage.
  SingleRankProblem Alone(int rank) const {
    const int last = problem_.num_ranks - 1;
    const schedules::StagePassCosts& costs = Of(rank);
    SingleRankProblem alone;
    alone.num_microbatches = problem_.num_microbatches;
    alone.forward = costs.forward;
    alone.input = costs.backward_input;
    alone.weight = costs.backward_weight;
    alone.fused = costs.fused_backward();
    alone.can_split = problem_.can_split;
    alone.may_fuse = problem_.may_fuse(rank);
    alone.activation = costs.activation;
    alone.weight_inputs = costs.weight_gradient_inputs;
    alone.limit = limit_;
    for (int other = 0; other < rank && !is_span_; ++other) {
      alone.between_arrivals =
          std::max(alone.between_arrivals, Of(other).forward);
    }
    alone.turnaround = back_[rank] - arrival_[rank] - costs.forward;
    if (rank < last) alone.turn = Of(last).forward + Input(last);
    for (int other = rank + 1; other <= last; ++other) {
      const schedules::StagePassCosts& theirs = Of(other);
      alone.forwards_apart = std::max(alone.forwards_apart, theirs.forward);
      alone.gradients_apart = std::max(alone.gradients_apart, Input(other));
      const double each = theirs.forward + Input(other) + Weight(other);
      double waiting = problem_.num_microbatches;
      if (theirs.weight_gradient_inputs > 0) {
        waiting = std::min(waiting,
                           std::floor(limit_ / theirs.weight_gradient_inputs));
      }
      const double left = back_[other] - arrival_[other] - theirs.forward +
                          (waiting - 1) * Weight(other);
      if (each > alone.work || (each == alone.work && left < alone.work_left)) {
        alone.work = each;
        alone.work_left = left;
      }
    }
    return alone;
  }

  void AddAlone(int rank) {
    SingleRankProblem alone = Alone(rank);
    if (SituationsOf(alone) > kMaxSituations) return;
    const double head = is_span_ ? 0 : arrival_[rank];
    alone.tail = InputTail(rank);
    alone.cutoff = enough_ - head;
    Add(head + SingleRankBound(alone), rank,
        "its passes, with all other ranks at their lower bounds");
  }

  // Bounds the span of rank 0: the way to a later rank, all of its gradients,
  // and the way back.
  void AddSpanThrough(int rank) {
    SingleRankProblem alone = Alone(rank);
    if (SituationsOf(alone) > kMaxSituations) return;
    const double there = arrival_[rank] - arrival_[0];
    const double back = back_[0] + Input(0) - back_[rank] - Input(rank);
    alone.until_all_is_done = false;
    alone.tail = back + Weight(0);
    alone.cutoff = enough_ - there;
    Add(there + SingleRankBound(alone), 0,
        absl::StrCat("the path to rank ", rank, ", its passes, and back"));
  }

  // Return a lower bound on the time from the end of the last I, or of an F, of
  // a stage to the end of the batch; for the span, to the end of its rank.
  double InputTail(int stage) const {
    return is_span_ ? Weight(stage)
                    : table_.tail(table_.Number(stage, 0,
                                                schedules::Op::kBackwardInput));
  }
  double ForwardTail(int stage) const {
    if (!is_span_) {
      return table_.tail(table_.Number(stage, 0, schedules::Op::kForward));
    }
    return back_[stage] - arrival_[stage] - Of(stage).forward +
           std::max(Input(stage) + Weight(stage), Backward(stage));
  }

  const PassTable& table_;
  double enough_;
  const OrderProblem& problem_;
  bool is_span_;
  double limit_;
  std::vector<double> arrival_;  // earliest first forward, by stage
  std::vector<double> back_;     // earliest first gradient, by stage
  OrderBound best_;
};

}  // namespace

OrderBound LowerBoundOf(const PassTable& table, double enough) {
  return Bounds(table, enough).Best();
}

}  // namespace weir::plan
