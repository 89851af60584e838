// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "sim/graph/pipeline_graph.h"
#include "sim/graph/replica_groups.h"

namespace weir::sim {
namespace {

// Counts the tasks of graph_builder.h, for one group of each kind.
class Counter {
 public:
  explicit Counter(const PipelineInputs& inputs)
      : in_(inputs),
        place_(inputs.placement()),
        schedule_(inputs.schedule),
        tensor_flows_(FlowsOver(1, 0, place_.tensor)),
        groups_(in_.costs, place_),
        expert_flows_(FlowsOfRun(groups_.Exchanges(0, groups_.block())[0])),
        expert_tensor_flows_(
            FlowsOfRun(groups_.ExpertTensors(0, groups_.block())[0])),
        context_flows_(FlowsOver(in_.costs.context.neighbors, 0, 1)) {
    for (int rank = 0; rank < place_.pipeline; ++rank) {
      replica_flows_.push_back(FlowsOver(place_.data, rank, 1));
    }
  }

  double Count() {
    double tasks = 0;
    for (int rank = 0; rank < place_.pipeline; ++rank) {
      tasks += place_.data * OfPasses(rank) + place_.tensor * OfSteps(rank);
    }
    tasks += place_.tensor * OfReductions();
    if (in_.costs.shards > 1) tasks += place_.tensor * OfGathers();
    const std::vector<int> first = schedule_.RanksOf(0);
    const std::vector<int> last = schedule_.RanksOf(in_.costs.tied_stage);
    if (in_.costs.tied_gradient_bytes > 0 && schedule_.flush &&
        first.size() == 1 && last.size() == 1 && first != last) {
      tasks += 4.0 * place_.data * place_.tensor * schedule_.num_batches;
    }
    return tasks;
  }

 private:
  // Returns the flows of one collective over replicas and tensor ranks of a
  // rank.
  double FlowsOver(int num_replicas, int rank, int num_tensor_ranks) const {
    std::vector<int> gpus;
    for (int r = 0; r < num_replicas; ++r) {
      for (int t = 0; t < num_tensor_ranks; ++t) {
        gpus.push_back(place_.gpu(r, rank, t));
      }
    }
    return FlowsOver(gpus);
  }

  double FlowsOfRun(const GpuRun& run) const {
    return FlowsOver(groups_.GpusOf(run, {0}));
  }

  double FlowsOver(const std::vector<int>& gpus) const {
    double flows = 0;
    for (const scenarios::Ring& ring : in_.network.RingsOver(gpus)) {
      flows += static_cast<double>(ring.gpus.size());
    }
    return flows;
  }

  const StageCosts& StageOf(const schedules::Action& action) const {
    return in_.costs.stages[action.stage];
  }

  bool HasExpertCollectives() const {
    return (in_.costs.expert_parallel > 1 ||
            (groups_.folded() && in_.costs.expert_tensor > 1)) &&
           std::any_of(in_.costs.stages.begin(), in_.costs.stages.end(),
                       [](const StageCosts& stage) {
                         return stage.parameters.expert_gradient_bytes > 0;
                       });
  }

  bool Sends(const schedules::Action& action, int rank) const {
    const bool forward = action.op == schedules::Op::kForward;
    if (!forward && !schedules::MakesInputGradient(action.op)) return false;
    const int to = action.stage + (forward ? 1 : -1);
    return to >= 0 && to < schedule_.num_stages &&
           schedule_.rank_of(to, action.microbatch) != rank;
  }

  // Returns the tasks of the passes of a rank in one replica.
  double OfPasses(int rank) const {
    const int t = place_.tensor;
    double tasks = 0;
    const auto& actions = schedule_.rank_actions[rank];
    const bool sharded = in_.costs.shards > 1, experts = HasExpertCollectives();
    const bool context = in_.costs.context.size() > 1;
    for (size_t i = 0; i < actions.size(); ++i) {
      tasks += t * (Sends(actions[i], rank) ? 2 : 1);
      if (t > 1 || sharded || experts || context) ++tasks;
      if (experts || context || (sharded && t > 1)) ++tasks;
      if (context) ++tasks;
      const bool second = i > 0 && actions[i - 1].overlaps_next;
      if (!second) tasks += OfCollectives(actions, i);
    }
    return tasks;
  }

  double OfCollectives(const std::vector<schedules::Action>& actions,
                       size_t i) const {
    bool in_line = false, overlapped = false, experts = false;
    bool expert_tensor = false;
    bool neighbors = false, ring = false;
    for (size_t k = i; k < i + (actions[i].overlaps_next ? 2 : 1); ++k) {
      const bool forward = actions[k].op == schedules::Op::kForward;
      if (!forward && !schedules::MakesInputGradient(actions[k].op)) continue;
      for (const models::LayerCollective& one :
           forward ? StageOf(actions[k]).communication.forward_collectives
                   : StageOf(actions[k]).communication.backward_collectives) {
        const bool hides = one.overlaps_input_gradient ||
                           (one.overlaps_weight_gradient &&
                            actions[k].op == schedules::Op::kBackward);
        if (one.group == models::LayerCollective::Group::kContext) {
          (models::IsRing(one) ? ring : neighbors) = true;
          continue;
        }
        if (one.group == models::LayerCollective::Group::kExpertTensor) {
          expert_tensor = true;
          continue;
        }
        const bool expert =
            one.group == models::LayerCollective::Group::kExpert;
        (expert ? experts : hides ? overlapped : in_line) = true;
      }
    }
    double tasks = 0;
    if (in_line && place_.tensor > 1) tasks += 1 + tensor_flows_;
    if (overlapped && place_.tensor > 1) tasks += 2 + tensor_flows_;
    const int parallel = in_.costs.expert_parallel;
    if (experts && parallel > 1) {
      tasks += 2.0 / groups_.replicas_of_exchange() +
               place_.tensor * (1 + expert_flows_) / parallel;
    }
    const bool hidden =
        actions[i].overlaps_next && in_.communication.overlap_expert_exchange();
    if (hidden && ((experts && parallel > 1) || expert_tensor)) {
      tasks += 1.0 / groups_.replicas_of_exchange();
    }
    if (expert_tensor) {
      tasks +=
          1.0 / groups_.replicas_of_exchange() +
          place_.tensor * (1 + expert_tensor_flows_) / in_.costs.expert_tensor;
    }
    return tasks + OfContext(neighbors, ring);
  }

