// SPDX-License-Identifier: Apache-2.0
#include "sim/pipeline_graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"

namespace weir {
namespace {

constexpr int32_t kNone = PipelineGraph::kNone;

class Builder {
 public:
  explicit Builder(const PipelineInputs& inputs)
      : in_(inputs),
        schedule_(inputs.schedule),
        place_(inputs.placement),
        blocking_(inputs.communication.transfers() == BLOCKING),
        reduces_(inputs.placement.data > 1 &&
                 std::any_of(inputs.costs.stages.begin(),
                             inputs.costs.stages.end(),
                             [](const StageCosts& stage) {
                               return stage.gradient_bytes > 0;
                             })) {
    graph_.tensor = place_.tensor;
    graph_.pipeline = place_.pipeline;
    graph_.num_stages = schedule_.num_stages;
    graph_.total_microbatches = schedule_.total_microbatches();
    graph_.rank_stages.resize(schedule_.num_ranks);
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
      graph_.rank_stages[rank] = schedule_.StagesOf(rank);
    }
  }

  PipelineGraph Build() {
    graph_.steps = PlanSteps(schedule_, in_.semantics,
                             in_.communication.gradient_reduction());
    if (blocking_) graph_.exchanges = PlanExchanges(schedule_);
    IndexPositions();
    AddActions();
    AddTensorCollectives();
    AddSteps();
    AddReductions();
    AddStreams();
    AddTransfers();
    if (!blocking_) QueueTransfers();
    graph_.tasks.Finish();
    return std::move(graph_);
  }

 private:
  struct RingSet {
    std::vector<int32_t> pairs;  // one per hop of every ring
    int num_rings = 0;
    int num_members = 0;
    double hop_seconds = 0;  // largest latency of any hop
  };

  const std::vector<Action>& Actions(int gpu) const {
    return schedule_.rank_actions[graph_.rank_of(gpu)];
  }

  // Where each forward and each (input) gradient stands in its rank's order.
  void IndexPositions() {
    const size_t size = static_cast<size_t>(schedule_.num_stages) *
                        schedule_.total_microbatches();
    forward_position_.assign(size, kNone);
    gradient_position_.assign(size, kNone);
    for (const auto& actions : schedule_.rank_actions) {
      for (size_t i = 0; i < actions.size(); ++i) {
        if (actions[i].op == Op::kForward) {
          forward_position_[Cell(actions[i])] = static_cast<int32_t>(i);
        } else if (MakesInputGradient(actions[i].op)) {
          gradient_position_[Cell(actions[i])] = static_cast<int32_t>(i);
        }
      }
    }
  }

  size_t Cell(const Action& action) const {
    return static_cast<size_t>(action.stage) * schedule_.total_microbatches() +
           action.microbatch;
  }

  void AddActions() {
    for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
      graph_.first_action.push_back(graph_.tasks.num_tasks());
      for (const Action& action :
           schedule_.rank_actions[gpu / place_.tensor % place_.pipeline]) {
        graph_.tasks.AddTimer(in_.costs.stages[action.stage].seconds_of(
            static_cast<int>(action.op)));
      }
    }
  }

  int32_t PairOf(int from, int to) {
    const auto [at, added] = pair_index_.try_emplace(
        {from, to}, static_cast<int32_t>(graph_.tasks.pairs.size()));
    if (added) {
      graph_.tasks.pairs.push_back({from, to, RouteOf(from, to)});
    }
    return at->second;
  }

  RingSet MakeRings(const std::vector<int>& gpus) {
    RingSet set;
    set.num_members = static_cast<int>(gpus.size());
    for (const Ring& ring : in_.network.RingsOver(gpus)) {
      ++set.num_rings;
      for (size_t i = 0; i < ring.gpus.size(); ++i) {
        const int32_t pair =
            PairOf(ring.gpus[i], ring.gpus[(i + 1) % ring.gpus.size()]);
        set.pairs.push_back(pair);
        set.hop_seconds = std::max(
            set.hop_seconds, graph_.tasks.pairs[pair].route.latency_seconds);
      }
    }
    return set;
  }

  // Adds `count` ring all-reduces of `bytes` in all, from the end of `before`
  // to the timer `after`: every hop carries 2(n-1)/n of its ring's share at
  // once, the latencies of the other steps follow (measured equal to the single
  // steps, which cost n times as many flows).
  void AddAllReduce(const RingSet& rings, double bytes, int count,
                    int32_t before, int32_t after) {
    const int n = rings.num_members;
    const double hop_bytes =
        std::round(bytes * 2 * (n - 1) / n / rings.num_rings);
    if (hop_bytes == 0) {  // a stage without parameters
      graph_.tasks.AddEdge(before, after);
      return;
    }
    for (int32_t pair : rings.pairs) {
      const int32_t flow = graph_.tasks.AddFlow(pair, hop_bytes);
      graph_.tasks.AddEdge(before, flow);
      graph_.tasks.AddEdge(flow, after);
    }
    const double steps = 2.0 * (n - 1) * count - 1;
    graph_.tasks.SetSeconds(after, steps * rings.hop_seconds);
  }

