// SPDX-License-Identifier: Apache-2.0
#include "sim/lone_seconds.h"

#include <algorithm>
#include <cmath>

#include "sim/action_seconds.h"

namespace weir {
namespace {

constexpr double kFewBytes = 4;

CollectiveKind KindOf(LayerCollective::Kind kind) {
  switch (kind) {
    case LayerCollective::Kind::kAllGather:
      return CollectiveKind::kAllGather;
    case LayerCollective::Kind::kReduceScatter:
      return CollectiveKind::kReduceScatter;
    case LayerCollective::Kind::kAllToAll:
      return CollectiveKind::kAllToAll;
    default:
      return CollectiveKind::kAllReduce;
  }
}

double SecondsOver(const Network& network, const Route& route, double bytes) {
  double slowest = 0;
  for (int32_t link : route.links) {
    slowest = std::max(slowest, bytes / network.links()[link].bytes_per_second);
  }
  return route.latency_seconds + slowest;
}

}  // namespace

LoneSeconds::LoneSeconds(const PipelineInputs& inputs)
    : in_(inputs),
      ways_(inputs.network, inputs.costs.collectives, inputs.costs.links,
            &scratch_),
      tensors_(inputs.placement.pipeline),
      experts_(inputs.placement.pipeline) {}

void LoneSeconds::AddCalls(const Action& action, Calls* calls) const {
  const bool forward = action.op == Op::kForward;
  if (!forward && !MakesInputGradient(action.op)) return;
  const StageCosts& stage = in_.costs.stages[action.stage];
  const bool fused = action.op == Op::kBackward;
  for (const LayerCollective& one :
       forward ? stage.forward_collectives : stage.backward_collectives) {
    // Flows carry whole bytes; without any nobody waits for a latency.
    if (one.bytes * action.num_microbatches * one.count < kFewBytes) continue;
    const Collectives call = {KindOf(one.kind),
                              one.bytes * action.num_microbatches,
                              static_cast<double>(one.count)};
    if (one.group == LayerCollective::Group::kExpert) {
      if (in_.costs.expert_parallel > 1) calls->experts.push_back(call);
    } else if (in_.placement.tensor > 1) {
      const bool hides = one.overlaps_input_gradient ||
                         (one.overlaps_weight_gradient && fused);
      (hides ? calls->beside : calls->in_line).push_back(call);
    }
  }
}

double LoneSeconds::OfCalls(const Group& group,
                            const std::vector<Collectives>& calls) {
  // Flows carry whole bytes.
  const double rounding = 0.5 * std::max(group.intra_seconds_per_byte,
                                         group.inter_seconds_per_byte);
  return std::max(ways_.SecondsAlone(group, calls) - rounding, 0.0);
}

const Group& LoneSeconds::TensorGroup(int rank) {
  std::optional<Group>& group = tensors_[rank];
  if (!group.has_value()) {
    std::vector<int> gpus;
    for (int t = 0; t < in_.placement.tensor; ++t) {
      gpus.push_back(in_.placement.gpu(0, rank, t));
    }
    group = ways_.GroupOf(gpus);
  }
  return *group;
}

const Group& LoneSeconds::ExpertGroup(int rank) {
  std::optional<Group>& group = experts_[rank];
  if (!group.has_value()) {
    std::vector<int> gpus;
    for (int r = 0; r < in_.costs.expert_parallel; ++r) {
      gpus.push_back(in_.placement.gpu(r, rank, 0));
    }
    group = ways_.GroupOf(gpus);
  }
  return *group;
}

double LoneSeconds::OfPass(const PassKind& kind) {
  const int rank = kind.rank;
  if (!IsCompute(kind.action.op)) return OfOffload(rank, kind.action);
  const Action* other =
      kind.overlapped.has_value() ? &*kind.overlapped : nullptr;
  double seconds =
      PassSeconds(in_.schedule, in_.costs, in_.placement.index(0, rank, 0),
                  rank, kind.action, other);
  const auto host_of = [&](const Action& action) {
    return in_.costs.stages[action.stage].host_seconds_of(
        static_cast<int>(action.op));
  };
  Calls calls;
  AddCalls(kind.action, &calls);
  double host = host_of(kind.action);
  if (other != nullptr) {
    AddCalls(*other, &calls);
    host += host_of(*other);
  }
  double in_line = 0, experts = 0, beside = 0;
  if (!calls.in_line.empty())
    in_line = OfCalls(TensorGroup(rank), calls.in_line);
  if (!calls.experts.empty())
    experts = OfCalls(ExpertGroup(rank), calls.experts);
  if (!calls.beside.empty()) beside = OfCalls(TensorGroup(rank), calls.beside);
  if (host > 0) seconds = std::max(seconds, host - in_line - experts);
  return std::max(seconds + in_line, beside) + experts;
}

double LoneSeconds::OfOffload(int rank, const Action& action) {
  const int gpu = in_.placement.gpu(0, rank, 0);
  const StageCosts& stage =
      in_.costs.of(in_.placement.index(0, rank, 0), action.stage);
  const double bytes =
      std::round(in_.costs.stages[action.stage].activation_bytes *
                 action.num_microbatches);
  const Route route = action.op == Op::kOffload
                          ? in_.network.RouteToHost(gpu)
                          : in_.network.RouteFromHost(gpu);
  if (bytes > 0 && !route.links.empty()) {
    return SecondsOver(in_.network, route, bytes);
  }
  return std::max(stage.offload_seconds * action.num_microbatches, 0.0);
}

double LoneSeconds::OfHop(const HopKind& hop) {
  const int from = in_.placement.gpu(0, hop.from_rank, 0);
  const int to = in_.placement.gpu(0, hop.to_rank, 0);
  const double bytes =
      std::round(in_.costs.sent_bytes(hop.forward ? hop.stage : hop.stage - 1) *
                 hop.num_microbatches);
  const double extra = in_.communication.transfers() == BLOCKING
                           ? in_.costs.exchange_seconds
                           : 0;
  const Route& route = ways_.RouteOf(from, to);
  if (!(bytes > 0) || route.links.empty()) return route.latency_seconds + extra;
  const SendCost send = ways_.SendBetween(from, to, bytes, extra);
  return SecondsOver(in_.network, scratch_.pairs[send.pair].route, send.bytes);
}

std::vector<int> LoneSeconds::SteppedStages(int rank) const {
  if (!in_.schedule.flush) return in_.schedule.StagesOf(rank);
  std::vector<int> stages;
  for (int32_t position : in_.semantics.update_positions[rank]) {
    stages.push_back(in_.schedule.rank_actions[rank][position].stage);
  }
  return stages;
}

double LoneSeconds::StepSeconds(int rank, const std::vector<int>& stages,
                                size_t i) const {
  const StageCosts& stage =
      in_.costs.of(in_.placement.index(0, rank, 0), stages[i]);
  return stage.optimizer_seconds - (i > 0 ? stage.update_seconds : 0);
}

double LoneSeconds::OfTail(int rank, bool with_reductions) {
  if (in_.schedule.forward_only) return 0;
  const std::vector<int> stages = SteppedStages(rank);
  double steps = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    steps += StepSeconds(rank, stages, i);
  }
  if (!with_reductions || in_.placement.data == 1 || in_.costs.shards > 1 ||
      in_.communication.gradient_reduction() != REDUCTION_BLOCKING) {
    return steps;
  }
  return std::max(steps, OfReductions(rank));
}

