// SPDX-License-Identifier: Apache-2.0
#include "sim/bounds/pass_order.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "schedules/dependencies.h"
#include "sim/graph/exchange.h"

namespace weir::sim {

// Numbers nodes as they are added, then sorts them.
class PassOrderBuilder {
 public:
  PassOrderBuilder(const schedules::Schedule& schedule, bool blocking,
                   PassOrder* order)
      : schedule_(schedule), dependencies_(schedule), order_(*order) {
    if (blocking) exchanges_ = PlanExchanges(schedule);
  }

  void Build() {
    Add(0);  // the start
    AddPasses();
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
      AddStream(rank);
      AddChannels(rank);
    }
    // After all chains, since exchanges look for the next pass.
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) AddInputs(rank);
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
      const int32_t end = Add(0);
      for (int32_t before : ends_[rank]) Await(end, before, 0);
      order_.last_of_rank_.push_back(end);
    }
    Sort();
  }

 private:
  struct Wait {
    int32_t node, before, hop;
  };

  int32_t Add(int32_t pass) {
    node_pass_.push_back(pass);
    return static_cast<int32_t>(node_pass_.size()) - 1;
  }
  void Await(int32_t node, int32_t before, int32_t hop) {
    waits_.push_back({node, before, hop});
  }

  // A pair is one node.
  void AddPasses() {
    node_of_.resize(schedule_.num_ranks);
    ends_.resize(schedule_.num_ranks);
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
      const auto& actions = schedule_.rank_actions[rank];
      for (size_t i = 0; i < actions.size(); ++i) {
        const bool pair = actions[i].overlaps_next;
        const int32_t node =
            Add(KindOf(rank, actions[i], pair ? &actions[i + 1] : nullptr));
        node_of_[rank].push_back(node);
        if (pair) node_of_[rank].push_back(node), ++i;
      }
    }
  }

  int32_t KindOf(int rank, const schedules::Action& action,
                 const schedules::Action* overlapped) {
    const auto codec =
        [&](const schedules::Action& one) {  // may differ by route
          const int s = one.stage;
          return (s > 0 && schedule_.rank_of(s - 1, one.microbatch) != rank) +
                 2 * (s + 1 < schedule_.num_stages &&
                      schedule_.rank_of(s + 1, one.microbatch) != rank);
        };
    PassKind kind{rank, action, std::nullopt};
    if (overlapped != nullptr) kind.overlapped = *overlapped;
    const schedules::Action& other =
        overlapped != nullptr ? *overlapped : action;
    const auto [at, added] = pass_index_.try_emplace(
        std::tuple(rank, action.op, action.stage, action.num_microbatches,
                   action.overlaps_next, other.op, other.stage,
                   codec(action) + 4 * codec(other)),
        static_cast<int32_t>(order_.passes_.size()) + 1);
    if (added) order_.passes_.push_back(kind);
    return at->second;
  }

  int32_t HopOf(const HopKind& hop) {
    const auto [at, added] =
        hop_index_.try_emplace(std::tuple(hop.from_rank, hop.to_rank, hop.stage,
                                          hop.forward, hop.num_microbatches),
                               static_cast<int32_t>(order_.hops_.size()) + 1);
    if (added) order_.hops_.push_back(hop);
    return at->second;
  }

  void AddStream(int rank) {
    const auto& actions = schedule_.rank_actions[rank];
    int32_t last = 0;
    for (size_t i = 0; i < actions.size(); ++i) {
      if (!schedules::IsCompute(actions[i].op)) continue;
      const int32_t node = node_of_[rank][i];
      if (node == last) continue;  // the second of a pair
      Await(node, last, 0);
      last = node;
    }
    ends_[rank].push_back(last);
    order_.last_pass_.push_back(last);
    AddLastGradients(rank);
  }

  void AddLastGradients(int rank) {
    const auto& actions = schedule_.rank_actions[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].op == schedules::Op::kBackward ||
          actions[i].op == schedules::Op::kBackwardWeight) {
        order_.last_gradient_[{rank, actions[i].stage}] = node_of_[rank][i];
      }
    }
  }

  void AddChannels(int rank) {
    const auto& actions = schedule_.rank_actions[rank];
    int32_t computed = 0, offloaded = 0, reloaded = 0;
    for (size_t i = 0; i < actions.size(); ++i) {
      const int32_t node = node_of_[rank][i];
      if (schedules::IsCompute(actions[i].op)) {
        computed = node;
        continue;
      }
      int32_t& channel =
          actions[i].op == schedules::Op::kOffload ? offloaded : reloaded;
      Await(node, computed, 0);
      if (channel != 0) Await(node, channel, 0);
      channel = node;
    }
    for (int32_t last : {offloaded, reloaded}) {
      if (last != 0) order_.last_of_channels_.push_back(last);
    }
  }

  void AddInputs(int rank) {
    const auto& actions = schedule_.rank_actions[rank];
    for (int32_t i = 0; i < std::ssize(actions); ++i) {
      for (schedules::Place from :
           dependencies_.Awaited(actions[i], {rank, i})) {
        const schedules::Action& made =
            schedule_.rank_actions[from.rank][from.position];
        const int32_t node = node_of_[rank][i];
        const int32_t before = node_of_[from.rank][from.position];
        if (from.rank == rank) {
          // Passes of one rank run in its order anyway.
          if (!schedules::IsCompute(made.op)) Await(node, before, 0);
          continue;
        }
        const int32_t hop =
            HopOf({from.rank, rank, made.stage,
                   made.op == schedules::Op::kForward, made.num_microbatches});
        if (exchanges_.empty()) {
          Await(node, before, hop);
        } else {
          AddExchange(from, {rank, i}, hop);
        }
      }
    }
  }

  void AddExchange(schedules::Place from, schedules::Place to, int32_t hop) {
    const int32_t start = Add(0), transfer = Add(0);
    const int32_t sent = exchanges_[from.rank].send_after[from.position];
    const int32_t received = exchanges_[to.rank].receive_after[to.position];
    Await(start, node_of_[from.rank][from.position], 0);
    if (sent > from.position) Await(start, node_of_[from.rank][sent], 0);
    if (received >= 0) Await(start, node_of_[to.rank][received], 0);
    Await(transfer, start, hop);
    Await(node_of_[to.rank][to.position], transfer, 0);
    HoldUpNext(from.rank, sent, transfer);
    HoldUpNext(to.rank, received, transfer);
  }

  void HoldUpNext(int rank, int32_t position, int32_t transfer) {
    const auto& actions = schedule_.rank_actions[rank];
    const auto count = static_cast<int32_t>(actions.size());
    int32_t next = position + 1;
    while (next < count && !schedules::IsCompute(actions[next].op)) ++next;
    if (next < count) {
      Await(node_of_[rank][next], transfer, 0);
    } else {
      ends_[rank].push_back(transfer);
    }
  }

  // Breadth first: neighbors in the order belong to different ranks, so the
  // processor can work on several nodes at a time.
  void Sort() {
    const auto count = static_cast<int32_t>(node_pass_.size());
    std::stable_sort(
        waits_.begin(), waits_.end(),
        [](const Wait& a, const Wait& b) { return a.node < b.node; });
    std::vector<int32_t> first(count + 1), waiting(count),
        next_first(count + 1);
    for (const Wait& wait : waits_) {
      ++first[wait.node + 1];
      ++next_first[wait.before + 1];
      ++waiting[wait.node];
    }
    for (int32_t i = 0; i < count; ++i) {
      first[i + 1] += first[i];
      next_first[i + 1] += next_first[i];
    }
    std::vector<int32_t> next(waits_.size()), at(next_first);
    for (const Wait& wait : waits_) next[at[wait.before]++] = wait.node;
    place_.assign(count, -1);
    std::vector<int32_t> ready;
    for (int32_t i = 0; i < count; ++i) {
      if (waiting[i] == 0) ready.push_back(i);
    }
    for (size_t k = 0; k < ready.size(); ++k) {
      const int32_t node = ready[k];
      PlaceNode(node,
                {waits_.data() + first[node], waits_.data() + first[node + 1]});
      for (int32_t i = next_first[node]; i < next_first[node + 1]; ++i) {
        if (--waiting[next[i]] == 0) ready.push_back(next[i]);
      }
    }
    order_.complete_ = std::ssize(ready) == count;
    for (int32_t& last : order_.last_of_rank_) last = place_[last];
    for (int32_t& last : order_.last_of_channels_) last = place_[last];
    for (int32_t& last : order_.last_pass_) last = place_[last];
    for (auto& [stage, last] : order_.last_gradient_) last = place_[last];
  }

  // A node has one chain and one input; further ones get nodes before it.
  void PlaceNode(int32_t node, std::span<const Wait> waits) {
    PassOrder::Node placed;
    bool chained = false, has_input = false;
    for (const Wait& wait : waits) {
      if (wait.before == 0) continue;
      const int32_t before = place_[wait.before];
      if (wait.hop == 0 && !chained) {
        placed.chain = before;
        chained = true;
        continue;
      }
      if (has_input) {
        order_.nodes_.push_back(placed);
        placed = {static_cast<int32_t>(order_.nodes_.size()) - 1, 0, 0, 0};
        chained = true;
      }
      placed.input = before;
      placed.hop = wait.hop;
      has_input = true;
    }
    placed.pass = node_pass_[node];
    order_.nodes_.push_back(placed);
    place_[node] = static_cast<int32_t>(order_.nodes_.size()) - 1;
  }

  const schedules::Schedule& schedule_;
  const schedules::Dependencies dependencies_;
  PassOrder& order_;
  std::vector<Exchanges> exchanges_;           // [rank]; empty: not blocking
  std::vector<int32_t> node_pass_;             // [node]
  std::vector<std::vector<int32_t>> node_of_;  // [rank][position]
  std::vector<std::vector<int32_t>> ends_;  // [rank]: last nodes of its order
  std::vector<Wait> waits_;
  std::vector<int32_t> place_;  // [node]; -1: not placed yet
  absl::flat_hash_map<std::tuple<int, schedules::Op, int32_t, uint16_t, bool,
                                 schedules::Op, int32_t, int>,
                      int32_t>
      pass_index_;
  absl::flat_hash_map<std::tuple<int, int, int, bool, int>, int32_t> hop_index_;
};

