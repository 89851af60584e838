// SPDX-License-Identifier: Apache-2.0
// What a batch with a flush puts on every link, and what comes before and after
// it: a link that all GPUs of a node share, or several ranks, is as busy as all
// of them make it, in whatever order. For bounds.
#ifndef WEIR_SIM_LINK_LOADS_H_
#define WEIR_SIM_LINK_LOADS_H_

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "sim/any_order.h"
#include "sim/fold.h"
#include "sim/groups.h"
#include "sim/lone_seconds.h"
#include "sim/pipeline_graph.h"

namespace weir {

// Counted are transfers between ranks, reductions of gradients, sums of tied
// embeddings, gathers of stepped weights and of sharded ones (two of each stage
// at least). Not counted: collectives inside passes and offloads, which passes
// and channels wait for one by one.
class LinkLoads {
 public:
  // All must outlive it. REQUIRES: a flush.
  LinkLoads(const PipelineInputs& inputs, const Fold* fold,
            const AnyOrder& any_order, LoneSeconds* seconds);

  // When the gradients of a stage on a rank can begin to be reduced, at the
  // earliest: by rank and stage.
  using Ready = std::function<double(int, int)>;

  // No run takes less. For each link: of any of what crosses it, the earliest
  // start, the seconds that all of it takes, and the least that comes behind.
  double Seconds(const Ready& ready) const;

  // Are gradients reduced beside the last pass that makes them, or behind all
  // passes of their rank?
  bool reduces_early() const { return reduces_early_; }

 private:
  // Gradients, and the flows of a job that begin when they are there; -1: none.
  struct Awaited {
    int rank = 0, stage = 0;
    int job = -1;
  };
  // Of equal flows or of one collective. It begins so long after what it
  // awaits.
  struct Job {
    double before = 0, behind = 0;
    std::vector<Awaited> awaited = {};
    double longest = 0;  // on any link
  };
  struct Load {
    int32_t link;
    int32_t job;
    double seconds;
  };
  struct Copies {
    Group all;
    std::vector<Group> experts;
  };

  int num_replicas() const;
  int num_tensor_ranks() const;
  int Gpu(int replica, int rank, int tensor_rank) const;
  // Does it do what the first GPU of each rank does, for which all is known
  // that must come before and behind? Others may be on other devices and links.
  bool IsLikeFirst(int replica, int tensor_rank) const;

  void AddSends();
  // Are all replicas on the same devices, with nothing called in their passes?
  bool ReplicasComputeAlike() const {
    return in_.placement.tensor == 1 && in_.costs.expert_parallel == 1 &&
           in_.costs.other_devices.empty();
  }
  // [bytes, and how often]
  using Sent = std::vector<std::pair<double, int>>;
  void AddSendsBetween(int from, int to, const Sent& bytes, int replica,
                       int tensor_rank);
  void AddReductions();
  void AddTied(const std::vector<std::vector<int>>& jobs_of_stage);
  void AddGathers();
  const std::vector<Copies>& CopiesOf(const std::vector<int>& ranks);
  // Returns what its latencies add behind the flows.
  double AddCalls(const Copies& copies, const ReductionCalls& calls);
  double AddGroup(const Group& group, const Collectives& calls, int num_pieces);
  void AddFlows(const std::vector<int32_t>& pairs, double bytes);
  // What was added since the last job is this one.
  int EndJob(Job job);
  // Of those like the first GPU; else 0.
  double StepSeconds(int rank, int stage, int tensor_rank) const;

  const PipelineInputs& in_;
  const Schedule& schedule_;
  const Fold* fold_;
  const AnyOrder& any_order_;
  LoneSeconds& lone_;
  const bool reduces_early_;
  std::map<std::vector<int>, std::vector<Copies>> copies_;  // [tensor rank]
  std::vector<Job> jobs_;
  std::vector<Load> loads_;   // by link
  std::vector<double> busy_;  // [link], of the job that is being added
  std::vector<int32_t> touched_;
};

}  // namespace weir

#endif  // WEIR_SIM_LINK_LOADS_H_
