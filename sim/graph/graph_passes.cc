// SPDX-License-Identifier: Apache-2.0
// Collectives inside a pass, over the GPUs of a tensor-parallel group and over
// those across which experts or sequences are sharded.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/graph/graph_builder.h"

namespace weir::sim {

GraphBuilder::PassKey GraphBuilder::KeyOf(const PassGroup& group,
                                          size_t position) const {
  const std::vector<schedules::Action>& actions = Actions(group.firsts[0]);
  PassKey key = {};
  for (size_t i = 0; i < (actions[position].overlaps_next ? 2 : 1); ++i) {
    const schedules::Action& action = actions[position + i];
    key[3 * i] = static_cast<int>(action.op) + 1;
    key[3 * i + 1] = action.stage;
    key[3 * i + 2] = action.num_microbatches;
  }
  return key;
}

GraphBuilder::PassCalls& GraphBuilder::CallsOf(const PassGroup& group,
                                               size_t position,
                                               KnownCalls* known) const {
  std::unique_ptr<PassCalls>& made = (*known)[KeyOf(group, position)];
  if (made != nullptr) return *made;
  made = std::make_unique<PassCalls>();
  const std::vector<schedules::Action>& actions = Actions(group.firsts[0]);
  PassCollectives collectives;
  for (size_t i = 0; i < (actions[position].overlaps_next ? 2 : 1); ++i) {
    AddCollectivesOf(actions[position + i], in_.costs, full_placement_.tensor,
                     &collectives);
  }
  const auto price = [&](const std::vector<Group>& groups,
                         const std::vector<Collectives>& calls) {
    std::vector<PricedCollectives> priced;
    if (calls.empty()) return priced;
    for (const Group& members : groups) {
      priced.push_back(lowering_.Price(members, calls));
    }
    return priced;
  };
  made->in_line = price(group.tensors, collectives.in_line);
  made->overlapped = price(group.tensors, collectives.overlapped);
  made->experts = price(group.experts, collectives.experts);
  made->expert_tensor = price(group.expert_tensors, collectives.expert_tensor);
  made->context = price(group.context, collectives.context);
  made->ring = std::move(collectives.ring);
  return *made;
}

std::optional<double> GraphBuilder::MergedSeconds(const PassGroup& group,
                                                  size_t position,
                                                  const PassCalls& calls) {
  WaitForHost(group, position, calls);
  const double kernels = graph_.tasks.amount(
      graph_.ActionTask(group.firsts[0], static_cast<int>(position)));
  CommunicationLowering::UncontendedSeconds in_line, overlapped;
  if (!calls.in_line.empty()) {
    const auto uncontended =
        lowering_.UncontendedSecondsOf(group.tensors[0], calls.in_line[0]);
    if (!uncontended.has_value()) return std::nullopt;
    in_line = *uncontended;
  }
  if (!calls.overlapped.empty()) {
    const auto uncontended =
        lowering_.UncontendedSecondsOf(group.tensors[0], calls.overlapped[0]);
    if (!uncontended.has_value()) return std::nullopt;
    overlapped = *uncontended;
  }
  // Both use the same links.
  if (in_line.flow > 0 && overlapped.flow > kernels + in_line.hop_latency) {
    return std::nullopt;
  }
  return std::max(kernels + in_line.flow,
                  overlapped.flow + overlapped.latency) +
         in_line.latency;
}

bool GraphBuilder::MergePassesWithCollectives() {
  const auto slows = [](const DeviceCosts& device) {
    return device.collective_slowdown != 1 || device.copy_slowdown != 1 ||
           device.partition_slowdown != nullptr;
  };
  const bool in_pieces =
      graph_.reductions.has_value() &&
      in_.communication.gradient_reduction() == REDUCTION_OVERLAPPED;
  if (full_placement_.tensor == 1 || place_.tensor > 1 ||
      in_.costs.shards > 1 || ReplicasOfPass() > 1 ||
      (HasExpertCollectives() && groups_.folded()) || in_pieces ||
      slows(in_.costs) || !in_.costs.gpu_device.empty()) {
    return false;
  }
  std::vector<std::pair<int32_t, double>> seconds;  // by task
  for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
    const PassGroup group =
        PassGroupOf(graph_.rank_of(gpu), graph_.replica_of(gpu));
    const std::vector<schedules::Action>& actions = Actions(gpu);
    // Evaluates passes of the same kind and kernel seconds only once.
    std::map<std::pair<double, PassKey>, double> merged;
    KnownCalls known;
    for (size_t i = 0; i < actions.size(); ++i) {
      if (!schedules::IsCompute(actions[i].op)) continue;
      const int32_t task = graph_.ActionTask(gpu, static_cast<int>(i));
      const bool pair = actions[i].overlaps_next;
      const auto [at, added] =
          merged.try_emplace({graph_.tasks.amount(task), KeyOf(group, i)});
      if (added) {
        PassCalls& calls = CallsOf(group, i, &known);
        const auto taken = MergedSeconds(group, i, calls);
        if (!taken.has_value()) return false;
        at->second = *taken;
        for (auto* of : {&calls.in_line, &calls.overlapped}) {
          if (!of->empty()) {
            lowering_.CountCollectives(group.tensors[0], &of->front());
          }
        }
      }
      seconds.push_back({task, at->second});
      if (!pair) continue;
      seconds.push_back({task + 1, at->second});
      ++i;
    }
  }
  for (const auto& [task, taken] : seconds) {
    graph_.tasks.SetSeconds(task, taken);
  }
  return true;
}