PassOrder::PassOrder(const schedules::Schedule& schedule, bool blocking) {
  PassOrderBuilder(schedule, blocking, this).Build();
}

double PassOrder::Makespan(std::span<const double> pass_seconds,
                           std::span<const double> hop_seconds,
                           std::span<const double> tail_seconds,
                           Buffers* buffers) const {
  buffers->pass_seconds.assign(1, 0);
  buffers->pass_seconds.insert(buffers->pass_seconds.end(),
                               pass_seconds.begin(), pass_seconds.end());
  buffers->hop_seconds.assign(1, 0);
  buffers->hop_seconds.insert(buffers->hop_seconds.end(), hop_seconds.begin(),
                              hop_seconds.end());
  if (buffers->ends.size() < nodes_.size()) {
    buffers->ends.resize(nodes_.size());
  }
  double* const ends = buffers->ends.data();
  const double* const pass = buffers->pass_seconds.data();
  const double* const hop = buffers->hop_seconds.data();
  ends[0] = 0;
  const auto count = static_cast<int64_t>(nodes_.size());
  for (int64_t i = 1; i < count; ++i) {
    const Node& node = nodes_[i];
    ends[i] = std::max(ends[node.chain], ends[node.input] + hop[node.hop]) +
              pass[node.pass];
  }
  double makespan = 0;
  for (int32_t last : last_of_channels_) {
    makespan = std::max(makespan, ends[last]);
  }
  for (size_t rank = 0; rank < last_of_rank_.size(); ++rank) {
    const double tail = tail_seconds.empty() ? 0 : tail_seconds[rank];
    makespan = std::max(makespan, ends[last_of_rank_[rank]] + tail);
  }
  return makespan;
}

double PassOrder::EndOfPasses(int rank, const Buffers& buffers) const {
  return buffers.ends[last_pass_[rank]];
}

double PassOrder::StartOfLastGradient(int rank, int stage,
                                      const Buffers& buffers) const {
  const auto at = last_gradient_.find({rank, stage});
  if (at == last_gradient_.end()) return 0;
  return buffers.ends[at->second] -
         buffers.pass_seconds[nodes_[at->second].pass];
}

}  // namespace weir::sim
