// SPDX-License-Identifier: Apache-2.0
#include "tests/schedules/order_optimum.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <unordered_map>

namespace weir::schedules {
namespace {

constexpr int kMaxRanks = 4;
constexpr int kMaxMicrobatches = 8;
constexpr int kNever = std::numeric_limits<int>::max() / 4;

// All microbatches are equal, so each kind of pass runs in their order.
struct Rank {
  int forwards = 0, inputs = 0, weights = 0;
  int free_at = 0;
  // Idle time since the last pass, and the end of the shortest pass that could
  // have run in it.
  int idle = 0, passed_over = kNever;
  // Arrival times of forwards and gradients from the neighbors; kNever if
  // unknown.
  std::array<int, kMaxMicrobatches> forward_at, gradient_at;
};
using State = std::array<Rank, kMaxRanks>;

// Searches for an order with a cost of at most `cost`.
class Search {
 public:
  Search(const OrderProblem& problem, int cost, int64_t max_states)
      : problem_(problem), cost_(cost), max_states_(max_states) {}

  bool Succeeds() {
    State state;
    for (int r = 0; r < problem_.num_ranks; ++r) {
      state[r].forward_at.fill(r == 0 ? 0 : kNever);
      state[r].gradient_at.fill(kNever);
      state[r].free_at = FirstStart(r);
    }
    return Extend(state);
  }
  bool gave_up() const { return num_states_ > max_states_; }
  int64_t num_states() const { return num_states_; }

 private:
  // Returns the earliest start of the rank's first forward. Nothing else can
  // run before it, so costs count from here.
  int FirstStart(int rank) const {
    return rank * (problem_.forward + problem_.hop);
  }
  bool IsDone(const Rank& rank) const {
    return rank.weights == problem_.num_microbatches;
  }
  int Held(const Rank& rank) const {
    return (rank.forwards - rank.inputs) * problem_.activation +
           (rank.inputs - rank.weights) * problem_.weight_gradient_inputs;
  }
  int WorkLeft(const Rank& rank) const {
    const int m = problem_.num_microbatches;
    return (m - rank.forwards) * problem_.forward +
           (m - rank.inputs) * problem_.backward_input +
           (m - rank.weights) * problem_.backward_weight;
  }
  int InputReadyAt(const State& state, int r) const {
    const Rank& rank = state[r];
    if (rank.inputs >= problem_.num_microbatches) return kNever;
    if (r + 1 < problem_.num_ranks) return rank.gradient_at[rank.inputs];
    return rank.inputs < rank.forwards ? 0 : kNever;
  }

  // Chooses the next action of the rank that is free first.
  bool Extend(const State& state) {
    int r = -1;
    for (int i = 0; i < problem_.num_ranks; ++i) {
      if (IsDone(state[i])) continue;
      if (r < 0 || state[i].free_at < state[r].free_at) r = i;
    }
    if (r < 0) return true;
    if (!CanStillMeetCost(state)) return false;
    const std::string key = KeyOf(state, state[r].free_at);
    const auto [seen, is_new] = failed_.try_emplace(key, state[r].free_at);
    if (!is_new) {
      // This state failed before with at least as much time left.
      if (seen->second <= state[r].free_at) return false;
      seen->second = state[r].free_at;
    }
    if (++num_states_ > max_states_) return false;
    return TryInput(state, r) || TryForward(state, r) || TryWeight(state, r) ||
           TryIdle(state, r);
  }

  bool CanForward(const State& state, int r) const {
    const Rank& rank = state[r];
    return rank.forwards < problem_.num_microbatches &&
           rank.forward_at[rank.forwards] <= rank.free_at &&
           Held(rank) + problem_.activation <= problem_.memory_limit;
  }
  bool CanInput(const State& state, int r) const {
    return InputReadyAt(state, r) <= state[r].free_at;
  }
  bool CanWeight(const State& state, int r) const {
    return state[r].weights < state[r].inputs;
  }

  static void Occupy(Rank* rank, int duration) {
    rank->free_at += duration;
    rank->idle = 0;
    rank->passed_over = kNever;
  }

  bool TryInput(const State& state, int r) {
    if (!CanInput(state, r)) return false;
    State next = state;
    Occupy(&next[r], problem_.backward_input);
    if (r > 0) {
      next[r - 1].gradient_at[next[r].inputs] = next[r].free_at + problem_.hop;
    }
    ++next[r].inputs;
    return Extend(next);
  }

  bool TryForward(const State& state, int r) {
    if (!CanForward(state, r)) return false;
    State next = state;
    Occupy(&next[r], problem_.forward);
    if (r + 1 < problem_.num_ranks) {
      next[r + 1].forward_at[next[r].forwards] = next[r].free_at + problem_.hop;
    }
    ++next[r].forwards;
    return Extend(next);
  }

  bool TryWeight(const State& state, int r) {
    if (!CanWeight(state, r)) return false;
    State next = state;
    Occupy(&next[r], problem_.backward_weight);
    ++next[r].weights;
    return Extend(next);
  }

  // Idling for as long as a pass that could have run is no better than running
  // that pass.
  bool TryIdle(const State& state, int r) {
    State next = state;
    Rank& rank = next[r];
    if (CanInput(state, r)) {
      rank.passed_over =
          std::min(rank.passed_over, rank.idle + problem_.backward_input);
    }
    if (CanForward(state, r)) {
      rank.passed_over =
          std::min(rank.passed_over, rank.idle + problem_.forward);
    }
    if (CanWeight(state, r)) {
      rank.passed_over =
          std::min(rank.passed_over, rank.idle + problem_.backward_weight);
    }
    ++rank.idle;
    if (rank.idle >= rank.passed_over) return false;
    ++rank.free_at;
    return Extend(next);
  }