void GraphBuilder::AddPassEnds() {
  if (MergePassesWithCollectives()) return;
  const bool experts = HasExpertCollectives(), sharded = in_.costs.shards > 1;
  const bool context = in_.costs.context.size() > 1;
  if (full_placement_.tensor > 1 || sharded || experts || context) {
    auto& first_end = graph_.passes.first_end.emplace();
    auto& first_context_end = graph_.passes.first_context_end;
    auto& first_tensor_end = graph_.passes.first_tensor_end;
    if (context) first_context_end.emplace();
    if (experts || context || (sharded && full_placement_.tensor > 1)) {
      first_tensor_end.emplace();
    }
    for (int gpu = 0; gpu < place_.num_gpus(); gpu += place_.tensor) {
      const auto count = std::ssize(Actions(gpu));
      first_end.push_back(graph_.tasks.AddTimers(count));
      if (first_context_end.has_value()) {
        first_context_end->push_back(graph_.tasks.AddTimers(count));
      }
      if (first_tensor_end.has_value()) {
        first_tensor_end->push_back(graph_.tasks.AddTimers(count));
      }
    }
  }
  const int num_replicas = ReplicasOfPass();
  for (int replica = 0; replica < place_.data; replica += num_replicas) {
    for (int rank = 0; rank < place_.pipeline; ++rank) {
      const PassGroup group = PassGroupOf(rank, replica);
      const auto& actions = schedule_.rank_actions[rank];
      KnownCalls known;
      for (size_t i = 0; i < actions.size(); ++i) {
        AddEndOf(group, i, &CallsOf(group, i, &known));
        if (actions[i].overlaps_next) ++i;
      }
    }
  }
}

void GraphBuilder::AddEndOf(const PassGroup& group, size_t position,
                            PassCalls* calls) {
  const std::vector<schedules::Action>& actions = Actions(group.firsts[0]);
  const bool pair = actions[position].overlaps_next;
  if (HidesExchange(actions[position])) {
    TakeMultiprocessors(group, static_cast<int>(position), *calls);
  }
  WaitForHost(group, position, *calls);
  if (!graph_.passes.first_end.has_value()) return;
  const auto at = static_cast<int>(position);
  if (graph_.passes.first_context_end.has_value()) {
    AddContext(group, at, calls);
  }
  for (size_t r = 0; r < group.firsts.size(); ++r) {
    const int first = group.firsts[r];
    const int32_t end = graph_.ActionEnd(first, at);
    if (!graph_.passes.first_tensor_end.has_value()) {
      AddTensorEnd(group, r, at, calls, end);
    } else {
      const int32_t tensor_end = graph_.TensorEnd(first, at);
      AddTensorEnd(group, r, at, calls, tensor_end);
      graph_.tasks.AddEdge(tensor_end, end);
      if (pair) graph_.tasks.AddEdge(tensor_end, tensor_end + 1);
    }
    if (pair) graph_.tasks.AddEdge(end, end + 1);
  }
  if (!calls->experts.empty() || !calls->expert_tensor.empty()) {
    AddExchange(group, at, calls);
  }
}

