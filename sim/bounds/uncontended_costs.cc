// SPDX-License-Identifier: Apache-2.0
#include "sim/bounds/uncontended_costs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "schedules/stages_by_rank.h"
#include "sim/graph/action_seconds.h"
#include "sim/graph/pass_collectives.h"
#include "sim/graph/replica_groups.h"

namespace weir::sim {
namespace {

constexpr double kFewBytes = 4;

// Seconds that each link needs for one byte over each hop, and their maximum.
class HopLoads {
 public:
  void Add(std::span<const scenarios::Link> links,
           const scenarios::Route& route) {
    for (int32_t link : route.links) {
      double& seconds = seconds_[link];
      seconds += 1 / links[link].bytes_per_second;
      largest_ = std::max(largest_, seconds);
    }
  }
  double largest() const { return largest_; }

 private:
  absl::flat_hash_map<int32_t, double> seconds_;
  double largest_ = 0;
};

}  // namespace

UncontendedCosts::UncontendedCosts(const PipelineInputs& inputs,
                                   const Representatives& gpus)
    : in_(inputs),
      links_(gpus.LinksOf(inputs.network)),
      lowering_(inputs.network, inputs.costs.collectives, inputs.costs.links,
                &scratch_, gpus),
      gpus_(gpus),
      tensors_(inputs.placement().pipeline),
      experts_(inputs.placement().pipeline),
      expert_tensors_(inputs.placement().pipeline),
      context_(inputs.placement().pipeline) {
  if (!inputs.schedule.flush)
    rank_stages_ = schedules::StagesByRank(inputs.schedule);
}

// A reduced route names a link once for each flow that it represents.
double UncontendedCosts::SecondsOver(const scenarios::Route& route,
                                     double bytes) const {
  HopLoads loads;
  loads.Add(links(), route);
  return route.latency_seconds + bytes * loads.largest();
}

UncontendedCosts::TimedGroup UncontendedCosts::Timed(Group group) const {
  TimedGroup timed;
  HopLoads all;
  const auto time = [&](const std::vector<int32_t>& hops) {
    TimedGroup::Hops times;
    HopLoads loads;
    for (const int32_t& hop : hops) {
      loads.Add(links(), route(hop));
      all.Add(links(), route(hop));
      const double latency = route(hop).latency_seconds;
      times.latency_seconds = &hop == hops.data()
                                  ? latency
                                  : std::min(times.latency_seconds, latency);
    }
    times.seconds_per_byte = loads.largest();
    return times;
  };
  timed.intra = time(group.intra_hops);
  timed.inter = time(group.inter_hops);
  if (group.shares_links) {  // all hops carry the same
    for (TimedGroup::Hops* hops : {&timed.intra, &timed.inter}) {
      hops->latency_seconds =
          std::min(timed.intra.latency_seconds, timed.inter.latency_seconds);
      hops->seconds_per_byte = all.largest();
    }
  }
  timed.group = std::move(group);
  return timed;
}

double UncontendedCosts::OfCollectives(const TimedGroup& timed,
                                       const std::vector<Collectives>& calls) {
  const CollectiveLoad load = lowering_.LoadOf(timed.group, calls);
  const auto seconds = [](const TimedGroup::Hops& hops, double bytes) {
    // Flows carry whole bytes.
    bytes = std::max(bytes - 0.5, 0.0);
    return hops.latency_seconds + bytes * hops.seconds_per_byte;
  };
  return load.latency_seconds +
         std::max(seconds(timed.intra, load.intra_bytes),
                  seconds(timed.inter, load.inter_bytes));
}

const UncontendedCosts::TimedGroup& UncontendedCosts::TensorGroup(int rank) {
  std::optional<TimedGroup>& group = tensors_[rank];
  if (!group.has_value()) {
    std::vector<int> gpus;
    for (int t = 0; t < in_.placement().tensor; ++t) {
      gpus.push_back(in_.placement().gpu(0, rank, t));
    }
    group = Timed(lowering_.GroupOf(gpus, {InstanceRole::Kind::kTensor, rank}));
  }
  return *group;
}

const UncontendedCosts::TimedGroup& UncontendedCosts::ExpertGroup(int rank) {
  std::optional<TimedGroup>& group = experts_[rank];
  if (!group.has_value()) {
    const ReplicaGroups groups(in_.costs, in_.placement());
    group = Timed(lowering_.GroupOf(
        groups.GpusOf(groups.Exchanges(0, groups.block())[0], {rank}),
        {InstanceRole::Kind::kExperts, rank}));
  }
  return *group;
}

const UncontendedCosts::TimedGroup& UncontendedCosts::ExpertTensorGroup(
    int rank) {
  std::optional<TimedGroup>& group = expert_tensors_[rank];
  if (!group.has_value()) {
    const ReplicaGroups groups(in_.costs, in_.placement());
    group = Timed(lowering_.GroupOf(
        groups.GpusOf(groups.ExpertTensors(0, groups.block())[0], {rank}),
        {InstanceRole::Kind::kExpertTensor, rank}));
  }
  return *group;
}

const UncontendedCosts::TimedGroup& UncontendedCosts::ContextGroup(int rank) {
  std::optional<TimedGroup>& group = context_[rank];
  if (!group.has_value()) {
    group = ReplicaGroup(rank, in_.costs.context.neighbors,
                         InstanceRole::Kind::kContext);
  }
  return *group;
}

UncontendedCosts::TimedGroup UncontendedCosts::ReplicaGroup(
    int rank, int num_replicas, InstanceRole::Kind kind) {
  std::vector<int> gpus;
  for (int r = 0; r < num_replicas; ++r) {
    gpus.push_back(in_.placement().gpu(r, rank, 0));
  }
  return Timed(lowering_.GroupOf(gpus, {kind, rank}));
}

// Every GPU of the ring waits for the slowest hop.
double UncontendedCosts::OfRing(int rank,
                                const std::vector<Collectives>& messages) {
  const ContextGroups& context = in_.costs.context;
  double flow = 0, latency = 0;
  for (int r = 0; r < std::min(context.size(), gpus_.placement().data); ++r) {
    const RingHop hop = {in_.placement().gpu(r, rank, 0),
                         in_.placement().gpu(context.NextOf(r), rank, 0),
                         {InstanceRole::Kind::kContextRing, rank, 0, r, 0}};
    const RingCost cost = lowering_.RingOver(hop, messages);
    latency = std::max(latency, cost.latency_seconds);
    if (cost.bytes > 0) {
      flow = std::max(flow, SecondsOver(route(cost.pair), cost.bytes));
    }
  }
  return flow + latency;
}

UncontendedCosts::PassParts UncontendedCosts::PartsOf(const PassKind& kind) {
  const int rank = kind.rank;
  const schedules::Action* other =
      kind.overlapped.has_value() ? &*kind.overlapped : nullptr;
  PassParts parts;
  parts.kernels =
      PassSeconds(in_.schedule, in_.costs, in_.placement().index(0, rank, 0),
                  rank, kind.action, other);
  PassCollectives calls;
  const auto add = [&](const schedules::Action& action) {
    AddCollectivesOf(action, in_.costs, in_.placement().tensor, &calls);
    parts.host += in_.costs.stages[action.stage].launches.SecondsOf(action.op);
    parts.ring_overlap += RingSeconds(
        action, in_.costs.of(in_.placement().index(0, rank, 0), action.stage));
  };
  add(kind.action);
  if (other != nullptr) add(*other);
  if (parts.host > 0) {
    if (!calls.in_line.empty()) {
      parts.off_host +=
          lowering_.SecondsAlone(TensorGroup(rank).group, calls.in_line);
    }
    if (!calls.experts.empty()) {
      parts.off_host +=
          lowering_.SecondsAlone(ExpertGroup(rank).group, calls.experts);
    }
    if (!calls.expert_tensor.empty()) {
      parts.off_host += lowering_.SecondsAlone(ExpertTensorGroup(rank).group,
                                               calls.expert_tensor);
    }
    if (!calls.context.empty()) {
      parts.off_host +=
          lowering_.SecondsAlone(ContextGroup(rank).group, calls.context);
    }
  }
  // Flows carry whole bytes; without bytes there is no latency either.
  for (auto* some : {&calls.in_line, &calls.overlapped, &calls.experts,
                     &calls.expert_tensor, &calls.context, &calls.ring}) {
    std::erase_if(*some, [](const Collectives& one) {
      return one.bytes * one.count < kFewBytes;
    });
  }
  if (!calls.in_line.empty()) {
    parts.in_line = OfCollectives(TensorGroup(rank), calls.in_line);
  }
  if (!calls.experts.empty()) {
    parts.experts = OfCollectives(ExpertGroup(rank), calls.experts);
  }
  if (!calls.expert_tensor.empty()) {
    parts.experts +=
        OfCollectives(ExpertTensorGroup(rank), calls.expert_tensor);
  }
  if (!calls.context.empty()) {
    parts.context = OfCollectives(ContextGroup(rank), calls.context);
  }
  if (!calls.ring.empty()) parts.ring = OfRing(rank, calls.ring);
  if (!calls.overlapped.empty()) {
    parts.overlapped = OfCollectives(TensorGroup(rank), calls.overlapped);
  }
  return parts;
}

double UncontendedCosts::OfPass(const PassKind& kind) {
  return SecondsOf(kind, kind.overlapped.has_value() && HidesExchanges());
}

double UncontendedCosts::OfPassOrPair(const PassKind& kind) {
  return SecondsOf(kind, HidesExchanges());
}

double UncontendedCosts::SecondsOf(const PassKind& kind, bool hidden) {
  if (!schedules::IsCompute(kind.action.op))
    return OfOffload(kind.rank, kind.action);
  const PassParts parts = PartsOf(kind);
  double seconds = parts.kernels;
  if (parts.host > 0) {
    seconds = std::max(seconds, parts.host - parts.off_host);
  }
  // Messages start when only the kernels that overlap with them are left.
  if (parts.ring > 0) {
    const double before = std::max(seconds - parts.ring_overlap, 0.0);
    seconds = std::max(seconds, before + parts.ring);
  }
  seconds = std::max(seconds + parts.context + parts.in_line, parts.overlapped);
  return hidden ? std::max(seconds, parts.experts) : seconds + parts.experts;
}

double UncontendedCosts::OfShare(const PassKind& kind) {
  const PassParts parts = PartsOf(kind);
  return parts.kernels + parts.in_line + parts.context +
         (HidesExchanges() ? 0 : parts.experts);
}

double UncontendedCosts::OfOffload(int rank, const schedules::Action& action) {
  const int gpu = in_.placement().gpu(0, rank, 0);
  const StageCosts& stage =
      in_.costs.of(in_.placement().index(0, rank, 0), action.stage);
  const double bytes =
      std::round(in_.costs.stages[action.stage].activations.saved_bytes *
                 action.num_microbatches);
  const bool to_host = action.op == schedules::Op::kOffload;
  const int32_t pair =
      bytes > 0 ? lowering_.HostPairOf(gpu, to_host,
                                       {to_host ? InstanceRole::Kind::kToHost
                                                : InstanceRole::Kind::kFromHost,
                                        rank})
                : -1;
  if (pair >= 0) return SecondsOver(route(pair), bytes);
  return stage.seconds.offload.value_or(0) * action.num_microbatches;
}

// Returns std::nullopt if no link is used.
std::optional<SendCost> UncontendedCosts::SendOf(const HopKind& hop) {
  const int from = in_.placement().gpu(0, hop.from_rank, 0);
  const int to = in_.placement().gpu(0, hop.to_rank, 0);
  const double bytes =
      std::round(in_.costs.sent_bytes(hop.forward ? hop.stage : hop.stage - 1) *
                 hop.num_microbatches);
  if (!(bytes > 0) || lowering_.RouteOf(from, to).links.empty()) return {};
  return lowering_.SendBetween(
      from, to, bytes, ExtraSeconds(),
      {InstanceRole::Kind::kSend, hop.from_rank, hop.to_rank});
}

double UncontendedCosts::OfHop(const HopKind& hop) {
  const std::optional<SendCost> send = SendOf(hop);
  if (send.has_value()) return SecondsOver(route(send->pair), send->bytes);
  return lowering_
             .RouteOf(in_.placement().gpu(0, hop.from_rank, 0),
                      in_.placement().gpu(0, hop.to_rank, 0))
             .latency_seconds +
         ExtraSeconds();
}

double UncontendedCosts::OfMove(const HopKind& hop) {
  const std::optional<SendCost> send = SendOf(hop);
  if (!send.has_value()) return 0;
  const scenarios::Route& way = route(send->pair);
  return SecondsOver(way, send->bytes) - way.latency_seconds;
}

std::vector<int> UncontendedCosts::SteppedStages(int rank) const {
  if (in_.schedule.forward_only) return {};
  if (!in_.schedule.flush) return rank_stages_[rank];
  std::vector<int> stages;
  for (int32_t position : in_.semantics.update_positions[rank]) {
    stages.push_back(in_.schedule.rank_actions[rank][position].stage);
  }
  return stages;
}

double UncontendedCosts::OfSteps(int rank) const {
  const std::vector<int> stages = SteppedStages(rank);
  double seconds = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    seconds += OfStep(rank, stages[i], /*first=*/i == 0);
  }
  return seconds;
}

// The fixed cost of an update is part of its first step.
double UncontendedCosts::OfStep(int rank, int stage, bool first) const {
  const StageCosts& costs =
      in_.costs.of(in_.placement().index(0, rank, 0), stage);
  return costs.step.seconds - (first ? 0 : costs.step.update_seconds);
}

}  // namespace weir::sim
