// SPDX-License-Identifier: Apache-2.0
#include "sim/bounds/link_loads.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/infinity.h"
#include "sim/graph/replica_groups.h"

namespace weir::sim {
namespace {

// On a link with more jobs, only sets by earliest start are considered.
constexpr size_t kFewJobs = 32;

struct Piece {
  double before_seconds, seconds, after_seconds;
};

// Returns the longest time over sets of pieces. Sorts them by start, latest
// first.
double LongestOf(std::vector<Piece>* pieces) {
  std::sort(pieces->begin(), pieces->end(), [](const Piece& a, const Piece& b) {
    return a.before_seconds > b.before_seconds;
  });
  double longest = 0;
  const auto with_after = [&](double least) {
    double sum = 0, after = kInfinity;
    for (const Piece& piece : *pieces) {
      if (piece.after_seconds < least) continue;
      sum += piece.seconds;
      after = std::min(after, piece.after_seconds);
      longest = std::max(longest, piece.before_seconds + sum + after);
    }
  };
  with_after(0);
  if (pieces->size() > kFewJobs) return longest;
  for (const Piece& piece : *pieces) with_after(piece.after_seconds);
  return longest;
}

}  // namespace

LinkLoads::LinkLoads(const PipelineInputs& inputs, const Representatives& gpus,
                     const OrderFreeBound& order_free,
                     UncontendedCosts* seconds)
    : in_(inputs),
      schedule_(inputs.schedule),
      gpus_(gpus),
      any_order_(order_free),
      uncontended_(*seconds),
      reduces_early_(inputs.costs.shards > 1 ||
                     inputs.communication.gradient_reduction() ==
                         REDUCTION_OVERLAPPED) {
  if (in_.network.links().empty()) return;
  busy_.resize(uncontended_.links().size());
  AddSends();
  AddReductions();
  AddGathers();
  std::stable_sort(
      loads_.begin(), loads_.end(),
      [](const Load& a, const Load& b) { return a.link < b.link; });
}

bool LinkLoads::IsLikeFirst(int replica, int tensor_rank) const {
  return gpus_.ReplicaOf(replica) == 0 && gpus_.TensorRankOf(tensor_rank) == 0;
}

void LinkLoads::AddFlows(const std::vector<int32_t>& pairs, double bytes) {
  if (!(bytes > 0)) return;
  for (const int32_t pair : pairs) {
    for (const int32_t link : uncontended_.route(pair).links) {
      if (busy_[link] == 0) touched_.push_back(link);
      busy_[link] += bytes / uncontended_.links()[link].bytes_per_second;
    }
  }
}

int LinkLoads::EndJob(Job job) {
  const auto index = static_cast<int32_t>(jobs_.size());
  for (const int32_t link : touched_) {
    loads_.push_back({link, index, busy_[link]});
    job.longest = std::max(job.longest, busy_[link]);
    busy_[link] = 0;
  }
  touched_.clear();
  jobs_.push_back(std::move(job));
  return index;
}

void LinkLoads::AddSends() {
  struct Sends {
    // For GPUs like the first, and for others.
    Job first{kInfinity, kInfinity}, others{kInfinity, kInfinity};
    Sent bytes;
  };
  std::map<std::pair<int, int>, Sends> sends;
  for (int route = 0; route < schedule_.num_routes(); ++route) {
    const std::vector<int>& ranks = schedule_.routes[route];
    const int count = any_order_.NumMicrobatches(route);
    if (count == 0) continue;
    const auto add = [&](int s, int to, double bytes) {
      if (ranks[s] == ranks[to]) return;
      Sends& pair = sends[{ranks[s], ranks[to]}];
      const auto take = [](const OrderFreeBound::HeadTail& around, Job* job) {
        job->before_seconds =
            std::min(job->before_seconds, around.before_seconds);
        job->after_seconds = std::min(job->after_seconds, around.after_seconds);
      };
      take(any_order_.TransferHeadTail(route, s, to > s), &pair.first);
      take(ReplicasComputeAlike()
               ? any_order_.TransferHeadTailAnywhere(route, s, to > s)
               : OrderFreeBound::HeadTail(),
           &pair.others);
      if (pair.bytes.empty() || pair.bytes.back().first != bytes) {
        pair.bytes.push_back({bytes, 0});
      }
      pair.bytes.back().second += count;
    };
    for (int s = 0; s + 1 < schedule_.num_stages; ++s) {
      const double bytes = in_.costs.sent_bytes(s);
      add(s, s + 1, bytes);
      if (!schedule_.forward_only) add(s + 1, s, bytes);
    }
  }
  for (auto& [pair, sent] : sends) {
    for (const bool like_first : {true, false}) {
      for (int r = 0; r < num_replicas(); ++r) {
        for (int t = 0; t < num_tensor_ranks(); ++t) {
          if (IsLikeFirst(r, t) != like_first) continue;
          AddSendsBetween(pair.first, pair.second, sent.bytes, r, t);
        }
      }
      EndJob(like_first ? sent.first : sent.others);
    }
  }
}

void LinkLoads::AddSendsBetween(int from, int to, const Sent& bytes,
                                int replica, int tensor_rank) {
  const double extra = in_.communication.transfers() == BLOCKING
                           ? in_.costs.exchange_seconds
                           : 0;
  const int from_gpu = Gpu(replica, from, tensor_rank);
  const int to_gpu = Gpu(replica, to, tensor_rank);
  if (uncontended_.lowering().RouteOf(from_gpu, to_gpu).links.empty()) return;
  for (const auto& [each, count] : bytes) {
    double least = kInfinity;
    int32_t pair = 0;
    for (const int span : any_order_.spans()) {
      const double moved = std::round(each * span);
      if (!(moved > 0)) {
        least = 0;
        continue;
      }
      const SendCost send = uncontended_.lowering().SendBetween(
          from_gpu, to_gpu, moved, extra,
          {InstanceRole::Kind::kSend, from, to, replica, tensor_rank});
      least = std::min(least, send.bytes / span);
      pair = send.pair;
    }
    if (least > 0) AddFlows({pair}, count * least);
  }
}

const std::vector<LinkLoads::Copies>& LinkLoads::CopiesOf(
    const std::vector<int>& ranks) {
  const auto [at, added] = copies_.try_emplace(ranks);
  if (!added) return at->second;
  const int index = gpus_.IndexOfCopies(ranks);
  const ReplicaGroups groups(in_.costs, in_.placement());
  for (int t = 0; t < num_tensor_ranks(); ++t) {
    const auto groups_of = [&](InstanceRole::Kind kind,
                               std::vector<GpuRun> runs) {
      if (num_replicas() < in_.placement().data && !runs.empty())
        runs.resize(1);
      std::vector<Group> all;
      for (const GpuRun& run : runs) {
        const int replica = runs.size() > 1 ? groups.ReplicaOf(run.first) : 0;
        all.push_back(uncontended_.lowering().GroupOf(
            groups.GpusOf(run, ranks), {kind, index, 0, replica, t}));
      }
      return all;
    };
    const int tensor_rank = gpus_.TensorRankOf(t);
    at->second.push_back(
        {groups_of(in_.costs.shard_replicas > 1 ? InstanceRole::Kind::kShards
                                                : InstanceRole::Kind::kCopies,
                   groups.Copies(tensor_rank)),
         groups_of(InstanceRole::Kind::kExpertCopies,
                   groups.ExpertCopies(tensor_rank)),
         groups_of(InstanceRole::Kind::kShardCopies,
                   groups.ShardCopies(tensor_rank))});
  }
  return at->second;
}

double LinkLoads::AddGroup(const Group& group,
                           std::span<const Collectives> calls, int num_pieces) {
  const CollectiveLoad load = uncontended_.lowering().LoadOf(group, calls);
  const double intra = std::round(load.intra_bytes);
  const double inter = std::round(load.inter_bytes);
  if (intra == 0 && inter == 0) return 0;
  AddFlows(group.intra_hops, num_pieces * intra);
  AddFlows(group.inter_hops, num_pieces * inter);
  return load.latency_seconds;
}

double LinkLoads::AddCollectives(const Copies& copies,
                                 const ReductionCollectives& calls) {
  const Collectives all[] = {calls.dense, calls.small};
  double latency = 0;
  for (const Group& group : copies.all) {
    if (group.links.num_ranks == 1) continue;
    latency =
        AddGroup(group, std::span(all).first(calls.small.count > 0 ? 2 : 1),
                 calls.num_pieces);
  }
  const bool more = calls.experts.bytes > 0 || calls.shards.count > 0;
  if (!more && copies.all.size() == 1) return latency;
  const auto add = [&](const std::vector<Group>& groups,
                       const Collectives& one) {
    for (const Group& group : groups) {
      if (group.links.num_ranks == 1 || one.bytes == 0) continue;
      AddGroup(group, {&one, 1}, calls.num_pieces);
    }
  };
  add(copies.experts, calls.experts);
  if (calls.shards.count > 0) add(copies.shards, calls.shards);
  return 0;
}

double LinkLoads::StepSeconds(int rank, int stage, int tensor_rank) const {
  if (!IsLikeFirst(0, tensor_rank)) return 0;
  const bool alone = in_.semantics.update_positions[rank].size() == 1;
  return uncontended_.OfStep(rank, stage, /*first=*/alone);
}

void LinkLoads::AddReductions() {
  if (schedule_.forward_only) return;
  std::vector<std::vector<int>> ranks_of(schedule_.num_stages);
  for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
    for (const int32_t position : in_.semantics.update_positions[rank]) {
      const int stage = schedule_.rank_actions[rank][position].stage;
      std::vector<int>& ranks = ranks_of[stage];
      if (ranks.empty() || ranks.back() != rank) ranks.push_back(rank);
    }
  }
  bool steps = false;
  // [stage][tensor rank]; tensor ranks proceed independently.
  std::vector<std::vector<int>> jobs_of_stage(
      schedule_.num_stages, std::vector<int>(num_tensor_ranks(), -1));
  for (int s = 0; s < schedule_.num_stages; ++s) {
    const StageCosts& stage = in_.costs.stages[s];
    const std::vector<int>& ranks = ranks_of[s];
    steps |= stage.step.seconds > 0;
    const bool copied_experts =
        ReplicaGroups(in_.costs, in_.placement()).crosses_tensor() &&
        stage.parameters.expert_gradient_bytes > 0;
    if ((ranks.size() * in_.placement().data < 2 && !copied_experts) ||
        stage.parameters.gradient_bytes == 0) {
      continue;
    }
    steps = true;
    for (int t = 0; t < num_tensor_ranks(); ++t) {
      const double step = StepSeconds(ranks[0], s, t);
      Job job;
      for (const int rank : ranks) {
        if (IsLikeFirst(0, t)) job.awaited.push_back({rank, s, -1});
      }
      job.after_seconds = step + AddCollectives(CopiesOf(ranks)[t],
                                                CollectivesOfReduction(
                                                    in_, stage, ranks.size()));
      jobs_of_stage[s][t] = EndJob(job);
      if (in_.costs.optimizer_shards == 1) continue;
      for (Awaited& awaited : job.awaited) awaited.job = jobs_of_stage[s][t];
      job.before_seconds = step;
      // Before the first forward passes, a gather awaits nothing.
      if (GathersBeforeForward(in_)) job = Job();
      for (const int rank : ranks) {
        const double latency = AddCollectives(
            CopiesOf({rank})[t], CollectivesOfStepGather(in_, stage));
        if (!GathersBeforeForward(in_)) job.after_seconds = latency;
        EndJob(job);
      }
    }
  }
  if (steps) AddTied(jobs_of_stage);
}