  // Returns the tasks of the context-parallel exchanges of a pass in one
  // replica.
  double OfContext(bool neighbors, bool ring) const {
    const ContextGroups& context = in_.costs.context;
    if (!neighbors && !ring) return 0;
    double tasks = 1.0 / context.size();
    if (neighbors) {
      tasks += 1.0 / context.size() +
               place_.tensor * (1 + context_flows_) / context.neighbors;
    }
    if (ring) tasks += 2.0 / context.size() + place_.tensor;
    return tasks;
  }

  // Returns the tasks of the steps of a rank on one tensor rank, in all
  // replicas.
  double OfSteps(int rank) const {
    const auto& positions = in_.semantics.update_positions[rank];
    double tasks = static_cast<double>(positions.size()) * place_.data;
    if (in_.costs.optimizer_shards == 1) return tasks;
    const double flows = replica_flows_[rank];
    const int num_pieces = GathersBeforeForward(in_) ? 2 : 1;
    for (int32_t position : positions) {
      tasks += 2 + num_pieces *
                       OfPiece(StageOf(schedule_.rank_actions[rank][position]),
                               place_.data, flows, /*sums_shards=*/false);
    }
    return tasks;
  }

  // Returns the tasks on one tensor rank.
  double OfReductions() const {
    double tasks = 0;
    for (const Reduction& reduction :
         PlanReductions(PlanSteps(schedule_, in_.semantics,
                                  in_.communication.gradient_reduction()))) {
      const auto& members = reduction.members;
      const auto copies = static_cast<double>(members.size()) * place_.data;
      const StageCosts& stage = in_.costs.stages[reduction.stage];
      if (copies < 2 && (!groups_.crosses_tensor() ||
                         stage.parameters.expert_gradient_bytes == 0)) {
        continue;
      }
      const double pieces = PartsOfReduction(in_, stage).num_pieces;
      // Copies on several ranks are counted as one ring.
      const double flows =
          members.size() > 1 ? copies : replica_flows_[members[0].rank];
      const bool lists =
          in_.costs.shards > 1 && in_.costs.shard_calls.list_seconds > 0;
      tasks += (lists ? 3 : 2) +
               pieces * OfPiece(stage, copies, flows, members.size() == 1) +
               (pieces - 1) * (2 + copies);
    }
    return tasks;
  }

  // Returns the tasks of a piece on one tensor rank. `sums_shards`: it ends
  // with sums across groups of hybrid sharding.
  double OfPiece(const StageCosts& stage, double copies, double flows,
                 bool sums_shards) const {
    const double groups = in_.costs.shard_replicas;
    double tasks = flows;
    if (groups > 1) tasks += groups;
    if (groups > 1 && sums_shards) tasks += 1 + copies / groups + flows;
    if (!groups_.experts_differ() ||
        stage.parameters.expert_gradient_bytes == 0) {
      return tasks;
    }
    // Groups with the same experts on each tensor rank.
    const double parallel = groups * groups_.block() / place_.tensor;
    if (groups_.crosses_tensor()) tasks += 2.0 / place_.tensor;
    return copies > parallel ? tasks + flows + parallel + 1 : tasks + 1;
  }

  // Returns the tasks on one tensor rank.
  double OfGathers() const {
    const auto ranks = PlanWeightRuns(schedule_);
    double tasks = 0;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      const double flows = replica_flows_[rank];
      for (const WeightRun& run : ranks[rank]) {
        const bool forward = schedule_.rank_actions[rank][run.first].op ==
                             schedules::Op::kForward;
        const ShardGathers calls =
            CollectivesOfGather(in_, in_.costs.stages[run.stage], forward);
        const double groups =
            in_.costs.shard_replicas > 1 ? in_.costs.shard_replicas : 0;
        tasks += (2 + flows + groups) * (calls.overlapped.count > 0 ? 2 : 1) +
                 (calls.host_seconds > 0 ? 1 : 0);
      }
    }
    return tasks;
  }

  const PipelineInputs& in_;
  const scenarios::Placement& place_;
  const schedules::Schedule& schedule_;
  const double tensor_flows_;
  const ReplicaGroups groups_;
  const double expert_flows_, expert_tensor_flows_, context_flows_;
  std::vector<double> replica_flows_;  // [rank]
};

}  // namespace

double EstimateTasks(const PipelineInputs& inputs) {
  return Counter(inputs).Count();
}

}  // namespace weir::sim
