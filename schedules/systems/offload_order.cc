// SPDX-License-Identifier: Apache-2.0
#include "schedules/systems/offload_order.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace weir::schedules {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kOffloadOrderRounding =
    1e-9;  // relative error of sums of memory

// State of a rank while its actions are ordered. Times are those of TimedWalk:
// an action starts when everything it waits for has ended, not when it was
// chosen.
struct Rank {
  int stage = 0;
  const StagePassCosts* costs = nullptr;
  int most_in_flight = 0;
  int most_resident = 0;
  int first_deferred = 0;  // first microbatch with a deferred W
  int most_kept = 0;       // maximum number of activations not offloaded
  bool offloads = false;

  int forwards = 0, backwards = 0, weights = 0;  // next microbatch of each
  // Activations on the rank if offloads end only when their memory is needed,
  // as counted by Dependencies: a safe count for all times.
  int resident = 0;
  int kept = 0;                // those that are never offloaded
  std::deque<double> leaving;  // ends of the offloads still counted
  std::deque<int> on_host;     // offloaded and not yet reloaded
  double compute_free = 0, offload_free = 0, reload_free = 0;
  std::vector<double> forward_ready, gradient_ready;  // [microbatch]
  std::vector<double> offload_end;  // [microbatch], < 0: not offloaded
  std::vector<double> reload_end;   // [microbatch]
  std::vector<int> pending;         // queue of microbatches without W
  size_t first_pending = 0;

  std::vector<Action> actions;
  double first_start = kNever;

  int num_pending() const {
    return static_cast<int>(pending.size() - first_pending);
  }
};

double Held(const Rank& rank, int activations, int weight_gradients) {
  return rank.costs->activation * activations +
         rank.costs->weight_gradient_inputs * weight_gradients;
}

class Greedy {
 public:
  Greedy(const ScheduleSpec& spec, double limit, const OffloadPolicy& policy)
      : spec_(spec),
        limit_(limit * LargestHeld(spec) * (1 + kOffloadOrderRounding)),
        policy_(policy),
        ranks_(spec.num_ranks) {
    SetUpRanks(limit);
  }

  OffloadOrder Run();

 private:
  using Event = std::pair<double, int>;  // time at which a rank may continue

  void SetUpRanks(double limit);
  int Whole(double microbatches) const;
  double Fill(double seconds, double each) const;
  void LimitFlight(double round_trip, int most_resident, Rank* rank) const;
  void DeferWeights(double drain, Rank* rank) const;
  void SizeTables(Rank* rank) const;
  double RoomAt(const Rank& rank) const;
  double ForwardAt(const Rank& rank) const;
  double BackwardAt(const Rank& rank) const;
  bool FitsSplit(const Rank& rank) const;
  bool Stays(const Rank& rank) const;
  void TakeRoom(Rank* rank);
  bool IsDue(const Rank& rank, int microbatch, double now) const;
  void PlaceReloads(Rank* rank, double now);
  bool Step(Rank* rank, double now);
  double Place(Rank* rank, Op op, int microbatch, double start);
  void Forward(Rank* rank, double start);
  void Backward(Rank* rank, double start);
  void Weight(Rank* rank);
  // Does nothing if the rank is computing at that time, because it is woken at
  // the end of its pass.
  void WakeUp(double time, int r) {
    if (time >= ranks_[r].compute_free) events_.emplace(time, r);
  }

  const ScheduleSpec& spec_;
  const double limit_;  // of a rank's memory, in the unit of the costs
  const OffloadPolicy& policy_;
  std::vector<Rank> ranks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  int64_t num_offloads_ = 0;
};

void Greedy::SetUpRanks(double limit) {
  const int p = spec_.num_ranks;
  const int most_resident = std::max(1, Whole(limit) - policy_.reserved);
  for (int r = 0; r < p; ++r) {
    ranks_[r].stage = r;
    ranks_[r].costs = &spec_.costs.of(r);
  }
  // Time from the end of the rank's first forward to the resulting gradient.
  double round_trip = 0;
  for (int r = p; r-- > 0;) {
    const StagePassCosts& costs = *ranks_[r].costs;
    LimitFlight(round_trip, most_resident, &ranks_[r]);
    round_trip +=
        costs.forward + 2 * spec_.costs.hop +
        (policy_.split ? costs.backward_input : costs.fused_backward());
  }
  // Time from the rank's last input gradient to the end of the batch.
  double drain = ranks_[0].costs->backward_weight;
  for (Rank& rank : ranks_) {
    DeferWeights(drain, &rank);
    SizeTables(&rank);
    drain += rank.costs->backward_input + spec_.costs.hop;
  }
}

int Greedy::Whole(double microbatches) const {
  return static_cast<int>(std::min<double>(
      microbatches * (1 + kOffloadOrderRounding), spec_.num_microbatches));
}