void LinkLoads::AddTied(const std::vector<std::vector<int>>& jobs_of_stage) {
  const int last_stage = in_.costs.tied_stage;
  const std::vector<int> first = schedule_.RanksOf(0);
  const std::vector<int> last = schedule_.RanksOf(last_stage);
  if (in_.costs.tied_gradient_bytes == 0 || first.size() != 1 ||
      last.size() != 1 || first == last) {
    return;
  }
  for (int t = 0; t < num_tensor_ranks(); ++t) {
    for (int r = 0; r < num_replicas(); ++r) {
      const Group group = uncontended_.lowering().GroupOf(
          {Gpu(r, first[0], t), Gpu(r, last[0], t)},
          {InstanceRole::Kind::kTied, first[0], last[0], r, t});
      Job job;
      const Collectives sum = {models::CollectiveKind::kAllReduce,
                               in_.costs.tied_gradient_bytes};
      job.after_seconds = AddGroup(group, {&sum, 1}, 1);
      if (IsLikeFirst(r, t)) {
        job.awaited = {{first[0], 0, jobs_of_stage[0][t]},
                       {last[0], last_stage, jobs_of_stage[last_stage][t]}};
        job.after_seconds += std::max(StepSeconds(first[0], 0, t),
                                      StepSeconds(last[0], last_stage, t));
      }
      EndJob(std::move(job));
    }
  }
}