// All through before the last step, of whichever stage.
double LoneSeconds::OfReductions(int rank) {
  const std::vector<int> stages = SteppedStages(rank);
  std::vector<int> gpus;
  for (int r = 0; r < in_.placement.data; ++r) {
    gpus.push_back(in_.placement.gpu(r, rank, 0));
  }
  const Group group = ways_.GroupOf(gpus);
  const CollectiveKind kind = in_.costs.optimizer_shards > 1
                                  ? CollectiveKind::kReduceScatter
                                  : CollectiveKind::kAllReduce;
  double seconds = 0, least_step = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    const StageCosts& stage = in_.costs.stages[stages[i]];
    // Copies on other ranks have groups of their own.
    if (in_.schedule.RanksOf(stages[i]).size() > 1) return 0;
    const double dense =
        stage.gradient_bytes -
        (in_.costs.expert_parallel > 1 ? stage.expert_gradient_bytes : 0);
    if (dense > 0) {
      seconds += OfCalls(group, {{kind, dense, 1}});
    }
    const double step =
        StepSeconds(rank, stages, i) -
        (i == 0 && stages.size() > 1 ? stage.update_seconds : 0);
    least_step = i == 0 ? step : std::min(least_step, step);
  }
  return seconds + least_step;
}

}  // namespace weir
