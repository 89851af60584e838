// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/antichain_dag.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/size_limits.h"
#include "base/status_macros.h"

namespace weir::plan {
namespace {

class Bits {
 public:
  explicit Bits(int size) : words_((size + 63) / 64, 0) {}
  void Set(int i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  bool Has(int i) const { return words_[i / 64] >> (i % 64) & 1; }
  void Add(const Bits& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  bool Meets(const Bits& other) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & other.words_[i]) != 0) return true;
    }
    return false;
  }
  std::vector<int> Members() const {
    std::vector<int> members;
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t word = words_[i]; word != 0; word &= word - 1) {
        members.push_back(static_cast<int>(i * 64) + __builtin_ctzll(word));
      }
    }
    return members;
  }

 private:
  std::vector<uint64_t> words_;
};

using Edges = std::vector<std::vector<int>>;

// Returns all nodes reachable through `next`, by node. `back` has the reversed
// edges. Requires: no cycle.
std::vector<Bits> Reached(const Edges& next, const Edges& back) {
  const int num_nodes = static_cast<int>(next.size());
  std::vector<Bits> reached(num_nodes, Bits(num_nodes));
  std::vector<size_t> waiting;
  std::vector<int> ready;
  for (int node = 0; node < num_nodes; ++node) {
    waiting.push_back(next[node].size());
    if (next[node].empty()) ready.push_back(node);
  }
  while (!ready.empty()) {
    const int node = ready.back();
    ready.pop_back();
    for (int other : back[node]) {
      reached[other].Add(reached[node]);
      reached[other].Set(node);
      if (--waiting[other] == 0) ready.push_back(other);
    }
  }
  return reached;
}

// The profile graph without the nodes that the optimizer ignores.
struct Pruned {
  Edges readers, inputs;
  std::vector<bool> is_left_out;
  int first = -1;  // the source to start from
};

void LeaveOut(int node, Pruned* graph) {
  graph->is_left_out[node] = true;
  for (int reader : std::exchange(graph->readers[node], {})) {
    std::erase(graph->inputs[reader], node);
  }
  for (int input : std::exchange(graph->inputs[node], {})) {
    std::erase(graph->readers[input], node);
  }
}

Pruned Prune(const models::ProfileGraph& graph) {
  const int num_nodes = static_cast<int>(graph.nodes.size());
  Pruned pruned{graph.readers, graph.inputs,
                std::vector<bool>(num_nodes, false), -1};
  const auto leave_out = [&](const Edges& edges, absl::string_view prefix) {
    std::vector<int> ends;
    for (int node = 0; node < num_nodes; ++node) {
      if (!pruned.is_left_out[node] && edges[node].empty() &&
          absl::StartsWith(graph.nodes[node].description, prefix)) {
        ends.push_back(node);
      }
    }
    for (int node : ends) LeaveOut(node, &pruned);
  };
  leave_out(pruned.inputs, "Input");
  leave_out(pruned.readers, "__getitem__");
  for (int node = num_nodes - 1; node >= 0; --node) {
    if (!pruned.is_left_out[node] && pruned.inputs[node].empty()) {
      pruned.first = node;
    }
  }
  return pruned;
}

// Enumerates antichains by moving from one to the next.
class Enumeration {
 public:
  Enumeration(const Pruned& graph, int max_states)
      : graph_(graph),
        max_states_(max_states),
        upstream_(Reached(graph.inputs, graph.readers)),
        downstream_(Reached(graph.readers, graph.inputs)) {}

  // Returns false if there are too many states.
  bool Run() {
    Find({graph_.first});
    for (size_t state = 0; state < augmented_.size(); ++state) {
      Continue(static_cast<int>(state));
      if (std::ssize(augmented_) > max_states_) return false;
    }
    return true;
  }

  // The antichain and the earlier nodes still read by later ones: [state].
  const Edges& augmented() const { return augmented_; }
  const Edges& next() const { return next_; }

  Bits NodesOf(int state) const {
    Bits nodes(static_cast<int>(upstream_.size()));
    for (int node : augmented_[state]) {
      nodes.Add(upstream_[node]);
      nodes.Set(node);
    }
    return nodes;
  }

 private:
  int Find(const std::vector<int>& antichain) {
    std::vector<int> key = antichain;
    std::sort(key.begin(), key.end());
    const auto [at, is_new] =
        states_.try_emplace(key, static_cast<int>(augmented_.size()));
    if (is_new) {
      antichains_.push_back(antichain);
      augmented_.push_back(Augment(antichain));
      next_.emplace_back();
    }
    return at->second;
  }

  // Adds the nodes before a member that have a reader which is neither that
  // member nor before it.
  std::vector<int> Augment(const std::vector<int>& antichain) const {
    Bits kept(static_cast<int>(upstream_.size()));
    for (int member : antichain) {
      for (int node : upstream_[member].Members()) {
        for (int reader : graph_.readers[node]) {
          if (reader != member && !upstream_[member].Has(reader))
            kept.Set(node);
        }
      }
    }
    std::vector<int> augmented = kept.Members();
    augmented.insert(augmented.end(), antichain.begin(), antichain.end());
    return augmented;
  }

  // Returns the distinct nodes that lead to no other one of them.
  std::vector<int> Antichain(const std::vector<int>& nodes) const {
    Bits members(static_cast<int>(downstream_.size()));
    for (int node : nodes) members.Set(node);
    std::vector<int> antichain;
    for (int node : nodes) {
      if (!downstream_[node].Meets(members) &&
          std::find(antichain.begin(), antichain.end(), node) ==
              antichain.end()) {
        antichain.push_back(node);
      }
    }
    return antichain;
  }