// Returns the number of passes that fill the time, up to all microbatches.
double Greedy::Fill(double seconds, double each) const {
  const double most = spec_.num_microbatches;
  return each > 0
             ? std::min(std::ceil(seconds / each - kOffloadOrderRounding), most)
             : most;
}

// All offloading ranks share the one limit that a Schedule has.
void Greedy::LimitFlight(double round_trip, int most_resident,
                         Rank* rank) const {
  const double least = spec_.num_ranks - rank->stage;
  const double most =
      std::max(least, 1 + Fill(round_trip, rank->costs->forward));
  const double in_flight = policy_.warmup < 0
                               ? least * (1 + policy_.warmup)
                               : least + policy_.warmup * (most - least);
  rank->most_in_flight = static_cast<int>(
      std::clamp<double>(std::round(in_flight), 1, spec_.num_microbatches));
  const double activation = rank->costs->activation;
  rank->most_resident =
      activation > 0 ? Whole(limit_ / activation) : spec_.num_microbatches;
  rank->offloads =
      policy_.transit > 0 && rank->most_in_flight > rank->most_resident;
  rank->most_kept = rank->most_resident;
  if (!rank->offloads) return;
  rank->most_resident = most_resident;
  rank->most_kept = std::max(0, most_resident - policy_.transit);
}

void Greedy::DeferWeights(double drain, Rank* rank) const {
  const int m = spec_.num_microbatches;
  const double deferred =
      policy_.deferred * Fill(drain, rank->costs->backward_weight);
  rank->first_deferred =
      m - static_cast<int>(std::min<double>(std::round(deferred), m));
}

void Greedy::SizeTables(Rank* rank) const {
  const int m = spec_.num_microbatches;
  rank->forward_ready.assign(m, rank->stage == 0 ? 0 : kNever);
  rank->gradient_ready.assign(m, kNever);
  rank->offload_end.assign(rank->offloads ? m : 0, -1);
  rank->reload_end.assign(rank->offloads ? m : 0, kNever);
  rank->actions.reserve(static_cast<size_t>(m) * (policy_.split ? 3 : 2));
}

// Returns the time at which one more activation fits; kNever if that requires
// another action.
double Greedy::RoomAt(const Rank& rank) const {
  const int after = std::min(rank.resident + 1, rank.most_resident);
  if (Held(rank, after, rank.num_pending()) > limit_) return kNever;
  const int too_many = rank.resident + 1 - rank.most_resident;
  if (too_many <= 0) return 0;
  if (static_cast<size_t>(too_many) > rank.leaving.size()) return kNever;
  return rank.leaving[too_many - 1];
}

double Greedy::ForwardAt(const Rank& rank) const {
  const int k = rank.forwards;
  if (k == spec_.num_microbatches) return kNever;
  if (k - rank.backwards >= rank.most_in_flight) return kNever;
  return std::max({rank.compute_free, rank.forward_ready[k], RoomAt(rank)});
}

bool Greedy::FitsSplit(const Rank& rank) const {
  return Held(rank, rank.resident - 1, rank.num_pending() + 1) <= limit_;
}

double Greedy::BackwardAt(const Rank& rank) const {
  const int k = rank.backwards;
  if (k == rank.forwards) return kNever;
  if (policy_.split && rank.num_pending() > 0 && !FitsSplit(rank)) {
    return kNever;
  }
  double ready = std::max(rank.compute_free, rank.gradient_ready[k]);
  if (rank.offloads && rank.offload_end[k] >= 0) {
    ready = std::max(ready, rank.reload_end[k]);
  }
  return ready;
}

// Returns true if the next forward's activations are not offloaded.
bool Greedy::Stays(const Rank& rank) const {
  if (!rank.offloads) return true;
  const int left = spec_.num_microbatches - rank.backwards;
  if (left <= rank.most_resident) return true;  // all fit from now on
  if (rank.kept + 1 > rank.most_kept) return false;
  if (!policy_.spread) return true;
  const double share =
      static_cast<double>(rank.most_kept) / rank.most_in_flight;
  return std::floor(share * (rank.forwards + 1)) >
         std::floor(share * rank.forwards);
}

double Greedy::Place(Rank* rank, Op op, int microbatch, double start) {
  rank->actions.push_back({op, rank->stage, microbatch});
  const double end = start + spec_.costs.duration(rank->actions.back());
  WakeUp(end, rank->stage);
  return end;
}

void Greedy::TakeRoom(Rank* rank) {
  ++rank->resident;
  while (rank->resident > rank->most_resident) {
    rank->leaving.pop_front();
    --rank->resident;
  }
}

// Returns true if a reload should get memory before the next forward.
bool Greedy::IsDue(const Rank& rank, int microbatch, double now) const {
  if (rank.forwards == spec_.num_microbatches) return true;
  const bool is_full = rank.forwards - rank.backwards >= rank.most_in_flight;
  const bool returns = rank.gradient_ready[rank.backwards] < kNever;
  if (policy_.lookahead > 0) {
    return (is_full || returns || rank.backwards > 0) &&
           microbatch < rank.backwards + policy_.lookahead;
  }
  if (is_full) return true;
  return returns && microbatch == rank.backwards &&
         !(policy_.forward_first && ForwardAt(rank) <= now);
}

