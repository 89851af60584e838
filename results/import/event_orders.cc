// SPDX-License-Identifier: Apache-2.0
#include "results/import/event_orders.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace weir::results {
namespace {

bool IsOnAnotherWorker(const RecordedOperation& a, const RecordedOperation& b) {
  return a.replica != b.replica || a.rank != b.rank;
}

}  // namespace

bool IsOverReplicas(RecordedKind kind) {
  return kind == RecordedKind::kWeightGather ||
         kind == RecordedKind::kGradientReduction;
}

std::vector<EventOrder> MessageOrders(const RecordedStep& step,
                                      const OperationGroups& groups) {
  std::vector<EventOrder> orders;
  for (const std::vector<int32_t>& members : groups.members) {
    if (!IsMessage(step.begin[members[0]].kind)) continue;
    EventOrder order;
    for (const int32_t i : members) {
      const RecordedOperation& o = step.begin[i];
      (IsReceive(o.kind) ? order.second : order.first) = &o;
    }
    if (order.first == nullptr || order.second == nullptr) continue;
    if (!IsOnAnotherWorker(*order.first, *order.second)) continue;
    order.slack_seconds =
        order.second->end_seconds - order.first->start_seconds;
    orders.push_back(order);
  }
  return orders;
}

std::vector<EventOrder> PassOrders(const RecordedStep& step) {
  // (replica, is backward, microbatch, stage)
  std::map<std::tuple<int, bool, int, int>, const RecordedOperation*> passes;
  for (const auto* o = step.begin; o != step.end; ++o) {
    if (!IsPass(o->kind) || o->kind == RecordedKind::kBackwardWeight) continue;
    passes[{o->replica, o->kind != RecordedKind::kForward, o->microbatch,
            o->stage}] = o;
  }
  std::vector<EventOrder> orders;
  for (const auto& [key, pass] : passes) {
    const auto& [replica, is_backward, microbatch, stage] = key;
    const auto before = passes.find({replica, is_backward, microbatch,
                                     is_backward ? stage + 1 : stage - 1});
    if (before == passes.end() || !IsOnAnotherWorker(*before->second, *pass)) {
      continue;
    }
    orders.push_back({before->second, pass,
                      pass->start_seconds - before->second->end_seconds});
  }
  return orders;
}

std::vector<EventOrder> CollectiveOrders(const RecordedStep& step,
                                         const OperationGroups& groups) {
  std::vector<EventOrder> orders;
  for (const std::vector<int32_t>& members : groups.members) {
    if (!IsOverReplicas(step.begin[members[0]].kind)) continue;
    const int32_t last = *std::max_element(
        members.begin(), members.end(), [&](int32_t a, int32_t b) {
          return step.begin[a].start_seconds < step.begin[b].start_seconds;
        });
    const int32_t first = *std::min_element(
        members.begin(), members.end(), [&](int32_t a, int32_t b) {
          return step.begin[a].end_seconds < step.begin[b].end_seconds;
        });
    const RecordedOperation& started = step.begin[last];
    const RecordedOperation& ended = step.begin[first];
    if (!IsOnAnotherWorker(started, ended)) continue;
    orders.push_back(
        {&started, &ended, ended.end_seconds - started.start_seconds});
  }
  return orders;
}

std::vector<EventOrder> CollectiveEndOrders(const RecordedStep& step,
                                            const OperationGroups& groups,
                                            double part) {
  std::vector<EventOrder> orders;
  for (const std::vector<int32_t>& members : groups.members) {
    if (!IsOverReplicas(step.begin[members[0]].kind)) continue;
    for (const int32_t i : members) {
      for (const int32_t j : members) {
        const RecordedOperation& a = step.begin[i];
        const RecordedOperation& b = step.begin[j];
        if (!IsOnAnotherWorker(a, b)) continue;
        const double seconds = part * std::min(a.seconds(), b.seconds());
        orders.push_back({&a, &b, b.end_seconds - a.end_seconds + seconds});
      }
    }
  }
  return orders;
}

}  // namespace weir::results