void GraphBuilder::AddTensorEnd(const PassGroup& group, size_t replica,
                                int position, PassCalls* calls, int32_t end) {
  std::vector<int> members;
  for (int t = 0; t < place_.tensor; ++t) {
    members.push_back(group.firsts[replica] + t);
  }
  int32_t join = end;
  if (!calls->in_line.empty()) {
    join = graph_.tasks.AddTimer(0);
    lowering_.AddCollectives(group.tensors[replica], &calls->in_line[replica],
                             join, end);
  }
  for (int gpu : members) {
    graph_.tasks.AddEdge(graph_.ActionTask(gpu, position), join);
  }
  if (graph_.passes.first_context_end.has_value()) {
    graph_.tasks.AddEdge(graph_.ContextEnd(members[0], position), join);
  }
  if (calls->overlapped.empty()) return;
  const int32_t done = graph_.tasks.AddTimer(0);
  lowering_.AddCollectives(group.tensors[replica], &calls->overlapped[replica],
                           AddOverlapped(members, position, 0), done);
  graph_.tasks.AddEdge(done, end);
}

// Kernels and messages of different layers are summed up, so the messages start
// so late that they overlap with all of the attention but nothing else.
int32_t GraphBuilder::AddRing(const PassGroup& group, int position,
                              const std::vector<Collectives>& messages) {
  const std::vector<schedules::Action>& actions = Actions(group.firsts[0]);
  const std::vector<int> gpus = GpusOf(group);
  double before = 0;
  for (int gpu : gpus) {
    double rest = graph_.tasks.amount(graph_.ActionTask(gpu, position));
    for (int i = 0; i < (actions[position].overlaps_next ? 2 : 1); ++i) {
      rest -= RingSeconds(
          actions[position + i],
          in_.costs.of(in_.gpus.IndexOf(gpu), actions[position + i].stage));
    }
    before = std::max(before, rest);
  }
  const int32_t done = graph_.tasks.AddTimer(0);
  lowering_.AddRing(group.ring, messages, AddOverlapped(gpus, position, before),
                    done);
  return done;
}

void GraphBuilder::AddContext(const PassGroup& group, int position,
                              PassCalls* calls) {
  const bool pair = Actions(group.firsts[0])[position].overlaps_next;
  lowering_.set_purpose(CallPurpose::kContext);
  int32_t done = PipelineGraph::kNone;
  if (!calls->context.empty() || !calls->ring.empty()) {
    done = graph_.tasks.AddTimer(0);
    for (int gpu : GpusOf(group)) {
      graph_.tasks.AddEdge(graph_.ActionTask(gpu, position), done);
    }
    if (!calls->ring.empty()) {
      graph_.tasks.AddEdge(AddRing(group, position, calls->ring), done);
    }
    if (!calls->context.empty()) {
      const int32_t start = std::exchange(done, graph_.tasks.AddTimer(0));
      for (size_t i = 0; i < group.context.size(); ++i) {
        const int32_t end = graph_.tasks.AddTimer(0);
        lowering_.AddCollectives(group.context[i], &calls->context[i], start,
                                 end);
        graph_.tasks.AddEdge(end, done);
      }
    }
  }
  for (int first : group.firsts) {
    const int32_t end = graph_.ContextEnd(first, position);
    for (int gpu = first; gpu < first + place_.tensor; ++gpu) {
      graph_.tasks.AddEdge(graph_.ActionTask(gpu, position), end);
    }
    if (done != PipelineGraph::kNone) graph_.tasks.AddEdge(done, end);
    if (pair) graph_.tasks.AddEdge(end, end + 1);
  }
  lowering_.set_purpose(CallPurpose::kTensor);
}