// Adds the gathers of sharded weights, for forwards and for backwards.
void LinkLoads::AddGathers() {
  if (in_.costs.shards == 1) return;
  for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
    for (const int32_t position : in_.semantics.update_positions[rank]) {
      const StageCosts& stage =
          in_.costs.stages[schedule_.rank_actions[rank][position].stage];
      for (const bool forward : {true, false}) {
        const ShardGathers calls = CollectivesOfGather(in_, stage, forward);
        for (const Copies& copies : CopiesOf({rank})) {
          const bool exposed = calls.before[1].count > 0;
          const auto add = [&](const std::vector<Group>& groups,
                               std::span<const Collectives> before,
                               const Collectives& overlapped) {
            for (const Group& group : groups) {
              AddGroup(group, before.first(exposed ? 2 : 1), 1);
              if (overlapped.count > 0) AddGroup(group, {&overlapped, 1}, 1);
            }
          };
          add(copies.all, calls.before, calls.overlapped);
          add(copies.experts, calls.experts_before, calls.experts_overlapped);
        }
      }
    }
    EndJob({});
  }
}

double LinkLoads::Seconds(const Ready& ready) const {
  std::vector<double> before(jobs_.size());
  for (size_t i = 0; i < jobs_.size(); ++i) {
    before[i] = jobs_[i].before_seconds;
    double begin = 0;
    for (const auto& [rank, stage, job] : jobs_[i].awaited) {
      begin = std::max(begin,
                       ready(rank, stage) + (job < 0 ? 0 : jobs_[job].longest));
    }
    before[i] += begin;
  }
  double longest = 0;
  std::vector<Piece> pieces;
  for (size_t i = 0, next = 0; i < loads_.size(); i = next) {
    pieces.clear();
    for (; next < loads_.size() && loads_[next].link == loads_[i].link;
         ++next) {
      const Load& load = loads_[next];
      pieces.push_back(
          {before[load.job], load.seconds, jobs_[load.job].after_seconds});
    }
    longest = std::max(longest, LongestOf(&pieces));
  }
  return longest;
}

}  // namespace weir::sim