  void AddTensorCollectives() {
    if (place_.tensor == 1) return;
    for (int first = 0; first < place_.num_gpus(); first += place_.tensor) {
      const auto& actions = Actions(first);
      const RingSet rings =
          MakeRings({place_.gpus.begin() + first,
                     place_.gpus.begin() + first + place_.tensor});
      const int32_t ends =
          graph_.tasks.AddTimers(static_cast<int64_t>(actions.size()));
      graph_.first_group_end.push_back(ends);
      for (size_t i = 0; i < actions.size(); ++i) {
        const StageCosts& stage = in_.costs.stages[actions[i].stage];
        const bool forward = actions[i].op == Op::kForward;
        const int count = forward ? stage.tensor_forward_collectives
                                  : stage.tensor_backward_collectives;
        const bool collects = count > 0 && actions[i].op != Op::kBackwardWeight;
        const auto end = static_cast<int32_t>(ends + i);
        const int32_t join = collects ? graph_.tasks.AddTimer(0) : end;
        for (int t = 0; t < place_.tensor; ++t) {
          graph_.tasks.AddEdge(graph_.ActionTask(first + t, i), join);
        }
        if (collects) {
          AddAllReduce(rings,
                       forward ? stage.tensor_forward_bytes
                               : stage.tensor_backward_bytes,
                       count, join, end);
        }
      }
    }
  }

