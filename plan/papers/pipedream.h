// SPDX-License-Identifier: Apache-2.0
// PipeDream's optimizer: cuts a graph into replicated stages on a hierarchy of
// machines, level by level, each level within one machine of the next.
// Minimizes the slowest stage, which determines the throughput of a pipeline
// without flushes.
//
// The formulas are those of the published code
// (github.com/msr-fiddle/pipedream, optimizer/optimizer_graph_hierarchical.py),
// which differ from the paper's (Narayanan et al. 2019, section 3.1). Let C be
// the time of states (i, j] on one machine (at level 1 computation, above that
// the best of the level below), w their parameters, a_i the output bytes of
// state i, B the level's bytes per second and r the replicas:
//
//   stage(i, j, r)      = (C(i, j) + 4 (r - 1) w(i, j) / (r B)) / r
//   best(i, j, m)       = min over s before j, r < m of
//                         max(best(i, s, m - r), stage(s, j, r),
//                             2 a_s / (r B), 2 a_j / (r B))
//                         and stage(i, j, m), its communication divided by the
//                         machines of the level below
//
// Transfers count only if a compression ratio is given, which divides them;
// 2 a_j does not count if j is the end. The paper has
// max(C(i, j), 2 (r - 1) w / B) / r, and transfers 2 a_s / B.
#ifndef WEIR_PLAN_PAPERS_PIPEDREAM_H_
#define WEIR_PLAN_PAPERS_PIPEDREAM_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/papers/antichain_dag.h"
#include "plan/papers/planner_work.h"

namespace weir::plan {

struct PipeDreamOptions {
  // Machines inside one of the next level, by [level], innermost first.
  std::vector<int> num_machines;
  std::vector<double> bytes_per_second;  // [level] between the machines
  bool straight = false;                 // no replication
  bool fewer_machines = false;           // uses fewer if no slower
  std::optional<double> activation_compression_ratio;
  // A machine holds the activations and parameters of its stage for each of
  // ceil((N - m) / r) minibatches, at least one, where m machines are used up
  // to and including the stage. Absent: no limit.
  std::optional<double> memory_limit_bytes;
  // Counts minibatches as the published code does: none for a stage with no
  // machines after it, so data parallelism fits every limit.
  bool published_memory = false;
  bool paper_formula = false;
  // Called from time to time with the fraction of a level that is solved, 0 to
  // 1.
  std::function<void(double)> progress = {};
  // Called often. When it returns true, the best plan so far is returned.
  std::function<bool()> stop = {};
};

// A stage of states [first_state, end_state).
struct PipeDreamStage {
  int first_state = 0, end_state = 0;
  double compute_seconds = 0;  // on one machine
  int replicas = 1;
};

struct PipeDreamPlan {
  double pipeline_seconds = 0;      // per minibatch
  double single_stage_seconds = 0;  // on one machine
  double data_parallel_seconds = 0;
  int num_states = 0;
  // States at which cuts were tried; fewer than all if stopped early.
  int num_cut_states = 0;
  // By [level]: the stages into which the stages of the next level are cut,
  // concatenated, with their replicas inside one machine of the next level.
  std::vector<std::vector<PipeDreamStage>> levels;
  // The stages of level 0, with replicas over all levels.
  std::vector<PipeDreamStage> stages;
};

// Each error names `label` or the option. Returns FailedPrecondition if nothing
// fits the memory, with the needs of the smallest plan; NotFound if there are
// fewer states than a straight pipeline needs; Cancelled if stopped before
// there was a plan. Large problems are first solved with cuts at a few states,
// so that there is a plan early.
absl::StatusOr<PipeDreamPlan> OptimizePipeDream(
    absl::string_view label, const AntichainDag& dag,
    const PipeDreamOptions& options);

// Returns the bytes of activations of one minibatch and of parameters, on one
// machine.
double BytesOfMinibatch(const AntichainDag& dag, const PipeDreamStage& stage);

// Returns the nodes of each stage, as [stage]. A node that two stages could
// have belongs to the first.
std::vector<std::vector<int>> NodesOfStages(const AntichainDag& dag,
                                            const PipeDreamPlan& plan);

// Plans the work's layers as a chain, with uncompressed transfers. Servers of
// equal size form two levels; unequal ones a single level with the slowest
// bandwidth. Returns the errors of OptimizePipeDream.
absl::StatusOr<PlannedPipeline> PlanPipeDream(const PlannerWork& work);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_PIPEDREAM_H_
