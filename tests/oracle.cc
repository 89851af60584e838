// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weir::oracle {
namespace {

struct Node {
  double seconds = 0;
  double start = 0;
  int num_waits = 0;
  std::vector<int> successors;
  bool has_run = false;

  double end() const { return start + seconds; }
};

struct Graph {
  std::vector<Node> nodes;

  int Add(double seconds) {
    nodes.emplace_back().seconds = seconds;
    return static_cast<int>(nodes.size()) - 1;
  }
  void AddEdge(int before, int after) {
    nodes[before].successors.push_back(after);
    ++nodes[after].num_waits;
  }
  // Runs all nodes that can run; returns how many cannot.
  int Run();
};

int Graph::Run() {
  std::deque<int> ready;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    if (nodes[i].num_waits == 0) ready.push_back(i);
  }
  int num_left = static_cast<int>(nodes.size());
  while (!ready.empty()) {
    Node& node = nodes[ready.front()];
    ready.pop_front();
    node.has_run = true;
    --num_left;
    for (int next : node.successors) {
      nodes[next].start = std::max(nodes[next].start, node.end());
      if (--nodes[next].num_waits == 0) ready.push_back(next);
    }
  }
  return num_left;
}

double At(const std::vector<double>& seconds, int stage) {
  return seconds.empty() ? 0 : seconds[stage];
}

double ActionSeconds(const Costs& costs, const Action& action) {
  switch (action.op) {
    case Op::kForward:
      return At(costs.forward_seconds, action.stage);
    case Op::kBackward:
      return At(costs.backward_seconds, action.stage);
    case Op::kBackwardInput:
      return At(costs.backward_input_seconds, action.stage);
    case Op::kBackwardWeight:
      return At(costs.backward_weight_seconds, action.stage);
    case Op::kOffload:
    case Op::kReload:
      return 0;
  }
  return 0;
}

double TransferSeconds(const Costs& costs, const Action& producer,
                       int to_stage) {
  double seconds = costs.latency_seconds;
  if (costs.hop_seconds) seconds += costs.hop_seconds(producer.stage, to_stage);
  if (costs.transfer_seconds) seconds += costs.transfer_seconds(producer);
  return seconds;
}

// Backwards after which no gradient of their microbatch is missing.
bool EndsBackward(const Action& action) {
  return action.op == Op::kBackward || action.op == Op::kBackwardWeight;
}

// Where an action is: its rank and its position there.
using Place = std::pair<int, int>;
enum class Output { kActivation, kGradient };

class Builder {
 public:
  Builder(const Schedule& schedule, const Costs& costs, Transfers transfers)
      : schedule_(schedule), costs_(costs), transfers_(transfers) {}

  Graph Build();
  int NodeOf(Place place) const {
    return action_nodes_[place.first][place.second];
  }
  const std::vector<std::pair<int, int>>& updates() const { return updates_; }

 private:
  void AddRank(int rank);
  void Connect(Place producer, Place consumer);
  std::pair<int, int> Block(Place place) const;
  const Action& ActionAt(Place place) const {
    return schedule_.rank_actions[place.first][place.second];
  }

  const Schedule& schedule_;
  const Costs& costs_;
  const Transfers transfers_;
  Graph graph_;
  std::vector<std::vector<int>> action_nodes_;
  // [rank]: holds several stages and has a forward after a backward.
  std::vector<bool> alternates_;
  std::vector<std::pair<int, int>> updates_;  // rank, node
  std::map<std::tuple<Output, int, int>, Place> outputs_;
};

Graph Builder::Build() {
  action_nodes_.resize(schedule_.num_ranks);
  for (const auto& actions : schedule_.rank_actions) {
    bool backward = false, alternates = false;
    for (const Action& action : actions) {
      backward |= action.op != Op::kForward;
      alternates |= backward && action.op == Op::kForward;
    }
    alternates_.push_back(alternates &&
                          schedule_.num_stages > schedule_.num_ranks);
  }
  for (int rank = 0; rank < schedule_.num_ranks; ++rank) AddRank(rank);
  for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
    const auto& actions = schedule_.rank_actions[rank];
    for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
      const Action& action = actions[i];
      if (action.op == Op::kBackwardWeight) continue;
      const bool is_forward = action.op == Op::kForward;
      const int from_stage = action.stage + (is_forward ? -1 : 1);
      if (from_stage < 0 || from_stage == schedule_.num_stages) continue;
      const auto found =
          outputs_.find({is_forward ? Output::kActivation : Output::kGradient,
                         from_stage, action.microbatch});
      if (found != outputs_.end()) Connect(found->second, {rank, i});
    }
  }
  return std::move(graph_);
}

// Adds the actions of one rank, in a chain with the updates between them.
void Builder::AddRank(int rank) {
  const auto& actions = schedule_.rank_actions[rank];
  const int per_update = schedule_.weights.microbatches_per_update;
  std::map<std::pair<int, int>, int> num_gradients;  // by stage and update
  int previous = -1;
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    const Action& action = actions[i];
    const int node = graph_.Add(ActionSeconds(costs_, action));
    action_nodes_[rank].push_back(node);
    if (previous >= 0) graph_.AddEdge(previous, node);
    previous = node;
    if (action.op != Op::kBackwardWeight) {
      const Output output =
          action.op == Op::kForward ? Output::kActivation : Output::kGradient;
      outputs_[{output, action.stage, action.microbatch}] = {rank, i};
    }
    if (!EndsBackward(action)) continue;
    const std::pair<int, int> group = {action.stage,
                                       action.microbatch / per_update};
    if (++num_gradients[group] < per_update) continue;
    previous = graph_.Add(At(costs_.update_seconds, action.stage));
    graph_.AddEdge(node, previous);
    updates_.push_back({rank, previous});
  }
}

