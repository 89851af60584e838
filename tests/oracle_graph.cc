// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle_graph.h"

#include <algorithm>
#include <deque>
#include <set>

namespace weir::oracle {
namespace {

double At(const std::vector<double>& seconds, int stage) {
  return seconds.empty() ? 0 : seconds[stage];
}

double TransferSeconds(const Costs& costs, const schedules::Action& producer,
                       int to_stage) {
  double seconds = costs.latency_seconds;
  if (costs.hop_seconds) seconds += costs.hop_seconds(producer.stage, to_stage);
  if (costs.transfer_seconds) seconds += costs.transfer_seconds(producer);
  return seconds;
}

// Returns true if all gradients of the microbatch are complete after `action`.
bool EndsBackward(const schedules::Action& action) {
  return action.op == schedules::Op::kBackward ||
         action.op == schedules::Op::kBackwardWeight;
}

}  // namespace

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

Graph Builder::Build() {
  action_nodes_.resize(schedule_.num_ranks);
  for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
    AddNodes(rank);
    AddOutputs(rank);
    FindBlocks(rank);
  }
  for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
    ChainCompute(rank);
    ChainChannel(rank, schedules::Op::kOffload);
    ChainChannel(rank, schedules::Op::kReload);
    if (schedule_.resident_activations > 0) LimitResidents(rank);
    ConnectInputs(rank);
  }
  AddUpdates();
  return std::move(graph_);
}

double Builder::PlainSeconds(const schedules::Action& action) const {
  double seconds = 0;
  switch (action.op) {
    case schedules::Op::kForward:
      seconds = At(costs_.forward_seconds, action.stage);
      break;
    case schedules::Op::kBackward:
      seconds = At(costs_.backward_seconds, action.stage);
      break;
    case schedules::Op::kBackwardInput:
      seconds = At(costs_.backward_input_seconds, action.stage);
      break;
    case schedules::Op::kBackwardWeight:
      seconds = At(costs_.backward_weight_seconds, action.stage);
      break;
    case schedules::Op::kOffload:
    case schedules::Op::kReload:
      seconds = At(costs_.offload_seconds, action.stage);
      break;
    case WEIR_UNSCHEDULED_OPS:
      break;
  }
  return seconds * action.num_microbatches;
}

// Returns true if the weights are predicted before this action, and records the
// prediction where only the first forward of an update makes one.
bool Builder::Estimates(const schedules::Action& action, int rank) {
  using Prediction = schedules::WeightPolicy::Prediction;
  const schedules::WeightPolicy& weights = schedule_.weights;
  const bool forward = action.op == schedules::Op::kForward;
  if (!forward && !IsBackward(action)) return false;
  const auto& distance =
      forward ? weights.forward_distance : weights.backward_distance;
  if (At(distance, action.stage) == 0) return false;
  if (weights.prediction == Prediction::kForwardAndBackward) return true;
  if (weights.prediction == Prediction::kForward) return forward;
  if (weights.prediction == Prediction::kBackward) return !forward;
  if (weights.prediction == Prediction::kFirstForwardOfUpdate && forward) {
    const int size =
        weights.microbatches_per_update *
        (weights.times_replicas
             ? static_cast<int>(schedule_.RanksOf(action.stage).size())
             : 1);
    const int update = action.microbatch / size;
    bool& done = estimated_[{rank, action.stage, update}];
    return !std::exchange(done, true);
  }
  return false;
}

// Returns the seconds that an action takes in addition to its own pass: weight
// prediction and compression.
double Builder::Seconds(const schedules::Action& action, int rank) {
  double seconds =
      Estimates(action, rank) ? At(costs_.prediction_seconds, action.stage) : 0;
  if (!schedule_.compressed_transfers) return seconds;
  if (action.op != schedules::Op::kForward && !IsBackward(action))
    return seconds;
  for (int boundary : {action.stage - 1, action.stage}) {
    if (boundary < 0 || boundary + 1 == schedule_.num_stages) continue;
    const auto& route =
        schedule_
            .routes[action.microbatch / schedule_.microbatches_per_route_turn %
                    schedule_.routes.size()];
    if (route[boundary] == route[boundary + 1]) continue;
    seconds += At(costs_.codec_seconds, boundary) * action.num_microbatches;
  }
  return seconds;
}

