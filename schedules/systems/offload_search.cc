// SPDX-License-Identifier: Apache-2.0
#include "schedules/systems/offload_search.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "schedules/systems/generators.h"
#include "schedules/systems/zero_bubble_costs.h"
#include "schedules/walk.h"

namespace weir::schedules {
namespace {

// Limit of the search, in ordered actions: about 20 policies for 64 ranks and
// 1,024 microbatches. For small shapes the search finishes before.
constexpr int64_t kMaxTriedActions = 6'000'000;

constexpr double kOffloadSearchRounding = 1e-12;
constexpr double kAll = 1e9;  // defers all weight gradients

// Returns a lower bound on the makespan: every rank does all its work after the
// first forward has arrived.
double LowerBound(const ScheduleSpec& spec) {
  double arrival = 0, bound = 0;
  for (int s = 0; s < spec.num_ranks; ++s) {
    const StagePassCosts& stage = spec.costs.of(s);
    const double backward = std::min(
        stage.fused_backward(), stage.backward_input + stage.backward_weight);
    bound = std::max(
        bound, arrival + spec.num_microbatches * (stage.forward + backward));
    arrival += stage.forward + spec.costs.hop;
  }
  return bound;
}

using PolicyKey =
    std::tuple<bool, double, double, bool, bool, int, int, int, bool>;

PolicyKey KeyOf(const OffloadPolicy& policy) {
  const auto& [split, warmup, deferred, forward_first, only_whole_gaps,
               reserved, transit, lookahead, spread] = policy;
  return {split,    warmup,  deferred,  forward_first, only_whole_gaps,
          reserved, transit, lookahead, spread};
}

// Searches for the policy with the fastest order: tries some policies, then
// improves one choice at a time, starting from the best of them.
class Search {
 public:
  Search(const ScheduleSpec& spec, double limit)
      : spec_(spec),
        limit_(limit),
        good_enough_(LowerBound(spec) * (1 + kOffloadSearchRounding)) {}

  // Replaces the best order by the schedule's if that is faster.
  void Consider(Schedule schedule);

  // Searches until this many actions have been ordered. Replaces the best order
  // only by a faster one.
  void Run(const std::vector<OffloadPolicy>& starts, int64_t max_actions);

  OffloadOrder best() && { return std::move(*best_); }

 private:
  struct Found {
    OffloadPolicy policy;
    Speed speed;
  };

  bool Try(const OffloadPolicy& policy, Found* found);
  template <typename Value>
  bool TryEach(Value OffloadPolicy::*choice,
               std::initializer_list<Value> values, Found* found);
  void Improve(Found* found);

  const ScheduleSpec& spec_;
  const double limit_;
  const double good_enough_;  // makespan
  int64_t left_ = 0;
  absl::flat_hash_map<PolicyKey, Speed> tried_;
  std::optional<OffloadOrder> best_;
};

// Replaces `found` and returns true if the policy is better.
bool Search::Try(const OffloadPolicy& policy, Found* found) {
  if (left_ <= 0) return false;
  if (best_.has_value() && best_->speed.makespan <= good_enough_) return false;
  // Many starting points lead to the same policies.
  const auto [known, is_new] = tried_.try_emplace(KeyOf(policy));
  Speed& speed = known->second;
  if (is_new) {
    OffloadOrder order = OrderWithOffload(spec_, limit_, policy);
    for (const auto& actions : order.rank_actions) left_ -= actions.size();
    speed = order.speed;
    if (!best_.has_value() || speed < best_->speed) best_ = std::move(order);
  }
  if (!(speed < found->speed)) return false;
  *found = {policy, speed};
  return true;
}

template <typename Value>
bool Search::TryEach(Value OffloadPolicy::*choice,
                     std::initializer_list<Value> values, Found* found) {
  bool improved = false;
  for (const Value& value : values) {
    if (found->policy.*choice == value) continue;
    OffloadPolicy policy = found->policy;
    policy.*choice = value;
    improved |= Try(policy, found);
  }
  return improved;
}

void Search::Improve(Found* found) {
  using P = OffloadPolicy;
  const bool offloads = found->policy.transit > 0;
  for (bool improved = true; improved;) {
    improved =
        TryEach(&P::warmup, {1.0, 0.5, 0.0, -0.5, 1.5, 0.25, 0.75}, found);
    if (offloads) {
      improved |= TryEach(&P::transit, {1, 2, 3, 4}, found);
      improved |= TryEach(&P::lookahead, {0, 1, 2, 3}, found);
      improved |= TryEach(&P::spread, {true, false}, found);
    }
    improved |= TryEach(&P::reserved, {0, 1, 2, 3}, found);
    improved |= TryEach(&P::deferred, {1.0, kAll, 0.5, 0.0}, found);
    improved |= TryEach(&P::forward_first, {true, false}, found);
    improved |= TryEach(&P::only_whole_gaps, {true, false}, found);
    improved |= TryEach(&P::split, {false, true}, found);
  }
}

void Search::Consider(Schedule schedule) {
  const WalkTimes times = TimedWalk(schedule, spec_.costs);
  const Speed speed = {.makespan = times.makespan(), .span = times.span()};
  if (best_.has_value() && !(speed < best_->speed)) return;
  best_ = {.rank_actions = std::move(schedule.rank_actions), .speed = speed};
}

void Search::Run(const std::vector<OffloadPolicy>& starts,
                 int64_t max_actions) {
  // Half of the budget is for starting points.
  left_ = max_actions / 2;
  std::vector<Found> found;
  for (const OffloadPolicy& start : starts) {
    Found& next = found.emplace_back();
    if (!Try(start, &next)) found.pop_back();
  }
  left_ += max_actions - max_actions / 2;
  std::stable_sort(
      found.begin(), found.end(),
      [](const Found& a, const Found& b) { return a.speed < b.speed; });
  for (Found& start : found) Improve(&start);
}

std::vector<OffloadPolicy> StartsWithoutOffload() {
  std::vector<OffloadPolicy> starts = {{}};  // 1F1B if the limit allows it
  for (double warmup : {0.0, 1.0}) {
    for (bool forward_first : {true, false}) {
      for (double deferred : {kAll, 1.0}) {
        starts.push_back({.split = true,
                          .warmup = warmup,
                          .deferred = deferred,
                          .forward_first = forward_first});
      }
    }
  }
  return starts;
}

// Orders very different policies first, because large shapes try only those.
std::vector<OffloadPolicy> StartsWithOffload() {
  std::vector<OffloadPolicy> starts;
  for (double deferred : {1.0, kAll, 0.0}) {
    for (bool forward_first : {false, true}) {
      for (int transit : {3, 1}) {
        for (double warmup : {1.0, 0.0, -0.5}) {
          for (int reserved : {0, 2}) {
            starts.push_back({.split = true,
                              .warmup = warmup,
                              .deferred = deferred,
                              .forward_first = forward_first,
                              .reserved = reserved,
                              .transit = transit});
          }
        }
      }
    }
  }
  return starts;
}

}  // namespace

OffloadOrder FastestOrder(const ScheduleSpec& spec, double limit,
                          bool may_offload) {
  Search search(spec, limit);
  ScheduleSpec zero_bubble = spec;
  zero_bubble.options = {
      {std::string(kMemoryLimit), absl::StrFormat("%.17g", limit)}};
  search.Consider(ZeroBubble1pKind().generate(zero_bubble));
  search.Run(StartsWithoutOffload(), kMaxTriedActions / 3);
  if (may_offload) search.Run(StartsWithOffload(), kMaxTriedActions * 2 / 3);
  return std::move(search).best();
}

}  // namespace weir::schedules
