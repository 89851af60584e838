// SPDX-License-Identifier: Apache-2.0
#include "tests/schedules/offload_optimum.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace weir::schedules {
namespace {

constexpr int kMaxRanks = 4;
enum Pass : uint8_t { kNone, kF, kI, kW };

// The counts are of passes started; `left` is the remaining time of the running
// pass.
struct RankState {
  uint8_t forwards = 0, inputs = 0, weights = 0;
  Pass running = kNone;
  uint8_t left = 0;
  // Bit mask of the microbatches whose activations are on the host.
  uint8_t on_host = 0;
  // Running transfers: microbatch and remaining time (0: none).
  uint8_t offloading = 0, offload_left = 0, reloading = 0, reload_left = 0;

  int forwards_done() const { return forwards - (running == kF); }
  int inputs_done() const { return inputs - (running == kI); }
  int weights_done() const { return weights - (running == kW); }
};
using State = std::array<RankState, kMaxRanks>;

std::string KeyOf(const State& state, int num_ranks) {
  std::string key;
  for (int r = 0; r < num_ranks; ++r) {
    const RankState& s = state[r];
    for (int byte :
         {int{s.forwards}, int{s.inputs}, int{s.weights}, int{s.running},
          int{s.left}, int{s.on_host}, int{s.offloading}, int{s.offload_left},
          int{s.reloading}, int{s.reload_left}}) {
      key += static_cast<char>(byte);
    }
  }
  return key;
}

class Exhaustive {
 public:
  Exhaustive(const OffloadProblem& problem, int64_t max_states)
      : in_(problem), states_left_(max_states) {}

  std::optional<int> Shortest();

 private:
  bool Reaches(int deadline);
  bool IsDone(const State& state) const;
  bool CanMeet(const State& state, int now, int deadline) const;
  int Seconds(Pass pass) const;
  int Memory(const RankState& rank) const;
  bool CanStart(const State& state, int r, Pass pass) const;
  void Start(RankState* rank, Pass pass) const;
  void Choose(const State& state, State* next, int r, int now, int deadline);
  void ChooseTransfers(const State& state, State* next, int r, int now,
                       int deadline);
  void Advance(State state, int now, int deadline);