  // Checks lower bounds: the remaining work, and the idle time until the next
  // gradient that available forwards and weight gradients cannot fill.
  bool CanStillMeetCost(const State& state) const {
    int next_gradient_at = 0;
    for (int r = problem_.num_ranks - 1; r >= 0; --r) {
      const Rank& rank = state[r];
      if (IsDone(rank)) {
        next_gradient_at = 0;
        continue;
      }
      const int known = InputReadyAt(state, r);
      const int input_at =
          std::max(rank.free_at, known < kNever ? known
                                 : r + 1 < problem_.num_ranks
                                     ? next_gradient_at
                                     : rank.free_at + problem_.forward);
      const int deadline = FirstStart(r) + cost_;
      if (EndByWork(rank, input_at) > deadline ||
          EndByMemory(r, rank, input_at) > deadline) {
        return false;
      }
      next_gradient_at = NextGradientAt(state, r, input_at);
    }
    return true;
  }

  // Returns a lower bound on the end of all work if the next I starts at
  // `input_at` or later.
  int EndByWork(const Rank& rank, int input_at) const {
    int idle = 0;
    if (rank.inputs < problem_.num_microbatches) {
      idle = std::max(0, input_at - rank.free_at - MostFill(rank));
    }
    return rank.free_at + idle + WorkLeft(rank);
  }

  // Returns a lower bound on the end of the last W. A forward needs the memory
  // that an I of an earlier microbatch frees, and an I runs only after its
  // forward has passed to the last rank and back.
  int EndByMemory(int r, const Rank& rank, int input_at) const {
    const int m = problem_.num_microbatches;
    const int in_flight = problem_.memory_limit / problem_.activation;
    const int ranks_after = problem_.num_ranks - 1 - r;
    const int way_back =
        (ranks_after + 1) * (problem_.forward + problem_.backward_input) +
        2 * ranks_after * problem_.hop;
    std::array<int, kMaxMicrobatches> input_end;
    int last_end = rank.free_at, forward_end = rank.free_at, bound = 0;
    for (int k = rank.inputs; k < m; ++k) {
      int end = std::max(last_end, k == rank.inputs ? input_at : 0) +
                problem_.backward_input;
      if (k >= rank.forwards) {
        int start = forward_end;
        if (k - in_flight >= rank.inputs) {
          start = std::max(start, input_end[k - in_flight]);
        }
        forward_end = start + problem_.forward;
        end = std::max(end, start + way_back);
      }
      input_end[k] = last_end = end;
      bound = std::max(bound, end + (m - 1 - k) * problem_.backward_input +
                                  (m - k) * problem_.backward_weight);
    }
    return bound;
  }

  // Returns a lower bound on the arrival of the gradient that rank r-1 waits
  // for.
  int NextGradientAt(const State& state, int r, int input_at) const {
    if (r == 0) return 0;
    const int missing = state[r - 1].inputs - state[r].inputs;
    if (missing < 0) return 0;  // is in flight
    return input_at + (missing + 1) * problem_.backward_input + problem_.hop;
  }

  // Returns the most work that a rank can do before its next I.
  int MostFill(const Rank& rank) const {
    const int room = problem_.memory_limit / problem_.activation -
                     (rank.forwards - rank.inputs);
    const int forwards =
        std::clamp(room, 0, problem_.num_microbatches - rank.forwards);
    return forwards * problem_.forward +
           (rank.inputs - rank.weights) * problem_.backward_weight;
  }

  // Returns everything that determines the remaining search except the time.
  std::string KeyOf(const State& state, int now) const {
    std::string key;
    const auto add = [&](int value) {
      key += static_cast<char>(std::min(value, 127));
    };
    for (int r = 0; r < problem_.num_ranks; ++r) {
      const Rank& rank = state[r];
      add(rank.forwards);
      add(rank.inputs);
      add(rank.weights);
      if (IsDone(rank)) continue;
      add(rank.free_at - now);
      add(rank.idle);
      add(rank.passed_over);
      for (int k = rank.forwards; k < problem_.num_microbatches; ++k) {
        if (rank.forward_at[k] == kNever) break;
        add(std::max(0, rank.forward_at[k] - now));
      }
      key += '/';
      for (int k = rank.inputs; k < problem_.num_microbatches; ++k) {
        if (rank.gradient_at[k] == kNever) break;
        add(std::max(0, rank.gradient_at[k] - now));
      }
      key += '/';
    }
    return key;
  }

  const OrderProblem& problem_;
  int cost_;
  int64_t max_states_;
  int64_t num_states_ = 0;
  std::unordered_map<std::string, int> failed_;  // earliest time
};

}  // namespace

Optimum FindOptimum(const OrderProblem& problem, int64_t max_states) {
  Optimum optimum;
  optimum.cost =
      problem.num_microbatches *
      (problem.forward + problem.backward_input + problem.backward_weight);
  for (;; ++optimum.cost) {
    Search search(problem, optimum.cost, max_states - optimum.num_states);
    optimum.is_proven = search.Succeeds();
    optimum.num_states += search.num_states();
    if (optimum.is_proven || search.gave_up()) return optimum;
  }
}

}  // namespace weir::schedules
