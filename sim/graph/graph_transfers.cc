// SPDX-License-Identifier: Apache-2.0
// Transfers between stages.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sim/graph/graph_builder.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/graph/queues.h"

namespace weir::sim {

void GraphBuilder::AddTransfers() {
  const size_t size = static_cast<size_t>(place_.data) * place_.tensor *
                      schedule_.num_stages * schedule_.total_microbatches();
  graph_.transfers.activations.assign(size, PipelineGraph::kNone);
  graph_.transfers.gradients.assign(size, PipelineGraph::kNone);
  for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
    const auto& actions = Actions(gpu);
    for (size_t i = 0; i < actions.size(); ++i) {
      AddTransfer(gpu, static_cast<int32_t>(i), actions[i]);
    }
  }
}

void GraphBuilder::AddTransfer(int sender, int32_t produced,
                               const schedules::Action& action) {
  const bool forward = action.op == schedules::Op::kForward;
  if (!forward && !schedules::MakesInputGradient(action.op)) return;
  const int to = action.stage + (forward ? 1 : -1);
  if (to < 0 || to >= schedule_.num_stages) return;
  const schedules::Place next =
      dependencies_.Find(action.op, to, action.microbatch);
  const int rank = graph_.rank_of(sender);
  if (next.rank == rank) return;
  const int receiver = sender + (next.rank - rank) * place_.tensor;
  // A gradient is as large as the activation to which it belongs.
  const double bytes =
      std::round(in_.costs.sent_bytes(forward ? action.stage : to) *
                 action.num_microbatches);
  const int32_t producer = graph_.ActionEnd(sender, produced);
  const int from_gpu = place_.gpus[sender], to_gpu = place_.gpus[receiver];
  const scenarios::Route& route = lowering_.RouteOf(from_gpu, to_gpu);
  const bool flow = bytes > 0 && !route.links.empty();
  if (!flow && route.latency_seconds == 0 && !blocking_) {
    AddEdgeTo(producer, receiver, next.position);
    return;
  }
  const double extra = blocking_ ? in_.costs.exchange_seconds : 0;
  int32_t transfer;
  if (flow) {
    const SendCost send = lowering_.SendBetween(
        from_gpu, to_gpu, bytes, extra,
        RoleOf(InstanceRole::Kind::kSend, sender, next.rank));
    transfer = graph_.tasks.AddFlow(send.pair, send.bytes);
  } else {
    transfer = graph_.tasks.AddTimer(route.latency_seconds + extra);
  }
  (forward ? graph_.transfers.activations
           : graph_.transfers.gradients)[graph_.TransferCell(
      sender, action.stage, action.microbatch)] = transfer;
  graph_.tasks.AddEdge(producer, transfer);
  AddEdgeTo(transfer, receiver, next.position);
  if (flow && has_queues_) {
    AddQueue(sender, produced, receiver, next.position, transfer);
  }
  if (blocking_) {
    AddPairing(sender, produced, receiver, next.position, transfer);
  }
}

bool GraphBuilder::HasQueues() const {
  if (!schedule_.forward_only || schedule_.flush ||
      schedule_.num_routes() > 1 ||
      schedule_.num_stages != schedule_.num_ranks) {
    return false;
  }
  const auto alike = [&](const schedules::Action& a,
                         const schedules::Action& b) {
    return a.microbatch == b.microbatch &&
           a.num_microbatches == b.num_microbatches;
  };
  const std::vector<schedules::Action>& first = schedule_.rank_actions.front();
  return std::all_of(schedule_.rank_actions.begin(),
                     schedule_.rank_actions.end(), [&](const auto& actions) {
                       return std::equal(actions.begin(), actions.end(),
                                         first.begin(), first.end(), alike);
                     });
}

void GraphBuilder::AddQueue(int sender, int32_t produced, int receiver,
                            int32_t consumed, int32_t transfer) {
  constexpr int32_t kRoom = kQueuedMicrobatches + 1;  // and one in progress
  if (consumed >= kRoom) {
    graph_.tasks.AddEdge(graph_.ActionEnd(receiver, consumed - kRoom),
                         transfer);
  }
  if (produced + kRoom < std::ssize(Actions(sender))) {
    AddEdgeTo(transfer, sender, produced + kRoom);
  }
}

void GraphBuilder::QueueTransfers() {
  for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
    absl::flat_hash_map<int32_t, int32_t> last;  // by pair of GPUs
    for (const schedules::Action& action : Actions(gpu)) {
      const int32_t transfer = graph_.OutboundTransfer(gpu, action);
      if (transfer == PipelineGraph::kNone || graph_.tasks.is_timer(transfer))
        continue;
      const auto [at, first] =
          last.try_emplace(graph_.tasks.pair(transfer), transfer);
      if (first) continue;
      graph_.tasks.AddEdge(at->second, transfer);
      at->second = transfer;
    }
  }
}

void GraphBuilder::AddPairing(int sender, int32_t produced, int receiver,
                              int32_t consumed, int32_t transfer) {
  const int32_t sent =
      (*graph_.exchanges)[graph_.rank_of(sender)].send_after[produced];
  const int32_t received =
      (*graph_.exchanges)[graph_.rank_of(receiver)].receive_after[consumed];
  if (sent > produced) {
    graph_.tasks.AddEdge(graph_.ActionEnd(sender, sent), transfer);
  }
  AddEdgeToNext(transfer, sender, sent);
  if (received >= 0) {
    graph_.tasks.AddEdge(graph_.ActionEnd(receiver, received), transfer);
  }
  AddEdgeToNext(transfer, receiver, received);
}

void GraphBuilder::AddEdgeToNext(int32_t before, int gpu, int32_t position) {
  const std::vector<schedules::Action>& actions = Actions(gpu);
  const auto count = static_cast<int32_t>(actions.size());
  int32_t next = position + 1;
  while (next < count && !schedules::IsCompute(actions[next].op)) ++next;
  const auto& steps = graph_.steps.plan[graph_.rank_of(gpu)];
  const auto step =
      std::lower_bound(steps.begin(), steps.end(), position + 1,
                       [](const Step& a, int32_t at) { return a.before < at; });
  if (graph_.steps.first.has_value() && step != steps.end() &&
      step->before <= next) {
    graph_.tasks.AddEdge(
        before, graph_.StepTask(gpu, static_cast<int>(step - steps.begin())));
  } else if (next < count) {
    AddEdgeTo(before, gpu, next);
  }
}

}  // namespace weir::sim
