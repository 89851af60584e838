// SPDX-License-Identifier: Apache-2.0
// The graph of which the oracle computes the longest paths.
#ifndef WEIR_TESTS_ORACLE_GRAPH_H_
#define WEIR_TESTS_ORACLE_GRAPH_H_

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/oracle.h"

namespace weir::oracle {

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
  // Runs all nodes that can run. Returns the number of nodes that cannot.
  int Run();
};

inline bool IsTransferToHost(const schedules::Action& action) {
  return action.op == schedules::Op::kOffload ||
         action.op == schedules::Op::kReload;
}
inline bool IsBackward(const schedules::Action& action) {
  return action.op == schedules::Op::kBackward ||
         action.op == schedules::Op::kBackwardInput;
}

// The position of an action: (rank, index on that rank).
using Place = std::pair<int, int>;
enum class Output { kActivation, kGradient, kOnHost, kBack };

// Builds the graph of a schedule: a node for every action, transfer and update.
class Builder {
 public:
  Builder(const schedules::Schedule& schedule, const Costs& costs,
          Transfers transfers)
      : schedule_(schedule), costs_(costs), transfers_(transfers) {}

  Graph Build();
  int NodeOf(Place place) const {
    return action_nodes_[place.first][place.second];
  }
  const std::vector<std::pair<int, int>>& updates() const { return updates_; }

 private:
  // Returns the node that waits for the inputs of an action. For an action of
  // an overlapped pair, this is the pair's gate.
  int BeginOf(Place place) const {
    const auto found = gates_.find(place);
    return found == gates_.end() ? NodeOf(place) : found->second;
  }
  const schedules::Action& ActionAt(Place place) const {
    return schedule_.rank_actions[place.first][place.second];
  }

  double Seconds(const schedules::Action& action, int rank);
  double PlainSeconds(const schedules::Action& action) const;
  bool Estimates(const schedules::Action& action, int rank);
  void AddNodes(int rank);
  void AddOutputs(int rank);
  void ChainCompute(int rank);
  void ChainChannel(int rank, schedules::Op op);
  void AddUpdates();
  void LimitResidents(int rank);
  void ConnectInputs(int rank);
  void Connect(Place producer, Place consumer);
  void LimitQueues(Place producer, int transfer, Place consumer);
  void FindBlocks(int rank);

  const schedules::Schedule& schedule_;
  const Costs& costs_;
  const Transfers transfers_;
  Graph graph_;
  std::vector<std::vector<int>> action_nodes_;
  std::map<Place, int> gates_;  // of overlapped pairs
  // For each compute action, the first and last position of the block between
  // two exchanges that contains it.
  std::map<Place, std::pair<int, int>> blocks_;
  std::vector<std::pair<int, int>> updates_;  // rank, node
  std::map<std::tuple<Output, int, int>, Place> outputs_;
  std::map<std::tuple<int, int, int>, bool> estimated_;  // rank, stage, update
};

}  // namespace weir::oracle

#endif  // WEIR_TESTS_ORACLE_GRAPH_H_
