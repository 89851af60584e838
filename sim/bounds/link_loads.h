// SPDX-License-Identifier: Apache-2.0
// The load of every link during a batch with a flush, and the time that must
// pass before and after it; for bounds. A link shared by all GPUs of a node, or
// by several ranks, is busy with the traffic of all of them, in any order.
#ifndef WEIR_SIM_BOUNDS_LINK_LOADS_H_
#define WEIR_SIM_BOUNDS_LINK_LOADS_H_

#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/bounds/order_free_bound.h"
#include "sim/bounds/uncontended_costs.h"
#include "sim/graph/communication_lowering.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/graph/representatives.h"

namespace weir::sim {

// Counts transfers between ranks, reductions of gradients, all-reduces of
// tied-embedding gradients, gathers of updated weights, and gathers of sharded
// weights (at least two per stage). Excludes collectives inside passes, and
// offloads: these are serialized by passes and copy queues.
class LinkLoads {
 public:
  // All arguments must outlive this object. Requires: a flush.
  LinkLoads(const PipelineInputs& inputs, const Representatives& gpus,
            const OrderFreeBound& order_free, UncontendedCosts* seconds);

  // Returns the earliest time at which the reduction of a stage's gradients on
  // a rank can begin. Arguments: rank, stage.
  using Ready = std::function<double(int, int)>;

  // Returns a lower bound on the time of any run. A set of jobs on one link
  // takes at least their earliest start, plus the sum of their seconds on the
  // link, plus the shortest time that must follow one of them. The bound is the
  // maximum over links and sets.
  double Seconds(const Ready& ready) const;

  // Returns true if gradients are reduced during the last pass that computes
  // them, false if they are reduced after all passes of their rank.
  bool reduces_early() const { return reduces_early_; }

 private:
  // The gradients of a stage on a rank and, unless `job` is -1, the flows of
  // that job, which begin when the gradients are complete.
  struct Awaited {
    int rank = 0, stage = 0;
    int job = -1;
  };
  // Equal flows, or one collective. It begins `before_seconds` after everything
  // that it awaits, and at least `after_seconds` follow it.
  struct Job {
    double before_seconds = 0, after_seconds = 0;
    std::vector<Awaited> awaited = {};
    double longest = 0;  // seconds on its busiest link
  };
  struct Load {
    int32_t link;
    int32_t job;
    double seconds;
  };
  struct Copies {
    std::vector<Group> all, experts, shards;
  };

  int num_replicas() const { return gpus_.placement().data; }
  int num_tensor_ranks() const { return gpus_.placement().tensor; }
  // Returns a representative GPU.
  int Gpu(int replica, int rank, int tensor_rank) const {
    return gpus_.placement().gpu(replica, rank, tensor_rank);
  }
  // Returns true if the GPUs of this replica and tensor rank do the same as the
  // first GPU of each rank, for which the time before and after each job is
  // known. Others may be on other devices and links.
  bool IsLikeFirst(int replica, int tensor_rank) const;

  void AddSends();
  // Returns true if all replicas are on the same devices, without collectives
  // in their passes.
  bool ReplicasComputeAlike() const {
    return in_.placement().tensor == 1 && in_.costs.expert_parallel == 1 &&
           in_.costs.expert_tensor <= 1 && in_.costs.context.size() == 1 &&
           in_.costs.other_devices.empty();
  }
  // Pairs of bytes and number of transfers.
  using Sent = std::vector<std::pair<double, int>>;
  void AddSendsBetween(int from, int to, const Sent& bytes, int replica,
                       int tensor_rank);
  void AddReductions();
  void AddTied(const std::vector<std::vector<int>>& jobs_of_stage);
  void AddGathers();
  const std::vector<Copies>& CopiesOf(const std::vector<int>& ranks);
  // Returns the latencies that follow the flows.
  double AddCollectives(const Copies& copies,
                        const ReductionCollectives& calls);
  double AddGroup(const Group& group, std::span<const Collectives> calls,
                  int num_pieces);
  void AddFlows(const std::vector<int32_t>& pairs, double bytes);
  // Turns everything added since the last job into this one; returns its index.
  int EndJob(Job job);
  // Returns 0 for tensor ranks that are not like the first.
  double StepSeconds(int rank, int stage, int tensor_rank) const;

  const PipelineInputs& in_;
  const schedules::Schedule& schedule_;
  const Representatives& gpus_;
  const OrderFreeBound& any_order_;
  UncontendedCosts& uncontended_;
  const bool reduces_early_;
  std::map<std::vector<int>, std::vector<Copies>> copies_;  // [tensor rank]
  std::vector<Job> jobs_;
  std::vector<Load> loads_;   // sorted by link
  std::vector<double> busy_;  // [link], of the job that is being added
  std::vector<int32_t> touched_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_BOUNDS_LINK_LOADS_H_