// Reloads the microbatches that are needed next.
void Greedy::PlaceReloads(Rank* rank, double now) {
  while (!rank->on_host.empty()) {
    const int k = rank->on_host.front();
    const double room = RoomAt(*rank);
    if (room == kNever || !IsDue(*rank, k, now)) return;
    rank->on_host.pop_front();
    TakeRoom(rank);
    const double start = std::max(
        {rank->compute_free, rank->reload_free, rank->offload_end[k], room});
    rank->reload_free = rank->reload_end[k] =
        Place(rank, Op::kReload, k, start);
  }
}

void Greedy::Forward(Rank* rank, double start) {
  const int k = rank->forwards;
  const bool stays = Stays(*rank);
  ++rank->forwards;
  TakeRoom(rank);
  const double end = Place(rank, Op::kForward, k, start);
  rank->compute_free = end;
  rank->first_start = std::min(rank->first_start, start);
  if (rank->stage + 1 < spec_.num_ranks) {
    const double arrival = end + spec_.costs.hop;
    ranks_[rank->stage + 1].forward_ready[k] = arrival;
    WakeUp(arrival, rank->stage + 1);
  } else {
    rank->gradient_ready[k] = end;
  }
  if (stays) {
    ++rank->kept;
    return;
  }
  rank->offload_free = rank->offload_end[k] =
      Place(rank, Op::kOffload, k, std::max(end, rank->offload_free));
  rank->leaving.push_back(rank->offload_free);
  rank->on_host.push_back(k);
  ++num_offloads_;
}

void Greedy::Backward(Rank* rank, double start) {
  const int k = rank->backwards++;
  const bool split = policy_.split && FitsSplit(*rank);
  --rank->resident;
  if (!rank->offloads || rank->offload_end[k] < 0) --rank->kept;
  if (split) rank->pending.push_back(k);
  const double end =
      Place(rank, split ? Op::kBackwardInput : Op::kBackward, k, start);
  rank->compute_free = end;
  if (rank->stage == 0) return;
  const double arrival = end + spec_.costs.hop;
  ranks_[rank->stage - 1].gradient_ready[k] = arrival;
  WakeUp(arrival, rank->stage - 1);
}

void Greedy::Weight(Rank* rank) {
  const int k = rank->pending[rank->first_pending++];
  rank->compute_free = Place(rank, Op::kBackwardWeight, k, rank->compute_free);
}

// Places the rank's next compute action if one can start now.
bool Greedy::Step(Rank* rank, double now) {
  if (rank->compute_free > now) return false;
  PlaceReloads(rank, now);
  const bool has_weight = rank->num_pending() > 0;
  if (has_weight && rank->pending[rank->first_pending] < rank->first_deferred) {
    Weight(rank);
    return true;
  }
  const double forward = ForwardAt(*rank);
  const double backward = BackwardAt(*rank);
  if (forward <= now && (policy_.forward_first || backward > now)) {
    Forward(rank, forward);
    return true;
  }
  if (backward <= now) {
    Backward(rank, backward);
    return true;
  }
  if (!has_weight) return false;
  const double next = std::min(forward, backward);
  const double end = rank->compute_free + rank->costs->backward_weight;
  if (policy_.only_whole_gaps && next < end) return false;
  Weight(rank);
  return true;
}

OffloadOrder Greedy::Run() {
  for (int r = 0; r < spec_.num_ranks; ++r) WakeUp(0, r);
  double now = 0;
  while (!events_.empty()) {
    now = std::max(now, events_.top().first);
    Rank& rank = ranks_[events_.top().second];
    events_.pop();
    while (Step(&rank, now)) {
    }
  }
  OffloadOrder order;
  order.speed = {.makespan = 0, .num_offloads = num_offloads_};
  for (Rank& rank : ranks_) {
    if (rank.offloads) order.resident_activations = rank.most_resident;
    order.rank_actions.push_back(std::move(rank.actions));
    order.speed.makespan = std::max(order.speed.makespan, rank.compute_free);
    order.speed.span =
        std::max(order.speed.span, rank.compute_free - rank.first_start);
  }
  return order;
}

}  // namespace

double LargestHeld(const ScheduleSpec& spec) {
  double largest = 0;
  const int num_stages =
      std::max(1, static_cast<int>(spec.costs.stages.size()));
  for (int stage = 0; stage < num_stages; ++stage) {
    const StagePassCosts& costs = spec.costs.of(stage);
    largest =
        std::max({largest, costs.activation, costs.weight_gradient_inputs});
  }
  return largest;
}

OffloadOrder OrderWithOffload(const ScheduleSpec& spec, double limit,
                              const OffloadPolicy& policy) {
  return Greedy(spec, limit, policy).Run();
}

}  // namespace weir::schedules