// All GPUs send at the same time, once the last of them can.
void GraphBuilder::AddExchange(const PassGroup& group, int position,
                               PassCalls* calls) {
  int32_t join = graph_.tasks.AddTimer(0);
  for (int first : group.firsts) {
    graph_.tasks.AddEdge(graph_.TensorEnd(first, position), join);
  }
  lowering_.set_purpose(CallPurpose::kExpert);
  for (int first : group.firsts) {
    graph_.passes.expert_start[graph_.ActionEnd(first, position)] = join;
  }
  // In an overlapped pair, the exchanges start together with the kernels; their
  // exposed remainder runs after `join`.
  const bool hidden = HidesExchange(Actions(group.firsts[0])[position]);
  const int32_t kernels = join;
  if (hidden) join = AddOverlapped(GpusOf(group), position, 0);
  int32_t done = join;
  const auto add = [&](const std::vector<Group>& groups,
                       std::vector<PricedCollectives>* priced) {
    if (priced->empty()) return;
    join = std::exchange(done, graph_.tasks.AddTimer(0));
    for (size_t i = 0; i < groups.size(); ++i) {
      const int32_t end = graph_.tasks.AddTimer(0);
      lowering_.AddCollectives(groups[i], &(*priced)[i], join, end);
      graph_.tasks.AddEdge(end, done);
    }
  };
  add(group.expert_tensors, &calls->expert_tensor);
  add(group.experts, &calls->experts);
  for (int first : group.firsts) {
    const int32_t end = graph_.ActionEnd(first, position);
    graph_.tasks.AddEdge(done, end);
    if (hidden) graph_.tasks.AddEdge(kernels, end);
    if (in_.costs.shards > 1) graph_.passes.expert_end[end] = done;
  }
  lowering_.set_purpose(CallPurpose::kTensor);
}

bool GraphBuilder::HidesExchange(const schedules::Action& action) const {
  return action.overlaps_next && in_.communication.overlap_expert_exchange();
}

void GraphBuilder::TakeMultiprocessors(const PassGroup& group, int position,
                                       const PassCalls& calls) {
  if (calls.experts.empty() || in_.costs.exchange_share == 0) return;
  const double seconds =
      in_.costs.exchange_share * calls.experts[0].seconds_alone;
  for (const int gpu : GpusOf(group)) {
    for (int i = 0; i < 2; ++i) {
      const int32_t task = graph_.ActionTask(gpu, position + i);
      graph_.tasks.SetSeconds(task, graph_.tasks.amount(task) + seconds);
    }
  }
}

void GraphBuilder::WaitForHost(const PassGroup& group, size_t position,
                               const PassCalls& calls) {
  const std::vector<schedules::Action>& actions = Actions(group.firsts[0]);
  const bool hidden = HidesExchange(actions[position]);
  const int num_passes = actions[position].overlaps_next ? 2 : 1;
  double host_seconds = 0;
  for (int i = 0; i < num_passes; ++i) {
    const schedules::Action& action = actions[position + i];
    host_seconds +=
        in_.costs.stages[action.stage].launches.SecondsOf(action.op);
  }
  if (host_seconds == 0) return;
  double alone = 0;
  const auto wait = [&](const std::vector<PricedCollectives>& of) {
    if (!of.empty()) alone += of[0].seconds_alone;
  };
  wait(calls.in_line);
  if (!hidden) wait(calls.experts);
  if (!hidden) wait(calls.expert_tensor);
  wait(calls.context);
  for (int first : group.firsts) {
    for (int gpu = first; gpu < first + place_.tensor; ++gpu) {
      for (int i = 0; i < num_passes; ++i) {
        const int32_t task =
            graph_.ActionTask(gpu, static_cast<int>(position) + i);
        graph_.tasks.SetSeconds(
            task, std::max(graph_.tasks.amount(task), host_seconds - alone));
      }
    }
  }
}

}  // namespace weir::sim