  // Steps that take no time and follow no all-reduce are left out.
  void AddSteps() {
    const bool timed = std::any_of(
        in_.costs.stages.begin(), in_.costs.stages.end(),
        [](const StageCosts& stage) { return stage.optimizer_seconds > 0; });
    for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
      if (!timed && !reduces_) {
        graph_.first_step.push_back(kNone);
        continue;
      }
      graph_.first_step.push_back(graph_.tasks.num_tasks());
      for (const Step& step : graph_.steps[graph_.rank_of(gpu)]) {
        graph_.tasks.AddTimer(in_.costs.stages[step.stage].optimizer_seconds);
      }
    }
  }

  void AddReductions() {
    if (!reduces_) return;
    for (int rank = 0; rank < place_.pipeline; ++rank) {
      const auto& steps = graph_.steps[rank];
      for (int t = 0; t < place_.tensor; ++t) {
        std::vector<int> members, gpus;
        for (int r = 0; r < place_.data; ++r) {
          members.push_back(place_.index(r, rank, t));
          gpus.push_back(place_.gpu(r, rank, t));
        }
        const RingSet rings = MakeRings(gpus);
        const auto count = static_cast<int64_t>(steps.size());
        const int32_t starts = graph_.tasks.AddTimers(count);
        const int32_t ends = graph_.tasks.AddTimers(count);
        graph_.first_reduce_start.push_back(starts);
        graph_.first_reduce_end.push_back(ends);
        for (size_t i = 0; i < steps.size(); ++i) {
          for (int member : members) {
            graph_.tasks.AddEdge(
                graph_.ActionEnd(member, steps[i].reduce_after), starts + i);
            graph_.tasks.AddEdge(ends + i, graph_.StepTask(member, i));
          }
          // One communicator: reductions of a rank run one after the other.
          if (i > 0) graph_.tasks.AddEdge(ends + i - 1, starts + i);
          AddAllReduce(rings, in_.costs.stages[steps[i].stage].gradient_bytes,
                       1, starts + i, ends + i);
        }
      }
    }
  }

  // Every GPU runs its actions and steps one after the other.
  void AddStreams() {
    for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
      const auto count = static_cast<int32_t>(Actions(gpu).size());
      const auto& steps = graph_.steps[graph_.rank_of(gpu)];
      const bool with_steps = graph_.first_step[gpu] != kNone;
      size_t step = 0;
      int32_t last = kNone;
      for (int32_t position = 0; position <= count; ++position) {
        while (with_steps && step < steps.size() &&
               steps[step].before == position) {
          const int32_t task = graph_.StepTask(gpu, static_cast<int>(step++));
          if (last != kNone) graph_.tasks.AddEdge(last, task);
          last = task;
        }
        if (position == count) break;
        if (last != kNone) {
          graph_.tasks.AddEdge(last, graph_.ActionTask(gpu, position));
        }
        last = graph_.ActionEnd(gpu, position);
      }
    }
  }

  void AddTransfers() {
    const size_t size = static_cast<size_t>(place_.data) * place_.tensor *
                        schedule_.num_stages * schedule_.total_microbatches();
    graph_.activations.assign(size, kNone);
    graph_.gradients.assign(size, kNone);
    for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
      const auto& actions = Actions(gpu);
      for (size_t i = 0; i < actions.size(); ++i) {
        AddTransfer(gpu, static_cast<int32_t>(i), actions[i]);
      }
    }
  }

  // What an action makes goes to the next stage, an input gradient to the stage
  // before.
  void AddTransfer(int sender, int32_t produced, const Action& action) {
    const bool forward = action.op == Op::kForward;
    if (!forward && !MakesInputGradient(action.op)) return;
    const int to = action.stage + (forward ? 1 : -1);
    if (to < 0 || to >= schedule_.num_stages) return;
    const int rank = graph_.rank_of(sender);
    const int to_rank = schedule_.rank_of(to, action.microbatch);
    if (to_rank == rank) return;
    const int receiver = sender + (to_rank - rank) * place_.tensor;
    // A gradient is as large as the activation it belongs to.
    const double bytes =
        std::round(in_.costs.stages[forward ? action.stage : to].output_bytes);
    const int32_t consumed =
        (forward
             ? forward_position_
             : gradient_position_)[Cell({action.op, to, action.microbatch})];
    const int32_t producer = graph_.ActionEnd(sender, produced);
    const int32_t consumer = graph_.ActionTask(receiver, consumed);
    const Route& route = RouteOf(place_.gpus[sender], place_.gpus[receiver]);
    const bool flow = bytes > 0 && !route.links.empty();
    if (!flow && route.latency_seconds == 0 && !blocking_) {
      graph_.tasks.AddEdge(producer, consumer);
      return;
    }
    const int32_t transfer =
        flow ? graph_.tasks.AddFlow(
                   PairOf(place_.gpus[sender], place_.gpus[receiver]), bytes)
             : graph_.tasks.AddTimer(route.latency_seconds);
    (forward ? graph_.activations : graph_.gradients)[graph_.TransferCell(
        sender, action.stage, action.microbatch)] = transfer;
    graph_.tasks.AddEdge(producer, transfer);
    graph_.tasks.AddEdge(transfer, consumer);
    if (blocking_) AddPairing(sender, produced, receiver, consumed, transfer);
  }

  const Route& RouteOf(int from, int to) {
    const auto [at, added] = routes_.try_emplace({from, to});
    if (added) at->second = in_.network.RouteBetween(from, to);
    return at->second;
  }

  // What one GPU sends to another goes through one queue, in the order in which
  // it was computed. (Hops of pure latency occupy nobody.)
  void QueueTransfers() {
    for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
      absl::flat_hash_map<int32_t, int32_t> last;  // by pair of GPUs
      for (const Action& action : Actions(gpu)) {
        const int32_t transfer = graph_.OutboundTransfer(gpu, action);
        if (transfer == kNone || graph_.tasks.is_timer(transfer)) continue;
        const auto [at, first] =
            last.try_emplace(graph_.tasks.pair(transfer), transfer);
        if (first) continue;
        graph_.tasks.AddEdge(at->second, transfer);
        at->second = transfer;
      }
    }
  }

  // Both ends must have come to the exchange, and leave it together.
  void AddPairing(int sender, int32_t produced, int receiver, int32_t consumed,
                  int32_t transfer) {
    const int32_t sent =
        graph_.exchanges[graph_.rank_of(sender)].send_after[produced];
    const int32_t received =
        graph_.exchanges[graph_.rank_of(receiver)].receive_after[consumed];
    if (sent > produced) {
      graph_.tasks.AddEdge(graph_.ActionEnd(sender, sent), transfer);
    }
    const int32_t next = TaskAfter(sender, sent);
    if (next != kNone) graph_.tasks.AddEdge(transfer, next);
    if (received >= 0) {
      graph_.tasks.AddEdge(graph_.ActionEnd(receiver, received), transfer);
    }
    graph_.tasks.AddEdge(transfer, TaskAfter(receiver, received));
  }

  // What a GPU does right after an action: a step or the next action.
  int32_t TaskAfter(int gpu, int32_t position) const {
    const auto& steps = graph_.steps[graph_.rank_of(gpu)];
    const auto step = std::lower_bound(
        steps.begin(), steps.end(), position + 1,
        [](const Step& a, int32_t before) { return a.before < before; });
    if (graph_.first_step[gpu] != kNone && step != steps.end() &&
        step->before == position + 1) {
      return graph_.StepTask(gpu, static_cast<int>(step - steps.begin()));
    }
    return position + 1 < static_cast<int32_t>(Actions(gpu).size())
               ? graph_.ActionTask(gpu, position + 1)
               : kNone;
  }

  const PipelineInputs& in_;
  const Schedule& schedule_;
  const Placement& place_;
  const bool blocking_;
  const bool reduces_;  // are there replicas with gradients to reduce?
  PipelineGraph graph_;
  std::vector<int32_t> forward_position_, gradient_position_;  // see Cell()
  absl::flat_hash_map<std::pair<int, int>, int32_t> pair_index_;
  absl::node_hash_map<std::pair<int, int>, Route> routes_;
};

}  // namespace

PipelineGraph BuildPipelineGraph(const PipelineInputs& inputs) {
  return Builder(inputs).Build();
}

}  // namespace weir