  const OffloadProblem in_;
  int64_t states_left_;
  absl::flat_hash_set<std::string> seen_;
  std::vector<std::vector<State>> at_;  // by time: states to continue from
};

int Exhaustive::Seconds(Pass pass) const {
  switch (pass) {
    case kF:
      return in_.forward;
    case kI:
      return in_.backward_input;
    case kW:
      return in_.backward_weight;
    case kNone:
      return 0;
  }
  return 0;
}

int Exhaustive::Memory(const RankState& rank) const {
  const int on_rank =
      rank.forwards - rank.inputs_done() - __builtin_popcount(rank.on_host);
  return in_.activation * on_rank +
         in_.weight_gradient_inputs *
             (rank.inputs_done() - rank.weights_done());
}

bool Exhaustive::IsDone(const State& state) const {
  return std::all_of(state.begin(), state.begin() + in_.num_ranks,
                     [&](const RankState& rank) {
                       return rank.weights_done() == in_.num_microbatches;
                     });
}

// Returns false only if the deadline is unreachable. After all forwards and
// input gradients of a rank, its last gradient passes the ranks before it, and
// the first rank's last weight gradient follows.
bool Exhaustive::CanMeet(const State& state, int now, int deadline) const {
  const int m = in_.num_microbatches;
  for (int r = 0; r < in_.num_ranks; ++r) {
    const RankState& rank = state[r];
    const int begun = now + rank.left;
    const int inputs = begun + (m - rank.forwards) * in_.forward +
                       (m - rank.inputs) * in_.backward_input;
    const int own = inputs + (m - rank.weights) * in_.backward_weight;
    if (own > deadline) return false;
    if (rank.inputs_done() < m &&
        inputs + r * in_.backward_input + in_.backward_weight > deadline) {
      return false;
    }
    if (rank.forwards < m &&
        now + (m - rank.forwards + in_.num_ranks - 1 - r) * in_.forward +
                in_.num_ranks * in_.backward_input + in_.backward_weight >
            deadline) {
      return false;
    }
  }
  return true;
}

bool Exhaustive::CanStart(const State& state, int r, Pass pass) const {
  const RankState& rank = state[r];
  switch (pass) {
    case kNone:
      return true;
    case kF:
      return rank.forwards < in_.num_microbatches &&
             (r == 0 || state[r - 1].forwards_done() > rank.forwards) &&
             Memory(rank) + in_.activation <= in_.memory;
    case kI: {
      const int k = rank.inputs;
      const bool away = (rank.on_host >> k & 1) ||
                        (rank.reload_left > 0 && rank.reloading == k) ||
                        (rank.offload_left > 0 && rank.offloading == k);
      return k < rank.forwards_done() && !away &&
             (r == in_.num_ranks - 1 || state[r + 1].inputs_done() > k);
    }
    case kW:
      return rank.weights < rank.inputs_done();
  }
  return false;
}

void Exhaustive::Start(RankState* rank, Pass pass) const {
  rank->running = pass;
  rank->left = static_cast<uint8_t>(Seconds(pass));
  if (pass == kF) ++rank->forwards;
  if (pass == kI) ++rank->inputs;
  if (pass == kW) ++rank->weights;
}

// Tries every combination of actions that ranks `r` and later can start now.
// `state` is the state before any of them, as actions that start together
// cannot depend on each other.
void Exhaustive::Choose(const State& state, State* next, int r, int now,
                        int deadline) {
  if (r == in_.num_ranks) {
    Advance(*next, now, deadline);
    return;
  }
  if (state[r].running != kNone) {
    ChooseTransfers(state, next, r, now, deadline);
    return;
  }
  for (Pass pass : {kF, kI, kW, kNone}) {
    if (!CanStart(state, r, pass)) continue;
    Start(&(*next)[r], pass);
    ChooseTransfers(state, next, r, now, deadline);
    (*next)[r] = state[r];
  }
}

// It suffices to offload the activation needed last and to reload the one
// needed first: in any other schedule, the two activations can be exchanged.
void Exhaustive::ChooseTransfers(const State& state, State* next, int r,
                                 int now, int deadline) {
  RankState& rank = (*next)[r];
  const RankState before = rank;
  int newest = state[r].forwards_done() - 1;
  const auto is_here = [&](int k) {
    return !(before.on_host >> k & 1) &&
           !(before.reload_left > 0 && before.reloading == k);
  };
  while (newest >= before.inputs && !is_here(newest)) --newest;
  const bool may_offload =
      in_.offload > 0 && before.offload_left == 0 && newest >= before.inputs;
  const bool may_reload = before.on_host != 0 && before.reload_left == 0 &&
                          Memory(before) + in_.activation <= in_.memory;
  for (int offload = 0; offload <= int{may_offload}; ++offload) {
    for (int reload = 0; reload <= int{may_reload}; ++reload) {
      if (offload) {
        rank.offloading = static_cast<uint8_t>(newest);
        rank.offload_left = static_cast<uint8_t>(in_.offload);
      }
      if (reload) {
        rank.reloading = static_cast<uint8_t>(__builtin_ctz(before.on_host));
        rank.reload_left = static_cast<uint8_t>(in_.offload);
        rank.on_host &= static_cast<uint8_t>(before.on_host - 1);
      }
      Choose(state, next, r + 1, now, deadline);
      rank = before;
    }
  }
}

// Advances to the end of the next action; nothing can start before.
void Exhaustive::Advance(State state, int now, int deadline) {
  int step = std::numeric_limits<int>::max();
  for (int r = 0; r < in_.num_ranks; ++r) {
    for (int left : {int{state[r].left}, int{state[r].offload_left},
                     int{state[r].reload_left}}) {
      if (left > 0) step = std::min(step, left);
    }
  }
  if (step == std::numeric_limits<int>::max()) return;  // all ranks stay idle
  for (int r = 0; r < in_.num_ranks; ++r) {
    RankState& rank = state[r];
    if (rank.left > 0) {
      rank.left = static_cast<uint8_t>(rank.left - step);
      if (rank.left == 0) rank.running = kNone;
    }
    if (rank.offload_left > 0) {
      rank.offload_left = static_cast<uint8_t>(rank.offload_left - step);
      if (rank.offload_left == 0) {
        rank.on_host |= static_cast<uint8_t>(1U << rank.offloading);
        rank.offloading = 0;
      }
    }
    if (rank.reload_left > 0) {
      rank.reload_left = static_cast<uint8_t>(rank.reload_left - step);
      if (rank.reload_left == 0) rank.reloading = 0;
    }
  }
  if (!CanMeet(state, now + step, deadline)) return;
  if (!seen_.insert(KeyOf(state, in_.num_ranks)).second) return;
  --states_left_;
  at_[now + step].push_back(state);
}

// Returns true if all work can be done by the deadline. States are visited in
// the order of time, so the first visit is the best.
bool Exhaustive::Reaches(int deadline) {
  seen_.clear();
  at_.assign(deadline + 1, {});
  at_[0].emplace_back();
  for (int now = 0; now <= deadline; ++now) {
    for (size_t i = 0; i < at_[now].size(); ++i) {
      const State state = at_[now][i];
      if (IsDone(state)) return true;
      if (states_left_ <= 0) return false;
      State next = state;
      Choose(state, &next, 0, now, deadline);
    }
    at_[now] = {};
  }
  return false;
}

std::optional<int> Exhaustive::Shortest() {
  const int m = in_.num_microbatches;
  int deadline = (in_.num_ranks - 1) * in_.forward +
                 m * (in_.forward + in_.backward_input + in_.backward_weight);
  while (!Reaches(deadline)) {
    if (states_left_ <= 0) return std::nullopt;
    ++deadline;
  }
  return deadline;
}

}  // namespace

std::optional<int> ShortestBatch(const OffloadProblem& problem,
                                 int64_t max_states) {
  return Exhaustive(problem, max_states).Shortest();
}

}  // namespace weir::schedules