  void Continue(int state) {
    const std::vector<int> antichain = antichains_[state];
    const std::vector<int> augmented = augmented_[state];
    Bits members(static_cast<int>(downstream_.size()));
    for (int node : augmented) members.Set(node);
    for (int node : augmented) {
      for (int reader : graph_.readers[node]) {
        if (std::find(antichain.begin(), antichain.end(), reader) !=
                antichain.end() ||
            downstream_[reader].Meets(members)) {
          continue;
        }
        std::vector<int> moved = augmented;
        std::replace(moved.begin(), moved.end(), node, reader);
        const int next = Find(Antichain(moved));
        next_[state].push_back(next);
      }
    }
  }

  const Pruned& graph_;
  const int64_t max_states_;
  const std::vector<Bits> upstream_, downstream_;
  std::map<std::vector<int>, int> states_;
  Edges antichains_, augmented_, next_;
};

// Depth-first, to number states as the published code does.
std::vector<int> TopologicalOrder(const Edges& next) {
  std::vector<int> order;
  std::vector<bool> is_marked(next.size(), false);
  std::vector<std::pair<int, size_t>> path;
  for (size_t root = 0; root < next.size(); ++root) {
    if (is_marked[root]) continue;
    is_marked[root] = true;
    path.emplace_back(root, 0);
    while (!path.empty()) {
      auto& [state, edge] = path.back();
      if (edge == next[state].size()) {
        order.push_back(state);
        path.pop_back();
        continue;
      }
      const int other = next[state][edge++];
      if (is_marked[other]) continue;
      is_marked[other] = true;
      path.emplace_back(other, 0);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

// Returns all places before each place: [place].
Edges Predecessors(const Edges& next, const std::vector<int>& order) {
  const int num_states = static_cast<int>(order.size());
  std::vector<int> place(num_states);
  for (int i = 0; i < num_states; ++i) place[order[i]] = i;
  std::vector<Bits> before(num_states, Bits(num_states));
  for (int i = 0; i < num_states; ++i) {
    for (int other : next[order[i]]) {
      before[place[other]].Add(before[i]);
      before[place[other]].Set(i);
    }
  }
  Edges predecessors;
  for (const Bits& bits : before) predecessors.push_back(bits.Members());
  return predecessors;
}

AntichainState StateOf(const models::ProfileGraph& graph,
                       const Enumeration& found, int state) {
  AntichainState sums;
  sums.nodes = found.NodesOf(state).Members();
  for (int node : sums.nodes) {
    const MeasuredLayer& costs = graph.nodes[node].costs;
    sums.compute_seconds += costs.forward_seconds() + costs.backward_seconds();
    sums.activation_bytes += costs.activation_bytes();
    sums.parameter_bytes += costs.parameter_bytes();
  }
  for (int node : found.augmented()[state]) {
    sums.output_bytes += graph.nodes[node].costs.activation_bytes();
  }
  return sums;
}

}  // namespace

absl::StatusOr<AntichainDag> AntichainDagOf(absl::string_view label,
                                            const models::ProfileGraph& graph,
                                            int max_states) {
  // Every state stores its nodes and the states before it.
  constexpr double kBytesPerPair = 5, kSecondsPerPair = 5e-8;
  const double num_nodes = static_cast<double>(graph.nodes.size());
  RETURN_IF_ERROR(CheckSize(label, absl::StrCat(num_nodes, " nodes"),
                            {num_nodes * num_nodes * kBytesPerPair,
                             num_nodes * num_nodes * kSecondsPerPair},
                            "a graph with fewer, merged nodes"));
  const Pruned pruned = Prune(graph);
  if (pruned.first < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ": has no node with compute time, expected at least one"));
  }
  Enumeration found(pruned, max_states);
  if (!found.Run()) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ": has more than ", max_states,
        " antichains, all of which PipeDream's optimizer visits, expected a "
        "graph whose parallel branches are merged into nodes"));
  }
  AntichainDag dag;
  const std::vector<int> order = TopologicalOrder(found.next());
  for (int state : order) dag.states.push_back(StateOf(graph, found, state));
  dag.predecessors = Predecessors(found.next(), order);
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    dag.node_names.push_back(graph.nodes[node].costs.name());
    if (pruned.is_left_out[node] && graph.inputs[node].empty() &&
        absl::StartsWith(graph.nodes[node].description, "Input")) {
      dag.input_nodes.push_back(static_cast<int>(node));
    }
    if (!pruned.is_left_out[node] &&
        !std::binary_search(dag.states.back().nodes.begin(),
                            dag.states.back().nodes.end(),
                            static_cast<int>(node))) {
      dag.unreached_nodes.push_back(static_cast<int>(node));
    }
  }
  return dag;
}

AntichainDag AntichainDagOf(const PlannerWork& work) {
  AntichainDag dag;
  AntichainState sums;
  std::vector<int> before;
  const int num_layers = static_cast<int>(work.layers.size());
  bool has_block = false;
  for (int i = 0; i < num_layers; ++i) {
    const PlannerLayer& layer = work.layers[i];
    dag.node_names.push_back(layer.name);
    sums.nodes.push_back(i);
    sums.compute_seconds += layer.forward_seconds + layer.backward_seconds;
    sums.activation_bytes += layer.activation_bytes;
    sums.parameter_bytes += layer.parameter_bytes;
    sums.output_bytes = layer.output_bytes;
    has_block |= layer.is_block;
    const bool is_last_block =
        std::none_of(work.layers.begin() + i + 1, work.layers.end(),
                     [](const PlannerLayer& later) { return later.is_block; });
    if (i + 1 < num_layers && (!has_block || is_last_block)) {
      continue;
    }
    dag.predecessors.push_back(before);
    before.push_back(static_cast<int>(dag.states.size()));
    dag.states.push_back(sums);
  }
  return dag;
}

}  // namespace weir::plan