void Builder::Connect(Place producer, Place consumer) {
  const int from = NodeOf(producer);
  const int to = NodeOf(consumer);
  if (producer.first == consumer.first) {
    graph_.AddEdge(from, to);
    return;
  }
  const int transfer = graph_.Add(
      TransferSeconds(costs_, ActionAt(producer), ActionAt(consumer).stage));
  graph_.AddEdge(from, transfer);
  graph_.AddEdge(transfer, to);
  if (transfers_ == Transfers::kBuffered) return;
  const auto [unused_first, sent] = Block(producer);
  const auto [needed, unused_last] = Block(consumer);
  graph_.AddEdge(NodeOf({producer.first, sent}), transfer);
  if (sent + 1 < static_cast<int>(action_nodes_[producer.first].size())) {
    graph_.AddEdge(transfer, NodeOf({producer.first, sent + 1}));
  }
  if (needed > 0) {
    graph_.AddEdge(NodeOf({consumer.first, needed - 1}), transfer);
  }
  graph_.AddEdge(transfer, NodeOf({consumer.first, needed}));
}

// First and last position of the actions between two exchanges.
std::pair<int, int> Builder::Block(Place place) const {
  const auto& actions = schedule_.rank_actions[place.first];
  const auto is_forward = [&](int i) {
    return i >= 0 && i < static_cast<int>(actions.size()) &&
           actions[i].op == Op::kForward;
  };
  const int i = place.second;
  if (!alternates_[place.first]) return {i, i};
  if (is_forward(i) && !is_forward(i + 1)) return {i, i + 1};
  if (!is_forward(i) && is_forward(i - 1)) return {i - 1, i};
  return {i, i};
}

absl::Status Deadlock(const Schedule& schedule, const Builder& builder,
                      const Graph& graph) {
  std::string stuck;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const auto& actions = schedule.rank_actions[rank];
    for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
      if (graph.nodes[builder.NodeOf({rank, i})].has_run) continue;
      absl::StrAppend(&stuck, stuck.empty() ? "" : ", ", "rank ", rank,
                      " at position ", i, " (", ToString(actions[i]), ")");
      break;
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat("deadlock: stuck are ", stuck));
}

double PeakMicrobatches(const Schedule& schedule, int rank) {
  int now = 0;
  int peak = 0;
  for (const Action& action : schedule.rank_actions[rank]) {
    if (action.op == Op::kForward) peak = std::max(peak, ++now);
    if (EndsBackward(action)) --now;
  }
  const auto num_chunks = schedule.StagesOf(rank).size();
  return static_cast<double>(peak) / static_cast<double>(num_chunks);
}

}  // namespace

Costs EqualStages(const Schedule& schedule, double forward_seconds,
                  double backward_seconds) {
  const int n = schedule.num_stages;
  Costs costs;
  costs.forward_seconds.assign(n, forward_seconds);
  costs.backward_seconds.assign(n, backward_seconds);
  costs.backward_input_seconds.assign(n, backward_seconds / 2);
  costs.backward_weight_seconds.assign(n, backward_seconds / 2);
  return costs;
}

absl::StatusOr<Timing> Evaluate(const Schedule& schedule, const Costs& costs,
                                Transfers transfers) {
  Builder builder(schedule, costs, transfers);
  Graph graph = builder.Build();
  if (graph.Run() > 0) return Deadlock(schedule, builder, graph);
  Timing timing;
  for (const Node& node : graph.nodes) {
    timing.makespan_seconds = std::max(timing.makespan_seconds, node.end());
  }
  timing.start_seconds.resize(schedule.num_ranks);
  timing.end_seconds.resize(schedule.num_ranks);
  timing.busy_seconds.assign(schedule.num_ranks, 0);
  timing.update_seconds.assign(schedule.num_ranks, 0);
  for (const auto& [rank, node] : builder.updates()) {
    timing.update_seconds[rank] += graph.nodes[node].seconds;
  }
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    std::vector<double>& starts = timing.start_seconds[rank];
    std::vector<double>& ends = timing.end_seconds[rank];
    const int num_actions =
        static_cast<int>(schedule.rank_actions[rank].size());
    for (int i = 0; i < num_actions; ++i) {
      const Node& node = graph.nodes[builder.NodeOf({rank, i})];
      starts.push_back(node.start);
      ends.push_back(node.end());
      timing.busy_seconds[rank] += node.seconds;
    }
    timing.idle_seconds.push_back(timing.makespan_seconds -
                                  timing.busy_seconds[rank] -
                                  timing.update_seconds[rank]);
    timing.span_seconds.push_back(
        starts.empty() ? 0 : ends.back() - starts.front());
    timing.peak_microbatches.push_back(PeakMicrobatches(schedule, rank));
  }
  return timing;
}

}  // namespace weir::oracle
