// SPDX-License-Identifier: Apache-2.0
#include "sim/pipeline_graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "schedules/dependencies.h"
#include "sim/action_seconds.h"
#include "sim/rings.h"

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
        dependencies_(inputs.schedule),
        ways_(inputs.network, &graph_.tasks) {
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
    SelectReductions();
    AddActions();
    AddTensorCollectives();
    AddSteps();
    AddReductions();
    AddStreams();
    if (has_channels_) AddChannels();
    AddGathers();
    AddTransfers();
    if (!blocking_) QueueTransfers();
    graph_.tasks.Finish();
    return std::move(graph_);
  }

 private:
  const std::vector<Action>& Actions(int gpu) const {
    return schedule_.rank_actions[graph_.rank_of(gpu)];
  }

  // Both of an overlapped pair start when both can: what one waits for, the
  // other does too.
  void AddEdgeTo(int32_t before, int gpu, int32_t position) {
    const int32_t task = graph_.ActionTask(gpu, position);
    graph_.tasks.AddEdge(before, task);
    if (!has_pairs_) return;
    const std::vector<Action>& actions = Actions(gpu);
    if (actions[position].overlaps_next) {
      graph_.tasks.AddEdge(before, task + 1);
    } else if (position > 0 && actions[position - 1].overlaps_next) {
      graph_.tasks.AddEdge(before, task - 1);
    }
  }

  // Which updates are reduced. Where all copies of a stage are one GPU each,
  // nothing is; copies in one pipeline wait for each other even if their
  // gradients weigh nothing, since the next forward reads what all have made.
  void SelectReductions() {
    std::vector<Reduction> all = PlanReductions(graph_.steps);
    const auto meets = [&](const Reduction& reduction) {
      return reduction.members.size() * place_.data > 1;
    };
    const bool reduces =
        std::any_of(all.begin(), all.end(), [&](const Reduction& reduction) {
          return meets(reduction) &&
                 (in_.costs.stages[reduction.stage].gradient_bytes > 0 ||
                  (!schedule_.flush && reduction.members.size() > 1));
        });
    if (!reduces) return;
    for (const auto& steps : graph_.steps) {
      graph_.step_reduction.emplace_back(steps.size(), kNone);
    }
    for (Reduction& reduction : all) {
      if (!meets(reduction)) continue;
      const auto index = static_cast<int32_t>(graph_.reductions.size());
      for (const Reduction::Member& member : reduction.members) {
        graph_.step_reduction[member.rank][member.step] = index;
      }
      graph_.reductions.push_back(std::move(reduction));
    }
  }

  void AddActions() {
    std::vector<double> seconds;
    for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
      graph_.first_action.push_back(graph_.tasks.num_tasks());
      if (gpu % place_.tensor == 0 || !in_.costs.gpu_device.empty()) {
        seconds = ActionSeconds(in_, gpu);
      }
      const std::vector<Action>& actions = Actions(gpu);
      for (size_t i = 0; i < actions.size(); ++i) {
        has_pairs_ |= actions[i].overlaps_next;
        if (IsCompute(actions[i].op)) {
          graph_.tasks.AddTimer(seconds[i]);
        } else {
          AddOffload(gpu, actions[i], seconds[i]);
        }
      }
    }
  }

  // Over the cluster's PCIe where there is some: a flow that shares it.
  void AddOffload(int gpu, const Action& action, double seconds) {
    has_channels_ = true;
    const double bytes =
        std::round(in_.costs.stages[action.stage].activation_bytes *
                   action.num_microbatches);
    const int32_t pair = bytes > 0 ? ways_.HostPairOf(place_.gpus[gpu],
                                                      action.op == Op::kOffload)
                                   : kNone;
    if (pair == kNone) {
      graph_.tasks.AddTimer(std::max(seconds, 0.0));
    } else {
      graph_.tasks.AddFlow(pair, bytes);
    }
  }

  struct Collective {
    double bytes = 0;
    int count = 0;
  };

  Collective CollectiveOf(const Action& action) const {
    const StageCosts& stage = in_.costs.stages[action.stage];
    if (action.op == Op::kForward) {
      return {stage.tensor_forward_bytes * action.num_microbatches,
              stage.tensor_forward_collectives};
    }
    if (!MakesInputGradient(action.op)) return {};
    return {stage.tensor_backward_bytes * action.num_microbatches,
            stage.tensor_backward_collectives};
  }

  void AddTensorCollectives() {
    if (place_.tensor == 1) return;
    for (int first = 0; first < place_.num_gpus(); first += place_.tensor) {
      const auto& actions = Actions(first);
      const RingSet rings =
          ways_.RingsOver({place_.gpus.begin() + first,
                           place_.gpus.begin() + first + place_.tensor});
      const int32_t ends =
          graph_.tasks.AddTimers(static_cast<int64_t>(actions.size()));
      graph_.first_group_end.push_back(ends);
      for (size_t i = 0; i < actions.size(); ++i) {
        const auto end = static_cast<int32_t>(ends + i);
        if (actions[i].overlaps_next) {
          AddPairCollective(first, i, rings, end);
          ++i;
        } else {
          AddCollective(first, i, rings, CollectiveOf(actions[i]), {end});
        }
      }
    }
  }

  // The collectives of both follow the pair, so that it ends as one.
  void AddPairCollective(int first, size_t i, const RingSet& rings,
                         int32_t end) {
    const Collective one = CollectiveOf(Actions(first)[i]);
    const Collective other = CollectiveOf(Actions(first)[i + 1]);
    const Collective both = {one.bytes + other.bytes, one.count + other.count};
    AddCollective(first, i, rings, both, {end, end + 1});
  }

  void AddCollective(int first, size_t i, const RingSet& rings,
                     const Collective& collective,
                     std::initializer_list<int32_t> ends) {
    const bool collects = collective.count > 0;
    const int32_t join = collects ? graph_.tasks.AddTimer(0) : *ends.begin();
    for (int t = 0; t < place_.tensor; ++t) {
      graph_.tasks.AddEdge(graph_.ActionTask(first + t, i), join);
    }
    if (collects) {
      ways_.AddCollective(rings, kTwice, collective.bytes, collective.count,
                          join, ends);
    } else if (ends.size() > 1) {
      graph_.tasks.AddEdge(join, join + 1);
    }
  }

  // Steps that take no time and follow no reduction are left out.
  void AddSteps() {
    const bool timed = std::any_of(
        in_.costs.stages.begin(), in_.costs.stages.end(),
        [](const StageCosts& stage) { return stage.optimizer_seconds > 0; });
    for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
      if (!timed && graph_.reductions.empty()) {
        graph_.first_step.push_back(kNone);
        continue;
      }
      graph_.first_step.push_back(graph_.tasks.num_tasks());
      for (const Step& step : graph_.steps[graph_.rank_of(gpu)]) {
        graph_.tasks.AddTimer(in_.costs.of(gpu, step.stage).optimizer_seconds);
      }
    }
  }

  void AddReductions() {
    if (graph_.reductions.empty()) return;
    const auto count = static_cast<int64_t>(graph_.reductions.size());
    for (int t = 0; t < place_.tensor; ++t) {
      graph_.first_reduce_start.push_back(graph_.tasks.AddTimers(count));
      graph_.first_reduce_end.push_back(graph_.tasks.AddTimers(count));
      absl::flat_hash_map<std::vector<int>, RingSet> rings;  // by ranks
      // One communicator for the replicas of a rank and one for the copies of
      // a stage: what each does, it does one after the other.
      std::vector<int32_t> last_of_rank(schedule_.num_ranks, kNone);
      std::vector<int32_t> last_of_stage(schedule_.num_stages, kNone);
      for (int32_t i = 0; i < count; ++i) {
        const Reduction& reduction = graph_.reductions[i];
        std::vector<int> ranks;
        for (const auto& member : reduction.members) {
          ranks.push_back(member.rank);
        }
        const RingSet* over = nullptr;
        if (in_.costs.stages[reduction.stage].gradient_bytes > 0) {
          const auto [at, added] = rings.try_emplace(ranks);
          if (added) at->second = RingsOverCopies(ranks, t);
          over = &at->second;
        }
        AddReduction(reduction, t, i, over,
                     ranks.size() == 1 ? &last_of_rank[ranks[0]]
                                       : &last_of_stage[reduction.stage]);
      }
    }
  }

  RingSet RingsOverCopies(const std::vector<int>& ranks, int t) {
    std::vector<int> gpus;
    for (int rank : ranks) {
      for (int r = 0; r < place_.data; ++r) {
        gpus.push_back(place_.gpu(r, rank, t));
      }
    }
    return ways_.RingsOver(gpus);
  }

  // Without rings nothing moves: the copies only wait for each other.
  void AddReduction(const Reduction& reduction, int t, int32_t index,
                    const RingSet* rings, int32_t* last) {
    const int32_t start = graph_.first_reduce_start[t] + index;
    const int32_t end = graph_.first_reduce_end[t] + index;
    for (const auto& [rank, step] : reduction.members) {
      for (int r = 0; r < place_.data; ++r) {
        const int gpu = place_.index(r, rank, t);
        graph_.tasks.AddEdge(
            graph_.ActionEnd(gpu, graph_.steps[rank][step].reduce_after),
            start);
        graph_.tasks.AddEdge(end, graph_.StepTask(gpu, step));
      }
    }
    if (*last != kNone) graph_.tasks.AddEdge(*last, start);
    *last = end;
    if (rings == nullptr) {
      graph_.tasks.AddEdge(start, end);
      return;
    }
    // Shards are only reduced to where they belong.
    const bool scatters = in_.costs.shards > 1 && reduction.members.size() == 1;
    ways_.AddCollective(*rings, scatters ? kOnce : kTwice,
                        in_.costs.stages[reduction.stage].gradient_bytes, 1,
                        start, {end});
  }

  // Every GPU computes its passes and steps one after the other.
  void AddStreams() {
    for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
      const std::vector<Action>& actions = Actions(gpu);
      const auto count = static_cast<int32_t>(actions.size());
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
        if (!IsCompute(actions[position].op)) continue;
        if (last != kNone) AddEdgeTo(last, gpu, position);
        if (actions[position].overlaps_next) ++position;
        last = graph_.ActionEnd(gpu, position);
      }
    }
  }

  // Offloads and reloads: each channel in its order, after the computation
  // before it in the rank's; and whatever waits for one.
  void AddChannels() {
    FindHostWaits();
    for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
      for (const auto& [position, awaited] :
           graph_.host_waits[graph_.rank_of(gpu)]) {
        AddEdgeTo(graph_.ActionEnd(gpu, awaited), gpu, position);
      }
      const std::vector<Action>& actions = Actions(gpu);
      int32_t computed = kNone, offloaded = kNone, reloaded = kNone;
      for (int32_t i = 0; i < std::ssize(actions); ++i) {
        const int32_t end = graph_.ActionEnd(gpu, i);
        if (IsCompute(actions[i].op)) {
          computed = end;
          continue;
        }
        int32_t& channel = actions[i].op == Op::kOffload ? offloaded : reloaded;
        for (int32_t before : {computed, channel}) {
          if (before != kNone) {
            graph_.tasks.AddEdge(before, graph_.ActionTask(gpu, i));
          }
        }
        channel = end;
      }
    }
  }

  void FindHostWaits() {
    graph_.host_waits.resize(schedule_.num_ranks);
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
      const std::vector<Action>& actions = schedule_.rank_actions[rank];
      for (int32_t i = 0; i < std::ssize(actions); ++i) {
        for (Place other : dependencies_.Awaited(actions[i], {rank, i})) {
          const Op op = schedule_.rank_actions[other.rank][other.position].op;
          if (IsCompute(op)) continue;
          graph_.host_waits[rank].push_back({i, other.position});
        }
      }
    }
  }

  // The weights of the run under way and of the next one are there: a gather
  // starts when the run before the last has ended.
  void AddGathers() {
    if (in_.costs.shards == 1) return;
    graph_.weight_runs = PlanWeightRuns(schedule_);
    for (int rank = 0; rank < place_.pipeline; ++rank) {
      const auto& runs = graph_.weight_runs[rank];
      const auto count = static_cast<int64_t>(runs.size());
      for (int t = 0; t < place_.tensor; ++t) {
        const RingSet rings = RingsOverCopies({rank}, t);
        const int32_t starts = graph_.tasks.AddTimers(count);
        const int32_t ends = graph_.tasks.AddTimers(count);
        graph_.first_gather_start.push_back(starts);
        graph_.first_gather_end.push_back(ends);
        for (int32_t i = 0; i < count; ++i) {
          if (i > 0) graph_.tasks.AddEdge(ends + i - 1, starts + i);
          for (int r = 0; r < place_.data; ++r) {
            const int gpu = place_.index(r, rank, t);
            if (i > 1) {
              graph_.tasks.AddEdge(graph_.ActionEnd(gpu, runs[i - 2].last),
                                   starts + i);
            }
            AddEdgeTo(ends + i, gpu, runs[i].first);
          }
          ways_.AddCollective(rings, kOnce,
                              in_.costs.stages[runs[i].stage].weight_bytes, 1,
                              starts + i, {ends + i});
        }
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
  // before; all microbatches of the action at once.
  void AddTransfer(int sender, int32_t produced, const Action& action) {
    const bool forward = action.op == Op::kForward;
    if (!forward && !MakesInputGradient(action.op)) return;
    const int to = action.stage + (forward ? 1 : -1);
    if (to < 0 || to >= schedule_.num_stages) return;
    const Place next = dependencies_.Find(action.op, to, action.microbatch);
    const int rank = graph_.rank_of(sender);
    if (next.rank == rank) return;
    const int receiver = sender + (next.rank - rank) * place_.tensor;
    // A gradient is as large as the activation it belongs to.
    const double bytes =
        std::round(in_.costs.sent_bytes(forward ? action.stage : to) *
                   action.num_microbatches);
    const int32_t producer = graph_.ActionEnd(sender, produced);
    const int from_gpu = place_.gpus[sender], to_gpu = place_.gpus[receiver];
    const Route& route = ways_.RouteOf(from_gpu, to_gpu);
    const bool flow = bytes > 0 && !route.links.empty();
    if (!flow && route.latency_seconds == 0 && !blocking_) {
      AddEdgeTo(producer, receiver, next.position);
      return;
    }
    const int32_t transfer =
        flow ? graph_.tasks.AddFlow(ways_.PairOf(from_gpu, to_gpu), bytes)
             : graph_.tasks.AddTimer(route.latency_seconds);
    (forward ? graph_.activations : graph_.gradients)[graph_.TransferCell(
        sender, action.stage, action.microbatch)] = transfer;
    graph_.tasks.AddEdge(producer, transfer);
    AddEdgeTo(transfer, receiver, next.position);
    if (blocking_) {
      AddPairing(sender, produced, receiver, next.position, transfer);
    }
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
    AddEdgeToNext(transfer, sender, sent);
    if (received >= 0) {
      graph_.tasks.AddEdge(graph_.ActionEnd(receiver, received), transfer);
    }
    AddEdgeToNext(transfer, receiver, received);
  }

  // To what a GPU computes right after an action: a step, a pass, nothing.
  void AddEdgeToNext(int32_t before, int gpu, int32_t position) {
    const std::vector<Action>& actions = Actions(gpu);
    const auto count = static_cast<int32_t>(actions.size());
    int32_t next = position + 1;
    while (next < count && !IsCompute(actions[next].op)) ++next;
    const auto& steps = graph_.steps[graph_.rank_of(gpu)];
    const auto step = std::lower_bound(
        steps.begin(), steps.end(), position + 1,
        [](const Step& a, int32_t at) { return a.before < at; });
    if (graph_.first_step[gpu] != kNone && step != steps.end() &&
        step->before <= next) {
      graph_.tasks.AddEdge(
          before, graph_.StepTask(gpu, static_cast<int>(step - steps.begin())));
    } else if (next < count) {
      AddEdgeTo(before, gpu, next);
    }
  }

  const PipelineInputs& in_;
  const Schedule& schedule_;
  const Placement& place_;
  const bool blocking_;
  const Dependencies dependencies_;
  bool has_channels_ = false;  // does any rank offload?
  bool has_pairs_ = false;     // overlap passes?
  PipelineGraph graph_;
  Ways ways_;
};

}  // namespace

PipelineGraph BuildPipelineGraph(const PipelineInputs& inputs) {
  return Builder(inputs).Build();
}

}  // namespace weir