void Builder::AddNodes(int rank) {
  const auto& actions = schedule_.rank_actions[rank];
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    const double extra = Seconds(actions[i], rank);
    if (!actions[i].overlaps_next) {
      action_nodes_[rank].push_back(
          graph_.Add(PlainSeconds(actions[i]) + extra));
      continue;
    }
    const schedules::Action& other = actions[i + 1];
    const schedules::Action& forward =
        actions[i].op == schedules::Op::kForward ? actions[i] : other;
    double seconds = PlainSeconds(actions[i]) + PlainSeconds(other);
    if (!costs_.overlapped_seconds.empty()) {
      seconds =
          costs_.overlapped_seconds[forward.stage] * forward.num_microbatches;
    }
    seconds += extra + Seconds(other, rank);
    const int gate = graph_.Add(0);
    for (int k : {i, i + 1}) {
      gates_[{rank, k}] = gate;
      action_nodes_[rank].push_back(graph_.Add(seconds));
      graph_.AddEdge(gate, action_nodes_[rank].back());
    }
    ++i;
  }
}

void Builder::AddOutputs(int rank) {
  const auto& actions = schedule_.rank_actions[rank];
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    const schedules::Action& action = actions[i];
    if (action.op == schedules::Op::kBackwardWeight) continue;
    const Output output =
        action.op == schedules::Op::kForward   ? Output::kActivation
        : action.op == schedules::Op::kOffload ? Output::kOnHost
        : action.op == schedules::Op::kReload  ? Output::kBack
                                               : Output::kGradient;
    for (int k = 0; k < action.num_microbatches; ++k) {
      outputs_[{output, action.stage, action.microbatch + k}] = {rank, i};
    }
  }
}

void Builder::ChainCompute(int rank) {
  const auto& actions = schedule_.rank_actions[rank];
  int last = -1, before_pair = -1;
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    if (IsTransferToHost(actions[i])) continue;
    const bool second = i > 0 && actions[i - 1].overlaps_next;
    const int previous = second ? before_pair : last;
    if (previous >= 0) {
      graph_.AddEdge(NodeOf({rank, previous}), BeginOf({rank, i}));
    }
    if (!second) before_pair = last;
    last = i;
  }
}

void Builder::ChainChannel(int rank, schedules::Op op) {
  const auto& actions = schedule_.rank_actions[rank];
  int computed = -1, moved = -1;
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    if (!IsTransferToHost(actions[i])) computed = i;
    if (actions[i].op != op) continue;
    for (int before : {computed, moved}) {
      if (before >= 0)
        graph_.AddEdge(NodeOf({rank, before}), NodeOf({rank, i}));
    }
    moved = i;
  }
}

// A forward or reload for which no slot is left waits for the first offload
// whose slot no earlier action of the order has reused.
void Builder::LimitResidents(int rank) {
  const auto& actions = schedule_.rank_actions[rank];
  int rooms = schedule_.resident_activations;
  int next_offload = 0;
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    if (IsBackward(actions[i])) rooms += actions[i].num_microbatches;
    if (actions[i].op != schedules::Op::kForward &&
        actions[i].op != schedules::Op::kReload)
      continue;
    rooms -= actions[i].num_microbatches;
    for (; rooms < 0 && next_offload < i; ++next_offload) {
      if (actions[next_offload].op != schedules::Op::kOffload) continue;
      rooms += actions[next_offload].num_microbatches;
      graph_.AddEdge(NodeOf({rank, next_offload}), BeginOf({rank, i}));
    }
  }
}

void Builder::ConnectInputs(int rank) {
  const auto& actions = schedule_.rank_actions[rank];
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    const schedules::Action& action = actions[i];
    std::set<Place> producers;
    const auto depend_on = [&](Output output, int stage) {
      for (int k = 0; k < action.num_microbatches; ++k) {
        const auto found =
            outputs_.find({output, stage, action.microbatch + k});
        if (found != outputs_.end()) producers.insert(found->second);
      }
    };
    if (action.op == schedules::Op::kForward)
      depend_on(Output::kActivation, action.stage - 1);
    if (action.op == schedules::Op::kReload)
      depend_on(Output::kOnHost, action.stage);
    if (IsBackward(action)) {
      depend_on(Output::kGradient, action.stage + 1);
      depend_on(Output::kBack, action.stage);
    }
    for (const Place& producer : producers) Connect(producer, {rank, i});
  }
}

void Builder::Connect(Place producer, Place consumer) {
  const int from = NodeOf(producer);
  const int to = BeginOf(consumer);
  if (producer.first == consumer.first) {
    graph_.AddEdge(from, to);
    return;
  }
  const int transfer = graph_.Add(
      TransferSeconds(costs_, ActionAt(producer), ActionAt(consumer).stage));
  graph_.AddEdge(from, transfer);
  graph_.AddEdge(transfer, to);
  if (costs_.queued_microbatches > 0) {
    LimitQueues(producer, transfer, consumer);
  }
  if (transfers_ == Transfers::kBuffered) return;
  const int sent = blocks_.at(producer).second;
  const int received = blocks_.at(consumer).first;
  graph_.AddEdge(NodeOf({producer.first, sent}), transfer);
  const auto next = blocks_.upper_bound({producer.first, sent});
  if (next != blocks_.end() && next->first.first == producer.first) {
    graph_.AddEdge(transfer, BeginOf(next->first));
  }
  auto at = blocks_.find({consumer.first, received});
  graph_.AddEdge(transfer, BeginOf(at->first));
  if (at != blocks_.begin() && (--at)->first.first == consumer.first) {
    graph_.AddEdge(NodeOf(at->first), transfer);
  }
}

// A queue slot of an input is free once the pass over an earlier input has
// ended; a slot of an output is free once an earlier output has been sent.
void Builder::LimitQueues(Place producer, int transfer, Place consumer) {
  const int num_earlier = costs_.queued_microbatches + 1;
  const Place frees = {consumer.first, consumer.second - num_earlier};
  if (frees.second >= 0) graph_.AddEdge(NodeOf(frees), transfer);
  const Place waits = {producer.first, producer.second + num_earlier};
  if (waits.second < std::ssize(schedule_.rank_actions[waits.first])) {
    graph_.AddEdge(transfer, BeginOf(waits));
  }
}

void Builder::FindBlocks(int rank) {
  const auto& actions = schedule_.rank_actions[rank];
  std::vector<int> computes;
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    if (!IsTransferToHost(actions[i])) computes.push_back(i);
  }
  const auto is_pair = [&](size_t k) {
    return k + 1 < computes.size() &&
           actions[computes[k]].op == schedules::Op::kForward &&
           IsBackward(actions[computes[k + 1]]);
  };
  int num_pairs = 0;
  for (size_t k = 0; k < computes.size(); ++k) num_pairs += is_pair(k);
  const bool alternates = num_pairs > 1 && schedule_.StagesOf(rank).size() > 1;
  for (size_t k = 0; k < computes.size();) {
    const bool two =
        actions[computes[k]].overlaps_next ||
        (alternates && is_pair(k) && !actions[computes[k + 1]].overlaps_next);
    const std::pair<int, int> block = {computes[k], computes[k + two]};
    for (size_t end = k + two; k <= end; ++k)
      blocks_[{rank, computes[k]}] = block;
  }
}

// Adds the updates of each stage on every rank that holds it, after the
// gradients of all these ranks.
void Builder::AddUpdates() {
  const int total = schedule_.num_microbatches * schedule_.num_batches;
  for (int stage = 0; stage < schedule_.num_stages; ++stage) {
    const std::vector<int> copies = schedule_.RanksOf(stage);
    const int size =
        schedule_.weights.microbatches_per_update *
        (schedule_.weights.times_replicas ? static_cast<int>(copies.size())
                                          : 1);
    for (int update = 0; update < total / size; ++update) {
      std::map<int, int> last;  // position of the last gradient, by rank
      for (int rank : copies) {
        const auto& actions = schedule_.rank_actions[rank];
        for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
          if (actions[i].stage == stage && EndsBackward(actions[i]) &&
              actions[i].microbatch / size == update) {
            last[rank] = i;
          }
        }
      }
      for (const auto& [rank, position] : last) {
        const int node = graph_.Add(At(costs_.update_seconds, stage));
        updates_.push_back({rank, node});
        const int count = static_cast<int>(schedule_.rank_actions[rank].size());
        for (const auto& [other, at] : last) {
          graph_.AddEdge(NodeOf({other, at}), node);
        }
        if (schedule_.flush) {
          graph_.AddEdge(NodeOf({rank, count - 1}), node);
          continue;
        }
        const int end = blocks_.at({rank, position}).second;
        const bool pair = schedule_.rank_actions[rank][position].overlaps_next;
        for (int i = pair ? end + 1 : position + 1; i < count; ++i) {
          if (IsTransferToHost(ActionAt({rank, i}))) continue;
          graph_.AddEdge(node, BeginOf({rank, i}));
          break;
        }
      }
    }
  }
}

}  // namespace weir::oracle
